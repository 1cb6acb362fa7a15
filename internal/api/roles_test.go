package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
)

// callers are everyone who may ask.
var callers = []string{"admin", "service", "viewer", "the user", "another user", "nobody"}

// surface says, by hand, what each caller in the order of callers gets from
// each operation about the user "me".
var surface = map[string]struct {
	body   string
	status [6]int
}{
	"POST /v1/campaigns":                            {`{"name":"n","quantity":1}`, [6]int{201, 403, 403, 403, 403, 401}},
	"GET /v1/campaigns":                             {"", [6]int{200, 403, 403, 403, 403, 401}},
	"GET /v1/campaigns/{id}":                        {"", [6]int{200, 200, 200, 200, 200, 401}},
	"PATCH /v1/campaigns/{id}":                      {`{"name":"m"}`, [6]int{200, 403, 403, 403, 403, 401}},
	"POST /v1/campaigns/{id}/pause":                 {"", [6]int{200, 403, 403, 403, 403, 401}},
	"POST /v1/campaigns/{id}/resume":                {"", [6]int{200, 403, 403, 403, 403, 401}},
	"POST /v1/campaigns/{id}/close":                 {"", [6]int{200, 403, 403, 403, 403, 401}},
	"GET /v1/campaigns/{id}/changes":                {"", [6]int{200, 403, 403, 403, 403, 401}},
	"GET /v1/campaigns/{id}/ledger":                 {"", [6]int{200, 403, 403, 403, 403, 401}},
	"POST /v1/campaigns/{id}/claims":                {`{"user_id":"me"}`, [6]int{200, 200, 403, 200, 404, 401}},
	"GET /v1/campaigns/{id}/claims/{user_id}":       {"", [6]int{200, 200, 200, 200, 404, 401}},
	"POST /v1/campaigns/{id}/coupons":               {`{"user_ids":["me"]}`, [6]int{200, 403, 403, 403, 403, 401}},
	"GET /v1/campaigns/{id}/coupons":                {"", [6]int{200, 403, 403, 403, 403, 401}},
	"POST /v1/campaigns/{id}/coupons/{number}/void": {`{"reason":"r"}`, [6]int{404, 403, 403, 403, 403, 401}},
	"GET /v1/campaigns/{id}/facts":                  {"", [6]int{200, 403, 403, 403, 403, 401}},
	"GET /v1/dead-letters":                          {"", [6]int{200, 403, 403, 403, 403, 401}},
	"POST /v1/dead-letters/{letter}/replay":         {"", [6]int{404, 403, 403, 403, 403, 401}},
	"POST /v1/dead-letters/{letter}/void":           {`{"reason":"r"}`, [6]int{404, 403, 403, 403, 403, 401}},
	"GET /v1/users/{user_id}/coupons":               {"", [6]int{200, 200, 200, 200, 404, 401}},
	"GET /v1/audit-log":                             {"", [6]int{200, 403, 403, 403, 403, 401}},
	"GET /":                                         {"", [6]int{200, 200, 200, 200, 200, 200}},
	"GET /livez":                                    {"", [6]int{200, 200, 200, 200, 200, 200}},
	"GET /readyz":                                   {"", [6]int{200, 200, 200, 200, 200, 200}},
	"GET /openapi.yaml":                             {"", [6]int{200, 200, 200, 200, 200, 200}},
}

func TestEveryOperationIsRefusedToWhoIsNotNamed(t *testing.T) {
	s := open(t, guarded)
	headers := [][]string{
		s.key(firstcome.Admin), s.key(firstcome.Service), s.key(firstcome.Viewer), s.token("me"), s.token("other"), nil,
	}
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9}`, headers[0]...).want(t, 201, "")
	s.call("POST", "/v1/campaigns", `{"id":"closing","name":"n","quantity":9}`, headers[0]...).want(t, 201, "")
	s.call("POST", "/v1/campaigns/c/claims", "", headers[3]...).want(t, 201, "issued")

	var tested []string
	for operation, want := range surface {
		tested = append(tested, operation)
		method, path, _ := strings.Cut(operation, " ")
		id := "c"
		if strings.HasSuffix(path, "/close") {
			id = "closing" // for good
		}
		path = strings.NewReplacer("{id}", id, "{user_id}", "me", "{number}", "7", "{letter}", "7").Replace(path)
		for n, caller := range callers {
			if got := s.call(method, path, want.body, headers[n]...); got.status != want.status[n] {
				t.Errorf("%s by %s answers %d, want %d", operation, caller, got.status, want.status[n])
			}
		}
	}
	served := s.server.Operations()
	slices.Sort(tested)
	slices.Sort(served)
	if diff := cmp.Diff(served, tested); diff != "" {
		t.Errorf("served (-) and tested (+) differ:\n%s", diff)
	}
}

func TestAnothersUserAndNothingAtAllLookAlike(t *testing.T) {
	s := open(t, guarded)
	admin, me := s.key(firstcome.Admin), s.token("me")
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9}`, admin...)
	s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"other"}`, admin...).want(t, 201, "issued")
	want := s.call("GET", "/v1/nowhere", "", me...).want(t, 404, "")
	for _, got := range []reply{
		s.call("GET", "/v1/campaigns/none", "", me...),
		s.call("GET", "/v1/campaigns/c/claims/other", "", me...),
		s.call("GET", "/v1/campaigns/c/claims/me", "", me...),
		s.call("GET", "/v1/campaigns/none/claims/me", "", me...),
		s.call("GET", "/v1/users/other/coupons", "", me...),
		s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"other"}`, me...),
		s.call("POST", "/v1/campaigns/none/claims", "", me...),
	} {
		if got.status != 404 || string(got.body) != string(want.body) {
			t.Errorf("it answers %d %s, and of nothing %s", got.status, got.body, want.body)
		}
	}
}

func TestAUserClaimsWithAnEmptyBody(t *testing.T) {
	s := open(t, guarded)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9}`, s.key(firstcome.Admin)...)
	for n, body := range []string{"", "{}", `{"user_id":"me"}`, `{"user_id":"\u006de"}`} {
		r := s.call("POST", "/v1/campaigns/c/claims", body, s.token("me")...)
		if r.text("coupon", "user_id") != "me" || (n == 0) != (r.status == 201) {
			t.Errorf("the body %q gets %d %s", body, r.status, r.body)
		}
	}
	log := s.call("GET", "/v1/audit-log", "", s.key(firstcome.Admin)...)
	if actor := log.items()[0]["actor"].(string); actor != "test" { // the key that was made last
		t.Errorf("the log's last line is by %q", actor)
	}
}

func TestA401SaysHowToAuthenticate(t *testing.T) {
	s := open(t, guarded)
	for _, header := range [][]string{nil, {"Authorization", "Bearer nonsense"}, {"Authorization", "Basic YTpi"}} {
		r := s.call("GET", "/v1/campaigns", "", header...).want(t, 401, "")
		if r.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("the header is %q", r.header.Get("WWW-Authenticate"))
		}
	}
}
