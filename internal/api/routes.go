package api

import (
	"net/http"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/httpd"
)

// A route is one operation. Only the callers in who may call it.
type route struct {
	method, path string
	who          auth.Who
	params       string // the allowed query parameters, separated by blanks
	serve        handler
	length       length
}

// A length is how long an answer may take.
type length uint8

const (
	short   length = iota // an httpd lane may answer it; the guard limits its reads
	long                  // no lane answers it; it limits its own reads
	endless               // it lasts until the client leaves: it detaches the connection, and limits its own reads
)

// A handler serves a request of an authorized caller.
type handler func(http.ResponseWriter, *http.Request, auth.Caller) error

// of returns a handler that calls serve with the campaign id in the path.
func of(serve func(http.ResponseWriter, *http.Request, auth.Caller, firstcome.CampaignID) error) handler {
	return func(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
		id, err := firstcome.ParseCampaignID(r.PathValue("id"))
		if err != nil {
			return firstcome.ErrNoCampaign // no campaign has such an id
		}
		return serve(w, r, c, id)
	}
}

// routes returns every operation of the API.
func (s *Server) routes() []route {
	const run = auth.SeesAll          // may see and change whole campaigns
	const look = run | auth.Support   // may see one user's coupons at a time
	const counts = look | auth.Viewer // may see counters, and no user id
	const shop = run | auth.Shop      // may issue, void and follow coupons, as a shop's backend does
	const claim = shop | auth.Service // may claim for any user
	const ask = look | claim          // may read any user's claim
	const staff = counts | claim      // every API key
	const self, public, everyone = auth.Self, auth.Public, auth.Everyone
	return []route{
		{"POST", "/v1/campaigns", run, "", s.campaigns.create, short},
		{"GET", "/v1/campaigns", counts, "after limit", s.campaigns.list, short},
		{"GET", "/v1/campaigns/{id}", staff | self, "", of(s.campaigns.read), short},
		{"PATCH", "/v1/campaigns/{id}", run, "", of(s.campaigns.update), short},
		{"POST", "/v1/campaigns/{id}/pause", run, "", s.campaigns.switchTo(firstcome.ChangePause), short},
		{"POST", "/v1/campaigns/{id}/resume", run, "", s.campaigns.switchTo(firstcome.ChangeResume), short},
		{"POST", "/v1/campaigns/{id}/close", run, "", s.campaigns.switchTo(firstcome.ChangeClose), short},
		{"POST", "/v1/campaigns/{id}/rebuild", run, "if_lost without_line_log", of(s.campaigns.rebuild), long},
		{"GET", "/v1/campaigns/{id}/reconcile", run, "", of(s.campaigns.estimate), long},
		{"POST", "/v1/campaigns/{id}/reconcile", auth.Admin, "", of(s.campaigns.reconcile), long},
		{"GET", "/v1/campaigns/{id}/changes", run, "after limit", of(s.campaigns.changes), short},
		{"GET", "/v1/campaigns/{id}/ledger", counts, "", of(s.campaigns.ledger), short},
		{"GET", "/v1/campaigns/{id}/audit", run, "", of(s.campaigns.audit), long},

		{"POST", "/v1/campaigns/{id}/claims", claim | self, "", of(s.claims.claim), short},
		{"GET", "/v1/campaigns/{id}/claims/{user_id}", ask | self, "place", of(s.claims.read), short},
		{"GET", "/v1/campaigns/{id}/claims/{user_id}/events", ask | self, "", of(s.streams.follow), endless},
		{"DELETE", "/v1/campaigns/{id}/claims/{user_id}", claim | self, "", of(s.claims.leave), short},
		{"GET", "/v1/campaigns/{id}/line", public, "", of(s.lines.read), short},
		{"POST", "/v1/campaigns/{id}/coupons", shop, "", of(s.coupons.issue), short},
		{"GET", "/v1/campaigns/{id}/coupons", look, "after limit voided user_id code number excel tz", of(s.coupons.list), long},
		{"POST", "/v1/campaigns/{id}/coupons/{number}/void", look | shop, "", of(s.coupons.void), short},
		{"POST", "/v1/campaigns/{id}/codes", run, "", of(s.codes.importAll), long},
		{"POST", "/v1/campaigns/{id}/prizes/{prize}/codes", run, "", of(s.codes.importAll), long},
		{"GET", "/v1/campaigns/{id}/facts", shop, "after limit wait", of(s.facts.list), long},

		{"POST", "/v1/coupons/find", ask | self, "", s.coupons.find, short},
		{"GET", "/v1/users/{user_id}/coupons", ask | self, "after limit", s.coupons.wallet, short},

		{"GET", "/v1/dead-letters", run, "campaign cause resolved after limit", s.deadLetters.list, short},
		{"GET", "/v1/dead-letters/causes", run, "campaign", s.deadLetters.causes, short},
		{"POST", "/v1/dead-letters/replay", run, "", s.deadLetters.replayAll, long},
		{"POST", "/v1/dead-letters/void", run, "", s.deadLetters.voidAll, long},
		{"POST", "/v1/dead-letters/{letter}/replay", run, "", s.deadLetters.replay, short},
		{"POST", "/v1/dead-letters/{letter}/void", run, "", s.deadLetters.void, short},
		{"GET", "/v1/audit-log", run, "campaign user_id before limit", s.auditLog.list, short},

		{"GET", "/{$}", everyone, "", s.about, short}, // only the path /
		{"GET", "/livez", everyone, "", s.livez, short},
		{"GET", "/readyz", everyone, "verbose", s.readyz, short},
		{"GET", "/openapi.yaml", everyone, "", s.openAPI, short},
	}
}

// Operations returns every operation as its method and path, like "GET /livez".
func (s *Server) Operations() []string {
	var operations []string
	for _, r := range s.routes() {
		operations = append(operations, r.method+" "+strings.TrimSuffix(r.path, "{$}"))
	}
	return operations
}

// HTTP returns the API's configuration for an HTTP server. The caller adds limits.
func (s *Server) HTTP() httpd.Options {
	c := httpd.Options{
		Handler: s.Handler(), TurnAway: turnAway, Log: s.Log,
		BodyLast: s.AddressLimit != nil, // the guard checks the address limit before the body is read
	}
	for _, r := range s.routes() {
		if r.length == short || r.length == endless && httpd.Detaches {
			c.Short = append(c.Short, httpd.Route{Method: r.method, Path: strings.TrimSuffix(r.path, "{$}")})
		}
	}
	return c
}
