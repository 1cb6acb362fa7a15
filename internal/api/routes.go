package api

import (
	"net/http"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A route is one operation. Only callers named in who may call it.
type route struct {
	method, path string
	who          auth.Who
	params       string // its query parameters; any other is refused
	serve        handler
	length       length
}

// A length says how long an answer takes.
type length uint8

const (
	short   length = iota // a lane may answer it
	long                  // no lane answers it, and it bounds its own reading
	endless               // as long as the client follows: it takes the connection, and bounds its own reading
)

// A handler serves a request of a caller who may send it.
type handler func(http.ResponseWriter, *http.Request, auth.Caller) error

// of serves the campaign that the path names.
func of(serve func(http.ResponseWriter, *http.Request, auth.Caller, firstcome.CampaignID) error) handler {
	return func(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
		id, err := campaignID(r)
		if err != nil {
			return err
		}
		return serve(w, r, c, id)
	}
}

// routes is the whole surface.
func (s *Server) routes() []route {
	const run = auth.SeesAll          // all of a campaign
	const look = run | auth.Support   // a user's coupons, one user at a time
	const counts = look | auth.Viewer // no user's id
	const shop = run | auth.Shop      // what a shop's backend does with coupons
	const claim = shop | auth.Service // for any user
	const ask = look | claim          // about any user
	const staff = counts | claim      // every key
	const self, public, everyone = auth.Self, auth.Public, auth.Everyone
	return []route{
		{"POST", "/v1/campaigns", run, "", s.createCampaign, short},
		{"GET", "/v1/campaigns", counts, "after limit", s.listCampaigns, short},
		{"GET", "/v1/campaigns/{id}", staff | self, "", of(s.readCampaign), short},
		{"PATCH", "/v1/campaigns/{id}", run, "", of(s.updateCampaign), short},
		{"POST", "/v1/campaigns/{id}/pause", run, "", s.switchCampaign(ledger.Pause), short},
		{"POST", "/v1/campaigns/{id}/resume", run, "", s.switchCampaign(ledger.Resume), short},
		{"POST", "/v1/campaigns/{id}/close", run, "", s.switchCampaign(ledger.Close), short},
		{"POST", "/v1/campaigns/{id}/rebuild", run, "if_lost without_line_log", of(s.rebuildGate), long},
		{"GET", "/v1/campaigns/{id}/reconcile", run, "", of(s.estimate), long},
		{"POST", "/v1/campaigns/{id}/reconcile", auth.Admin, "", of(s.reconcile), long},
		{"GET", "/v1/campaigns/{id}/changes", run, "after limit", of(s.listChanges), short},
		{"GET", "/v1/campaigns/{id}/ledger", counts, "", of(s.readLedger), short},
		{"GET", "/v1/campaigns/{id}/audit", run, "", of(s.audit), long},

		{"POST", "/v1/campaigns/{id}/claims", claim | self, "", of(s.claim), short},
		{"GET", "/v1/campaigns/{id}/claims/{user_id}", ask | self, "place", of(s.readClaim), short},
		{"GET", "/v1/campaigns/{id}/claims/{user_id}/events", ask | self, "", of(s.followPlace), endless},
		{"DELETE", "/v1/campaigns/{id}/claims/{user_id}", claim | self, "", of(s.leaveLine), short},
		{"GET", "/v1/campaigns/{id}/line", public, "", of(s.readLine), short},
		{"POST", "/v1/campaigns/{id}/coupons", shop, "", of(s.issueCoupons), short},
		{"GET", "/v1/campaigns/{id}/coupons", look, "after limit voided user_id code number excel tz", of(s.listCoupons), long},
		{"POST", "/v1/campaigns/{id}/coupons/{number}/void", look | shop, "", of(s.voidCoupon), short},
		{"GET", "/v1/campaigns/{id}/facts", shop, "after limit wait", of(s.listFacts), long},

		{"GET", "/v1/users/{user_id}/coupons", ask | self, "after limit", s.readWallet, short},

		{"GET", "/v1/dead-letters", run, "campaign cause resolved after limit", s.listDeadLetters, short},
		{"GET", "/v1/dead-letters/causes", run, "campaign", s.listDeadLetterCauses, short},
		{"POST", "/v1/dead-letters/replay", run, "", s.replayDeadLetters, long},
		{"POST", "/v1/dead-letters/void", run, "", s.voidDeadLetters, long},
		{"POST", "/v1/dead-letters/{letter}/replay", run, "", s.replayDeadLetter, short},
		{"POST", "/v1/dead-letters/{letter}/void", run, "", s.voidDeadLetter, short},
		{"GET", "/v1/audit-log", run, "campaign user_id before limit", s.listAuditLog, short},

		{"GET", "/{$}", everyone, "", s.about, short}, // the path / alone
		{"GET", "/livez", everyone, "", s.livez, short},
		{"GET", "/readyz", everyone, "verbose", s.readyz, short},
		{"GET", "/openapi.yaml", everyone, "", s.openAPI, short},
	}
}

// Operations returns the whole surface, each operation as its method and its path.
func (s *Server) Operations() []string {
	var operations []string
	for _, r := range s.routes() {
		operations = append(operations, r.method+" "+strings.TrimSuffix(r.path, "{$}"))
	}
	return operations
}

// HTTP returns the public surface as an HTTP server takes it. The caller adds limits.
func (s *Server) HTTP() httpd.Config {
	c := httpd.Config{
		Handler: s.Handler(), TurnAway: turnAway, Log: s.Log,
		BodyLast: s.AddressLimit != nil, // an address is limited before the server waits for its bodies
	}
	for _, r := range s.routes() {
		if r.length == short || r.length == endless && httpd.Detaches {
			c.Short = append(c.Short, httpd.Route{Method: r.method, Path: strings.TrimSuffix(r.path, "{$}")})
		}
	}
	return c
}
