package api

import (
	"net/http"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
)

// A route is one operation. Who is not named in who may not call it.
type route struct {
	method, path string
	who          who
	params       string // its query parameters; any other is refused
	serve        func(http.ResponseWriter, *http.Request, auth.Caller) error
	long         bool // it bounds its reading itself, because its answer may take long
}

// routes is the whole surface.
func (s *Server) routes() []route {
	const keys, readers = admin | service, admin | service | viewer
	const short, long = false, true
	return []route{
		{"POST", "/v1/campaigns", admin, "", s.createCampaign, short},
		{"GET", "/v1/campaigns", admin, "after limit", s.listCampaigns, short},
		{"GET", "/v1/campaigns/{id}", readers | self, "", s.readCampaign, short},
		{"PATCH", "/v1/campaigns/{id}", admin, "", s.updateCampaign, short},
		{"POST", "/v1/campaigns/{id}/pause", admin, "", s.pauseCampaign, short},
		{"POST", "/v1/campaigns/{id}/resume", admin, "", s.resumeCampaign, short},
		{"POST", "/v1/campaigns/{id}/close", admin, "", s.closeCampaign, short},
		{"GET", "/v1/campaigns/{id}/changes", admin, "after limit", s.listChanges, short},
		{"GET", "/v1/campaigns/{id}/ledger", admin, "", s.readLedger, short},

		{"POST", "/v1/campaigns/{id}/claims", keys | self, "", s.claim, short},
		{"GET", "/v1/campaigns/{id}/claims/{user_id}", readers | self, "", s.readClaim, short},
		{"POST", "/v1/campaigns/{id}/coupons", admin, "", s.issueCoupons, short},
		{"GET", "/v1/campaigns/{id}/coupons", admin, "after limit voided user_id code number", s.listCoupons, long},
		{"POST", "/v1/campaigns/{id}/coupons/{number}/void", admin, "", s.voidCoupon, short},
		{"GET", "/v1/campaigns/{id}/facts", admin, "after limit wait", s.listFacts, long},

		{"GET", "/v1/users/{user_id}/coupons", readers | self, "after limit", s.readWallet, short},

		{"GET", "/v1/dead-letters", admin, "campaign settled after limit", s.listDeadLetters, short},
		{"POST", "/v1/dead-letters/{letter}/replay", admin, "", s.replayDeadLetter, short},
		{"POST", "/v1/dead-letters/{letter}/void", admin, "", s.voidDeadLetter, short},
		{"GET", "/v1/audit-log", admin, "campaign user_id before limit", s.listAuditLog, short},

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

// who is a set of those who may call an operation.
type who uint8

const (
	admin    who = 1 << iota // API keys by their roles
	service                  //
	viewer                   //
	self                     // a user's own token, about themself alone
	everyone                 // also without credentials
)

// has tells whether the caller is in the set.
func (w who) has(c auth.Caller) bool {
	switch {
	case c.User != "":
		return w&self != 0
	case c.Role == firstcome.Admin:
		return w&admin != 0
	case c.Role == firstcome.Service:
		return w&service != 0
	case c.Role == firstcome.Viewer:
		return w&viewer != 0
	}
	return false
}
