package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// vouchers are prizes: a drink with an imported code, a coupon of our own, and vouchers.
const vouchers = `[{"id":"drink","name":"A drink","quantity":1,"codes":"imported"},{"id":"own","name":"Our own","quantity":1},{"id":"voucher","name":"A voucher","codes":"imported"}]`

// imported imports CSV.
func (s *shop) imported(path string, codes ...string) reply {
	return s.call("POST", path, "code\n"+strings.Join(codes, "\n")+"\n", "Content-Type", "text/csv")
}

// lists returns a campaign's lists of codes.
func lists(r reply) string {
	all, _ := r.json("codes").([]any)
	text := ""
	for _, one := range all {
		l := one.(map[string]any)
		text += fmt.Sprint(" ", l["prize"], " ", l["entries"], "/", l["needed"])
	}
	return text
}

// TestP11AnImportedCodeIsTheCodeOfItsRank: wherever the winner's coupon is answered, and nowhere else.
func TestP11AnImportedCodeIsTheCodeOfItsRank(t *testing.T) {
	s := open(t)
	stage.Same(t, "the state", "paused", s.create(`{"id":"c","name":"n","quantity":5,"prizes":`+vouchers+`}`).text("state"))
	missing := s.call("POST", "/v1/campaigns/c/resume", "").want(t, 409, "")
	stage.Same(t, "the code", "codes_missing", missing.text("code"))
	if !strings.Contains(missing.text("detail"), "the prize drink lacks 1 of 1, the prize voucher lacks 3 of 3") {
		t.Errorf("the detail is %s", missing.text("detail"))
	}
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["u0"]}`).want(t, 409, "")
	s.imported("/v1/campaigns/c/prizes/drink/codes", "DRINK-1").want(t, 201, "")
	again := s.imported("/v1/campaigns/c/prizes/drink/codes", "DRINK-1").want(t, 200, "")
	stage.Same(t, "the same again", "0 1", fmt.Sprint(again.json("added"), " ", again.json("entries")))
	ndjson := s.call("POST", "/v1/campaigns/c/prizes/voucher/codes", "{\"code\":\"V-1\"}\n{\"code\":\"V\\\"2\"}\n{\"code\":\"V-3\"}\n", "Content-Type", "application/x-ndjson").want(t, 201, "")
	stage.Same(t, "the import", "3 3", fmt.Sprint(ndjson.json("added"), " ", ndjson.json("entries")))
	stage.Same(t, "the lists", " drink 1/1 voucher 3/3", lists(s.call("GET", "/v1/campaigns/c", "").want(t, 200, "")))
	s.call("POST", "/v1/campaigns/c/resume", "").want(t, 200, "")

	want := []string{"DRINK-1", "", "V-1", `V"2`}
	for n, user := range []string{"u1", "u2", "u3"} {
		answers := map[string]any{
			"the claim":              s.claim("c", user).want(t, 201, "issued").json("coupon", "code"),
			"the repeated claim":     s.claim("c", user).want(t, 200, "already_issued").json("coupon", "code"),
			"the claim that is read": s.call("GET", "/v1/campaigns/c/claims/"+user, "").want(t, 200, "already_issued").json("coupon", "code"),
			"the wallet":             s.call("GET", "/v1/users/"+user+"/coupons", "").want(t, 200, "").items()[0]["code"],
			"the chosen coupon":      s.call("GET", "/v1/campaigns/c/coupons?user_id="+user, "").want(t, 200, "").items()[0]["code"],
		}
		if want[n] == "" {
			want[n] = stage.Secret().Code("c", 2) // of our own
		}
		for where, code := range answers {
			stage.Same(t, where+" of "+user, any(want[n]), code)
		}
	}
	direct := s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["u4"]}`).want(t, 200, "").items()[0]["coupon"].(map[string]any)
	stage.Same(t, "the direct issue", any(want[3]), direct["code"])
	export := string(s.call("GET", "/v1/campaigns/c/coupons", "", "Accept", "text/csv").want(t, 200, "").body)
	if !strings.Contains(export, ",DRINK-1,") || !strings.Contains(export, `,"V""2",`) {
		t.Errorf("the export is %s", export)
	}
	for what, r := range map[string]reply{
		"the list": s.call("GET", "/v1/campaigns/c/coupons", "").want(t, 200, ""), "the facts": s.call("GET", "/v1/campaigns/c/facts", "").want(t, 200, ""),
		"the void": s.call("POST", "/v1/campaigns/c/coupons/3/void", `{"reason":"returned"}`).want(t, 200, ""), "the audit log": s.call("GET", "/v1/audit-log", ""),
		"its own code": s.call("GET", "/v1/campaigns/c/coupons?code="+stage.Secret().Code("c", 1), "").want(t, 200, ""),
	} {
		if text := string(r.body); strings.Contains(text, "DRINK-1") || strings.Contains(text, "V-1") || strings.Contains(text, stage.Secret().Code("c", 1)) || strings.Contains(text, stage.Secret().Code("c", 3)) {
			t.Errorf("%s has a code: %s", what, text)
		}
	}
	s.call("POST", "/v1/coupons/find", `{"code":"`+stage.Secret().Code("c", 1)+`"}`).want(t, 404, "") // our own code finds nothing
	s.call("POST", "/v1/coupons/find", `{"code":"`+stage.Secret().Code("c", 2)+`"}`).want(t, 200, "")
	if found := s.call("GET", "/v1/campaigns/c/audit", "").want(t, 200, ""); found.number("breaches", "total") != 0 {
		t.Errorf("the audit finds %s", found.body)
	}
	campaign := s.call("GET", "/v1/campaigns/c", "").want(t, 200, "")
	stage.Same(t, "the quantity after a void", "4 1", fmt.Sprint(campaign.number("quantity"), " ", campaign.number("remaining")))
	stage.Same(t, "a higher quantity", "codes_missing", s.call("PATCH", "/v1/campaigns/c", `{"quantity":5}`).want(t, 409, "").text("code"))
	s.call("PATCH", "/v1/campaigns/c", `{"coupon":{"codes":"imported"}}`).want(t, 422, "")

	execute := services.Beside(t, s.ledger.path)
	stage.Must(t, stage.Err(execute.Exec(`UPDATE code_entries SET sealed = mac WHERE prize_id = 'voucher'`)))
	s.create(`{"id":"d","name":"n","quantity":1,"coupon":{"codes":"imported"}}`)
	s.imported("/v1/campaigns/d/codes", "D-1").want(t, 201, "")
	s.call("POST", "/v1/campaigns/d/resume", "").want(t, 200, "")
	stage.Same(t, "another's code", any("D-1"), s.claim("d", "u1").want(t, 201, "issued").json("coupon", "code"))
}

// TestP11SupportSeesNoImportedCode, while a service and the winner do.
func TestP11SupportSeesNoImportedCode(t *testing.T) {
	s := open(t, guarded)
	operator := s.key(firstcome.Operator)
	do := func(path, body string, header ...string) { s.call("POST", path, body, append(header, operator...)...) }
	do("/v1/campaigns", `{"id":"c","name":"n","quantity":2,"coupon":{"codes":"imported"}}`)
	do("/v1/campaigns/c/codes", "code\nA-1\nA-2\n", "Content-Type", "text/csv")
	do("/v1/campaigns/c/resume", "")
	do("/v1/campaigns/c/claims", `{"user_id":"u1"}`)
	for who, c := range map[string]struct {
		key  []string
		want any
	}{
		"support": {s.key(firstcome.Support), nil}, "service": {s.key(firstcome.Service), "A-1"}, "shop": {s.key(firstcome.Shop), "A-1"},
		"operator": {operator, "A-1"}, "the winner": {s.token("u1"), "A-1"},
	} {
		stage.Same(t, "the claim that "+who+" reads", c.want, s.call("GET", "/v1/campaigns/c/claims/u1", "", c.key...).want(t, 200, "already_issued").json("coupon", "code"))
		stage.Same(t, "the wallet that "+who+" reads", c.want, s.call("GET", "/v1/users/u1/coupons", "", c.key...).want(t, 200, "").items()[0]["code"])
	}
	stage.Same(t, "the coupon that support chooses", any(nil), s.call("GET", "/v1/campaigns/c/coupons?user_id=u1", "", s.key(firstcome.Support)...).want(t, 200, "").items()[0]["code"])
}

// TestAFileThatMayNotBeImportedIs422WithItsLines, and adds nothing.
func TestAFileThatMayNotBeImportedIs422WithItsLines(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":5,"prizes":` + vouchers + `}`)
	s.imported("/v1/campaigns/c/prizes/voucher/codes", "V-1", "V-2").want(t, 201, "")
	for _, c := range []struct{ body, want string }{
		{"code\nA-1\n1.23E+15\nA-1\n", "3 the code was rounded by a spreadsheet, and cannot be recovered from the file: format the column as text, and paste the codes again; 4 the code is also in line 2: delete one of them; "},
		{"code\nA-1\nV-2\n", "3 the code is entry 2 of the list of the prize voucher of the campaign c already; "},
		{"A-1\n", "1 no column has the heading code: write code above the codes; "},
	} {
		r := s.call("POST", "/v1/campaigns/c/prizes/drink/codes", c.body, "Content-Type", "text/csv").want(t, 422, "")
		all, _ := r.json("lines").([]any)
		got := ""
		for _, one := range all {
			l := one.(map[string]any)
			got += fmt.Sprint(l["line"], " ", l["reason"], "; ")
		}
		stage.Same(t, "the lines", c.want, got)
	}
	s.call("POST", "/v1/campaigns/c/prizes/drink/codes", "code\nA\n", "Content-Type", "application/json").want(t, 415, "")
	s.imported("/v1/campaigns/c/prizes/own/codes", "A-1").want(t, 404, "")
	s.imported("/v1/campaigns/c/codes", "A-1").want(t, 404, "")
	s.imported("/v1/campaigns/none/codes", "A-1").want(t, 404, "")
	stage.Same(t, "the lists", " drink 0/1 voucher 2/3", lists(s.call("GET", "/v1/campaigns/c", "").want(t, 200, "")))
	stage.Must(t, stage.Err(services.Beside(t, s.ledger.path).Exec(`UPDATE code_lists SET importing_at = ?`, s.now().UnixMicro())))
	stage.Same(t, "beside another import", "import_running", s.imported("/v1/campaigns/c/prizes/voucher/codes", "V-3").want(t, 409, "").text("code"))
	for _, terms := range []string{`"quantity":null,"coupon":{"codes":"imported"}`, `"quantity":5,"coupon":{"codes":"other"}`, `"quantity":5,"coupon":{"codes":"imported"},"prizes":` + vouchers} {
		s.call("POST", "/v1/campaigns", `{"id":"x","name":"n",`+terms+`}`).want(t, 422, "")
	}
}

// TestP11ADamagedEntryIs503ForItsWinnerOnly damages the second of two codes.
func TestP11ADamagedEntryIs503ForItsWinnerOnly(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":2,"coupon":{"codes":"imported"}}`)
	s.imported("/v1/campaigns/c/codes", "A-1", "A-2").want(t, 201, "")
	s.call("POST", "/v1/campaigns/c/resume", "").want(t, 200, "")
	stage.Must(t, stage.Err(services.Beside(t, s.ledger.path).Exec(`UPDATE code_entries SET sealed = mac WHERE entry = 2`)))
	stage.Same(t, "the first", any("A-1"), s.claim("c", "u1").want(t, 201, "issued").json("coupon", "code"))
	for _, r := range []reply{s.claim("c", "u2"), s.call("GET", "/v1/campaigns/c/claims/u2", "")} {
		stage.Same(t, "the second", "code_unreadable", r.want(t, 503, "").text("code"))
	}
	export := string(s.call("GET", "/v1/campaigns/c/coupons", "", "Accept", "text/csv").want(t, 200, "").body)
	if strings.Count(export, "\n") != 3 || !strings.Contains(export, ",A-1,") || strings.Contains(export, stage.Secret().Code("c", 2)) {
		t.Errorf("the export is %s", export)
	}
}
