//go:build !check && (!race || soak)

package api_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// callers are all kinds of callers.
var callers = []string{"admin", "operator", "support", "viewer", "service", "shop", "the user", "another user", "nobody"}

// me is the user of the table: a text that no answer has by accident.
const me = "user-4711"

// surface says, by hand, what each of callers gets from each operation about the user me, in that order. ids says how the 2xx answers name the user:
// a letter for each caller, w for whole, m for masked and - for not at all; an empty text means - for all.
var surface = []struct {
	operation, query, accept, body string
	status                         [9]int
	ids                            string
	code                           bool // an error that names the user
}{
	{operation: "POST /v1/campaigns", body: `{"name":"n","quantity":1}`, status: runs(201)},
	{operation: "GET /v1/campaigns", status: [9]int{200, 200, 200, 200, 403, 403, 403, 403, 401}},
	{operation: "GET /v1/campaigns/{id}", status: [9]int{200, 200, 200, 200, 200, 200, 200, 200, 401}},
	{operation: "PATCH /v1/campaigns/{id}", body: `{"name":"m"}`, status: runs(200)},
	{operation: "POST /v1/campaigns/{id}/pause", status: runs(200)},
	{operation: "POST /v1/campaigns/{id}/resume", status: runs(200)},
	{operation: "POST /v1/campaigns/{id}/close", status: runs(200)},
	{operation: "POST /v1/campaigns/{id}/rebuild", status: runs(409)},
	{operation: "GET /v1/campaigns/{id}/reconcile", status: runs(409)},
	{operation: "POST /v1/campaigns/{id}/reconcile", status: [9]int{409, 403, 403, 403, 403, 403, 403, 403, 401}},
	{operation: "GET /v1/campaigns/{id}/changes", status: runs(200), ids: "ww-------"},
	{operation: "GET /v1/campaigns/{id}/ledger", status: [9]int{200, 200, 200, 200, 403, 403, 403, 403, 401}},
	{operation: "GET /v1/campaigns/{id}/audit", status: runs(200)},
	{operation: "POST /v1/campaigns/{id}/claims", body: `{"user_id":"user-4711"}`, status: [9]int{200, 200, 403, 403, 200, 200, 200, 404, 401}, ids: "ww--www--"},
	{operation: "GET /v1/campaigns/{id}/claims/{user_id}", status: [9]int{200, 200, 200, 403, 200, 200, 200, 404, 401}, ids: "www-www--"},
	{operation: "GET /v1/campaigns/{id}/claims/{user_id}/events", status: [9]int{200, 200, 200, 403, 200, 200, 200, 404, 401}, ids: "www-www--"},
	{operation: "DELETE /v1/campaigns/{id}/claims/{user_id}", status: [9]int{409, 409, 403, 403, 409, 409, 409, 404, 401}, code: true},
	{operation: "GET /v1/campaigns/{id}/line", status: [9]int{200, 200, 200, 200, 200, 200, 200, 200, 200}},
	{operation: "POST /v1/campaigns/{id}/coupons", body: `{"user_ids":["user-4711"]}`, status: shops(200), ids: "ww---w---"},
	{operation: "GET /v1/campaigns/{id}/coupons", status: looks(200), ids: "wwm------"},
	{operation: "GET /v1/campaigns/{id}/coupons", query: "?number=2", status: looks(200), ids: "wwm------"},
	{operation: "GET /v1/campaigns/{id}/coupons", query: "?voided=include&user_id=user-4711", status: looks(200), ids: "www------"},
	{operation: "GET /v1/campaigns/{id}/coupons", query: "?code={code}", status: looks(200), ids: "www------"},
	{operation: "GET /v1/campaigns/{id}/coupons", accept: "text/csv", status: runs(200), ids: "ww-------"},
	{operation: "GET /v1/campaigns/{id}/coupons", accept: "application/x-ndjson", status: runs(200), ids: "ww-------"},
	{operation: "POST /v1/campaigns/{id}/coupons/{number}/void", body: `{"reason":"r"}`, status: [9]int{404, 404, 404, 403, 403, 404, 403, 403, 401}},
	{operation: "POST /v1/campaigns/{id}/codes", status: runs(422)},
	{operation: "POST /v1/campaigns/{id}/prizes/{prize}/codes", status: runs(422)},
	{operation: "GET /v1/campaigns/{id}/facts", status: shops(200), ids: "ww---w---"},
	{operation: "GET /v1/dead-letters", status: runs(200)},
	{operation: "GET /v1/dead-letters/causes", status: runs(200)},
	{operation: "POST /v1/dead-letters/replay", body: `{"campaign_id":"c","cause_code":"other","through":1}`, status: runs(200)},
	{operation: "POST /v1/dead-letters/void", body: `{"campaign_id":"c","cause_code":"other","through":1,"reason":"r"}`, status: runs(200)},
	{operation: "POST /v1/dead-letters/{letter}/replay", status: runs(404)},
	{operation: "POST /v1/dead-letters/{letter}/void", body: `{"reason":"r"}`, status: runs(404)},
	{operation: "POST /v1/coupons/find", body: `{"code":"{code}"}`, status: [9]int{200, 200, 200, 403, 200, 200, 200, 404, 401}, ids: "www-www--"},
	{operation: "GET /v1/users/{user_id}/coupons", status: [9]int{200, 200, 200, 403, 200, 200, 200, 404, 401}, ids: "www-www--"},
	{operation: "GET /v1/audit-log", status: runs(200), ids: "ww-------"},
	{operation: "GET /", status: [9]int{200, 200, 200, 200, 200, 200, 200, 200, 200}},
	{operation: "GET /livez", status: [9]int{200, 200, 200, 200, 200, 200, 200, 200, 200}},
	{operation: "GET /readyz", status: [9]int{200, 200, 200, 200, 200, 200, 200, 200, 200}},
	{operation: "GET /openapi.yaml", status: [9]int{200, 200, 200, 200, 200, 200, 200, 200, 200}},
}

// runs has the statuses of an operation for operators, looks those of an operation that support may call too, shops those of one for shops.
func runs(status int) [9]int { return [9]int{status, status, 403, 403, 403, 403, 403, 403, 401} }

func looks(status int) [9]int { return [9]int{status, status, status, 403, 403, 403, 403, 403, 401} }

func shops(status int) [9]int { return [9]int{status, status, 403, 403, 403, status, 403, 403, 401} }

// naming returns how an answer names the user.
func (r reply) naming(code string) string {
	text := string(r.body)
	switch {
	case r.status > 299:
		return "-" + strings.Repeat("!", strings.Count(text, me))
	case strings.Contains(text, me):
		return "w"
	case strings.Contains(text, `"u***"`) && !strings.Contains(text, code):
		return "m"
	case strings.Contains(text, code):
		return "a code"
	}
	return "-"
}

func TestEveryOperationIsRefusedToWhoIsNotNamed(t *testing.T) {
	s := open(t, guarded)
	var headers [][]string
	for _, role := range firstcome.Roles() {
		headers = append(headers, s.key(role))
	}
	headers = append(headers, s.token(me), s.token("other"), nil)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9}`, headers[0]...).want(t, 201, "")
	s.call("POST", "/v1/campaigns", `{"id":"closing","name":"n","quantity":9}`, headers[0]...).want(t, 201, "")
	s.call("POST", "/v1/campaigns/c/claims", "", headers[6]...).want(t, 201, "issued")
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"r"}`, headers[0]...).want(t, 200, "")
	code := s.call("POST", "/v1/campaigns/c/claims", "", headers[6]...).want(t, 201, "issued").text("coupon", "code")

	tested := map[string]bool{}
	for _, want := range surface {
		tested[want.operation] = true
		method, path, _ := strings.Cut(want.operation, " ")
		id := "c"
		if strings.HasSuffix(path, "/close") {
			id = "closing" // closing is permanent
		}
		path = strings.NewReplacer("{id}", id, "{user_id}", me, "{number}", "7", "{letter}", "7", "{code}", code).Replace(path + want.query)
		body := strings.ReplaceAll(want.body, "{code}", code)
		for n, caller := range callers {
			header := headers[n]
			if want.accept != "" {
				header = append(header[:len(header):len(header)], "Accept", want.accept)
			}
			got := s.call(method, path, body, header...)
			if got.status != want.status[n] {
				t.Errorf("%s %s by %s answers %d, want %d", method, path, caller, got.status, want.status[n])
			}
			naming := "-"
			if want.code && got.status == 409 {
				naming = "-!"
			}
			if want.ids != "" {
				naming = want.ids[n : n+1]
			}
			if how := got.naming(code); how != naming && want.operation != "GET /openapi.yaml" {
				t.Errorf("%s %s by %s names the user %s, want %s: %s", method, path, caller, how, naming, got.body)
			}
		}
	}
	served := s.server.Operations()
	slices.Sort(served)
	if diff := cmp.Diff(served, slices.Sorted(maps.Keys(tested))); diff != "" {
		t.Errorf("served (-) and tested (+) differ:\n%s", diff)
	}
}

// TestTheTablesOfRolesSayTheSame compares docs/api.md and openapi.yaml with the table above: a role that is not refused may call.
func TestTheTablesOfRolesSayTheSame(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	stage.Must(t, err)
	spec, err := readContract()
	stage.Must(t, err)
	inDocs := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` ((?:\\|[^|\n]*){7})\\|$").FindAllStringSubmatch(string(text), -1) {
		for n, cell := range strings.Split(row[2], "|")[1:] {
			if strings.TrimSpace(cell) != "" {
				inDocs[row[1]] = append(inDocs[row[1]], callers[n])
			}
		}
	}
	want := map[string][]string{}
	for _, row := range surface {
		for n, caller := range callers[:7] {
			if row.accept == "" && row.query == "" && row.status[8] == 401 && row.status[n] != 403 {
				want[row.operation] = append(want[row.operation], caller)
			}
		}
	}
	if diff := cmp.Diff(want, inDocs); diff != "" {
		t.Errorf("docs/api.md (+) says otherwise:\n%s", diff)
	}
	for operation, may := range want {
		method, path, _ := strings.Cut(operation, " ")
		text := spec.Paths.Find(path).Operations()[method].Description
		keys := slices.DeleteFunc(slices.Clone(may), func(caller string) bool { return caller == "the user" })
		sentence := "For the roles " + strings.Join(keys[:len(keys)-1], ", ") + " and " + keys[len(keys)-1]
		if len(keys) == 1 {
			sentence = "For the role " + keys[0]
		}
		if len(keys) == len(firstcome.Roles()) {
			sentence = "For every role"
		}
		if rest, ok := strings.CutPrefix(text, sentence); !ok || strings.HasPrefix(rest, ", and for users themselves") != slices.Contains(may, "the user") {
			t.Errorf("%s: openapi.yaml says %q, and may be called by %v", operation, text, may)
		}
	}
}

// TestSupportVoidsOneCoupon looks a user up as support does, and voids the coupon that it finds.
func TestSupportVoidsOneCoupon(t *testing.T) {
	s := open(t, guarded)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9}`, s.key(firstcome.Admin)...).want(t, 201, "")
	s.call("POST", "/v1/campaigns/c/claims", "", s.token("한국 user")...).want(t, 201, "issued")
	support := s.key(firstcome.Support)
	for _, body := range []string{"", "{}", `{"reason":""}`, `{"reason":" \t"}`} {
		s.call("POST", "/v1/campaigns/c/coupons/1/void", body, support...).want(t, 422, "")
	}
	voided := s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"returned"}`, support...).want(t, 200, "")
	if voided.text("user_id") != "한***" || voided.text("state") != "voided" || !strings.HasSuffix(voided.text("code"), "***") {
		t.Errorf("the answer is %s", voided.body)
	}
	line := s.call("GET", "/v1/audit-log?user_id=%ED%95%9C%EA%B5%AD%20user", "", s.key(firstcome.Operator)...).items()[0]
	if line["action"] != "coupon.void" || line["actor_name"] != "test" || !strings.HasPrefix(line["actor"].(string), "key:") {
		t.Errorf("the log has %v", line)
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
	if actor := log.items()[0]["actor"].(string); actor != "test" { // the key that was created last
		t.Errorf("the log's last line is by %q", actor)
	}
}
