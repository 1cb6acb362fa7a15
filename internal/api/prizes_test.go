package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

// drinks are prizes: two drinks, then one coupon of 20 %, then free shipping.
const drinks = `[{"id":"drink","name":"A <free> drink","quantity":2,"benefit":{"item":"drink"}},{"id":"percent","name":"20 %","quantity":1,"benefit":{"percent":20}},{"id":"ship","name":"Free shipping"}]`

// good returns a coupon's number, rank, prize and benefit as text.
func good(coupon any) string {
	c, _ := coupon.(map[string]any)
	prize, _ := c["prize"].(map[string]any)
	return fmt.Sprint(c["number"], " ", c["rank"], " ", prize["id"], " ", prize["name"], " ", c["benefit"])
}

// TestP10ACouponHasThePrizeOfItsRank: wherever a coupon is shown, it has its rank, its prize and the prize's benefit.
func TestP10ACouponHasThePrizeOfItsRank(t *testing.T) {
	s := open(t)
	s.clock.Store(time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC).UnixNano())
	s.create(`{"id":"c","name":"n","quantity":6,"prizes":` + drinks + `}`)
	want := []string{
		"1 1 drink A <free> drink map[item:drink]", "2 2 drink A <free> drink map[item:drink]", "3 3 percent 20 % map[percent:20]", "4 4 ship Free shipping <nil>",
		"5 5 ship Free shipping <nil>",
	}
	for n, user := range []string{"u1", "u2", "u3", "u4"} {
		s.clock.Add(int64(time.Second))
		claimed := s.claim("c", user).want(t, 201, "issued").json("coupon")
		again := s.claim("c", user).want(t, 200, "already_issued").json("coupon")
		read := s.call("GET", "/v1/campaigns/c/claims/"+user, "").want(t, 200, "already_issued").json("coupon")
		wallet := s.call("GET", "/v1/users/"+user+"/coupons", "").want(t, 200, "").items()[0]
		for where, coupon := range map[string]any{"the claim": claimed, "the repeated claim": again, "the claim that is read": read, "the wallet": wallet} {
			stage.Same(t, where+" of "+user, want[n], good(coupon))
		}
	}
	direct := s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["u5"]}`).want(t, 200, "").items()[0]["coupon"]
	stage.Same(t, "the direct issue", want[4], good(direct))
	void := s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"returned"}`).want(t, 200, "")
	stage.Same(t, "the void", want[0], good(void.json()))
	stage.Same(t, "who claims the voided coupon's stock", "6 6 ship Free shipping <nil>", good(s.claim("c", "u6").want(t, 201, "issued").json("coupon")))
	for n, c := range s.call("GET", "/v1/campaigns/c/coupons?voided=include&limit=5", "").want(t, 200, "").items() {
		stage.Same(t, "the list", want[n], good(c))
	}
	facts := s.call("GET", "/v1/campaigns/c/facts?limit=6", "").want(t, 200, "").items()
	for n, f := range facts[:5] {
		stage.Same(t, "the fact", strings.Join(strings.Fields(want[n])[:3], " "), strings.Join(strings.Fields(good(f))[:3], " "))
	}
	stage.Same(t, "the fact of the void", "1 1 drink A <free> drink <nil>", good(facts[5]))
	lines := strings.Split(strings.TrimSpace(string(s.call("GET", "/v1/campaigns/c/coupons", "", "Accept", "application/x-ndjson").want(t, 200, "").body)), "\n")
	if !strings.Contains(lines[1], `"number":3,"rank":3,`) || !strings.Contains(lines[1], `"prize":{"id":"percent","name":"20 %"},"benefit":{"percent":20},`) {
		t.Errorf("the export has %s", lines[1])
	}
}

// TestACampaignTellsWhatIsGivenOfEachPrize also after coupons were voided.
func TestACampaignTellsWhatIsGivenOfEachPrize(t *testing.T) {
	s := open(t)
	s.clock.Store(time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC).UnixNano())
	prizes := func(r reply) (all []string) {
		list, _ := r.json("prizes").([]any)
		for _, p := range list {
			p := p.(map[string]any)
			all = append(all, fmt.Sprint(p["id"], " ", p["quantity"], " ", p["from"], " ", p["to"], " ", p["given"], " ", p["ran_out_at"]))
		}
		return all
	}
	same := func(what string, r reply, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, prizes(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	same("the new campaign", s.create(`{"id":"c","name":"n","quantity":null,"prizes":`+drinks+`}`), "drink 2 1 2 0 <nil>", "percent 1 3 3 0 <nil>", "ship <nil> 4 <nil> 0 <nil>")
	for _, user := range []string{"u1", "u2"} {
		s.clock.Add(int64(time.Second))
		s.claim("c", user).want(t, 201, "issued")
	}
	s.call("POST", "/v1/campaigns/c/coupons/2/void", `{"reason":"returned"}`).want(t, 200, "")
	same("after two coupons", s.call("GET", "/v1/campaigns/c", ""), "drink 2 1 2 2 2026-12-24T10:00:02.000000Z", "percent 1 3 3 0 <nil>", "ship <nil> 4 <nil> 0 <nil>")
	for _, user := range []string{"u3", "u4", "u5"} {
		s.clock.Add(int64(time.Second))
		s.claim("c", user).want(t, 201, "issued")
	}
	want := []string{"drink 2 1 2 2 2026-12-24T10:00:02.000000Z", "percent 1 3 3 1 2026-12-24T10:00:03.000000Z", "ship <nil> 4 <nil> 2 <nil>"}
	same("after five coupons", s.call("GET", "/v1/campaigns/c", ""), want...)
	same("a change", s.call("PATCH", "/v1/campaigns/c", `{"name":"m"}`).want(t, 200, ""), want...)
	s.create(`{"id":"plain","name":"n","quantity":1}`)
	list := s.call("GET", "/v1/campaigns", "").want(t, 200, "").items()
	if list[0]["prizes"].([]any)[1].(map[string]any)["given"] != 1. || list[1]["prizes"] != nil {
		t.Errorf("the list has %v and %v", list[0]["prizes"], list[1]["prizes"])
	}
	terms := s.call("GET", "/v1/campaigns/c/changes", "").want(t, 200, "").items()[0]["terms"].(map[string]any)["prizes"]
	if diff := cmp.Diff(any(map[string]any{"id": "percent", "name": "20 %", "quantity": 1., "benefit": map[string]any{"percent": 20.}}), terms.([]any)[1]); diff != "" {
		t.Errorf("the change (-want +got):\n%s", diff)
	}
}

// prize returns a prize with a quantity that fits.
func prize(id string) string { return `{"id":"` + id + `","name":"n","quantity":1}` }

func TestPrizesThatMayNotStandAre422AndNameTheField(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":5}`)
	last := `{"id":"last","name":"n"}`
	many := make([]string, 18)
	for n := range many {
		many[n] = prize(fmt.Sprint("p", n))
	}
	for _, row := range []struct {
		prizes string // of a campaign with a quantity of 5
		status int
		wrong  map[string]string // the reason of each field
	}{
		{`[]`, 422, map[string]string{"prizes": "must have 1 to 16 prizes, or be null for none"}},
		{`[` + strings.Join(many, ",") + `]`, 422, map[string]string{"prizes": "must have 1 to 16 prizes, or be null for none"}},
		{`[` + strings.Repeat("{},", 20_000) + last + `]`, 422, map[string]string{"prizes": "must have 1 to 16 prizes, or be null for none"}},
		{`[` + prize("a") + `,` + prize("a") + `,` + last + `]`, 422, map[string]string{"prizes[1].id": "is the id of an earlier prize: choose another one"}},
		{`[{"id":"a","name":"n"},` + prize("b") + `,{"id":"c","name":"n","quantity":0},{"id":"d","name":"n","quantity":null},` + last + `]`, 422, map[string]string{
			"prizes[0].quantity": "must be 1 to 1000000000000: only the last prize has none", "prizes[2].quantity": "must be 1 to 1000000000000: only the last prize has none",
			"prizes[3].quantity": "must be 1 to 1000000000000: only the last prize has none",
		}},
		{`[{"id":"a","name":"n","quantity":-1},{"id":"b","name":"n","quantity":1000000000001},{"id":"c","name":"n","quantity":99999999999999999999},` + last + `]`, 422, map[string]string{
			"prizes[0].quantity": "must be 1 to 1000000000000: only the last prize has none", "prizes[1].quantity": "must be 1 to 1000000000000: only the last prize has none",
			"prizes[2].quantity": "must be 1 to 1000000000000: only the last prize has none",
		}},
		{`[{"id":"a","name":"n","quantity":3},{"id":"b","name":"n","quantity":3},` + last + `]`, 422, map[string]string{"quantity": "must be at least 6, the sum of the prizes' quantities"}},
		{`[` + prize("a") + `]`, 422, map[string]string{"prizes[0].quantity": "must be left out: the last prize has what the others leave of the campaign's quantity"}},
		{`[{"id":"a","name":"n","quantity":0}]`, 422, map[string]string{"prizes[0].quantity": "must be left out: the last prize has what the others leave of the campaign's quantity"}},
		{`[{"name":"n","quantity":1},{"id":"b"}]`, 422, map[string]string{"prizes[0].id": "is required", "prizes[1].name": "is required"}},
		{`[{"id":"A b","name":"","quantity":1},{"id":"b","name":"` + strings.Repeat("n", 201) + `"}]`, 422, map[string]string{
			"prizes[0].id": "…", "prizes[0].name": "must have 1 to 200 bytes", "prizes[1].name": "must have 1 to 200 bytes",
		}},
		{`[{"id":"a","name":"n","quantity":1,"benefit":"` + strings.Repeat("b", 9000) + `"},{"id":"b","name":"n","benefit":"` + strings.Repeat("b", 9000) + `"}]`, 422, map[string]string{"prizes": "must have benefits of at most 16384 bytes in all"}},
		{`[{"id":"a","name":"n","worth":1}]`, 422, map[string]string{"prizes[0].worth": "there is no such field"}},
		{`{}`, 400, map[string]string{"prizes": "must be an array or null"}},
		{`[` + prize("a") + `,null,"b",` + last + `]`, 400, map[string]string{"prizes[1]": "must be an object", "prizes[2]": "must be an object"}},
		{`[{"id":1,"name":null,"quantity":"1"},{"id":"b","name":"n","quantity":1.5}]`, 400, map[string]string{
			"prizes[0].id": "must be a string", "prizes[0].name": "must be a string", "prizes[0].quantity": "must be an integer or null", "prizes[1].quantity": "must be an integer or null",
		}},
	} {
		for what, r := range map[string]reply{
			"a new campaign": s.call("POST", "/v1/campaigns", `{"name":"n","quantity":5,"prizes":`+row.prizes+`}`),
			"a change":       s.call("PATCH", "/v1/campaigns/c", `{"quantity":5,"prizes":`+row.prizes+`}`),
		} {
			wrong := r.reasons()
			if _, form := row.wrong["prizes[0].id"]; form && wrong["prizes[0].id"] != "" && row.wrong["prizes[0].id"] == "…" {
				wrong["prizes[0].id"] = "…"
			}
			if diff := cmp.Diff(row.wrong, wrong); r.status != row.status || diff != "" || len(r.places()) != len(row.wrong) {
				t.Errorf("%s with %.120s answers %d (-want +got):\n%s", what, row.prizes, r.status, diff)
			}
		}
	}
	s.call("PATCH", "/v1/campaigns/c", `{"prizes":[{"id":"a","name":"n","benefit":{]`).want(t, 400, "")
	if version := s.call("GET", "/v1/campaigns/c", "").number("version"); version != 1 {
		t.Errorf("the campaign has changed: version %d", version)
	}
}

// TestPrizesAndABenefitOfAllExcludeEachOther, and a quantity that no longer covers the prizes is refused.
func TestPrizesAndABenefitOfAllExcludeEachOther(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":5,"coupon":{"benefit":{"percent":10}}}`)
	const reason = "must be null beside prizes: each prize has its own benefit"
	stage.Same(t, "prizes alone", reason, s.call("PATCH", "/v1/campaigns/c", `{"prizes":`+drinks+`}`).want(t, 422, "").reasons()["coupon.benefit"])
	s.call("PATCH", "/v1/campaigns/c", `{"prizes":`+drinks+`,"coupon":{"benefit":null}}`).want(t, 200, "")
	stage.Same(t, "a benefit alone", reason, s.call("PATCH", "/v1/campaigns/c", `{"coupon":{"benefit":1}}`).want(t, 422, "").reasons()["coupon.benefit"])
	less := s.call("PATCH", "/v1/campaigns/c", `{"quantity":2}`).want(t, 422, "")
	stage.Same(t, "a quantity below the prizes", "must be at least 3, the sum of the prizes' quantities", less.reasons()["quantity"])
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":3}`).want(t, 200, "")
	if r := s.call("PATCH", "/v1/campaigns/c", `{"prizes":null}`).want(t, 200, ""); r.json("prizes") != nil {
		t.Errorf("taken away they are %v", r.json("prizes"))
	}
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":2,"coupon":{"benefit":1}}`).want(t, 200, "")
}

// TestPrizesMoveOnlyUntilANumberWasGiven: names and benefits change always, and a coupon keeps those of its own terms.
func TestPrizesMoveOnlyUntilANumberWasGiven(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9,"prizes":` + drinks + `}`)
	change := func(status int, prizes string) reply {
		t.Helper()
		return s.call("PATCH", "/v1/campaigns/c", `{"prizes":`+prizes+`}`).want(t, status, "")
	}
	change(200, strings.Replace(drinks, `"quantity":2`, `"quantity":3`, 1))
	change(200, drinks)
	first := s.claim("c", "before").want(t, 201, "issued")
	version := s.call("GET", "/v1/campaigns/c", "").number("version")
	for what, prizes := range map[string]string{
		"another quantity": strings.Replace(drinks, `"quantity":2`, `"quantity":3`, 1),
		"another id":       strings.Replace(drinks, `"id":"ship"`, `"id":"shipping"`, 1),
		"another order":    `[{"id":"percent","name":"20 %","quantity":1},{"id":"drink","name":"A drink","quantity":2},{"id":"ship","name":"Free shipping"}]`,
		"one more":         strings.Replace(drinks, `{"id":"ship","name":"Free shipping"}`, `{"id":"ship","name":"Free shipping","quantity":1},{"id":"rest","name":"The rest"}`, 1),
		"none":             `null`,
	} {
		if r := change(409, prizes); r.text("code") != "prizes_fixed" || !strings.Contains(r.text("detail"), "Names and benefits can still be changed") {
			t.Errorf("%s: %s", what, r.body)
		}
	}
	now := s.call("GET", "/v1/campaigns/c", "")
	if list := now.json("prizes").([]any); len(list) != 3 || list[0].(map[string]any)["quantity"] != 2. {
		t.Errorf("a change that was refused has left %v", list)
	}
	if refused := s.call("GET", fmt.Sprint("/v1/campaigns/c/changes?after=", version), "").items(); len(refused) != 0 {
		t.Errorf("SQL refuses at once, and the changes have %v", refused)
	}
	change(200, strings.NewReplacer("A <free> drink", "A coffee", `{"item":"drink"}`, `{"item":"coffee"}`).Replace(drinks))
	stage.Same(t, "a later coupon", "2 2 drink A coffee map[item:coffee]", good(s.claim("c", "after").want(t, 201, "issued").json("coupon")))
	stage.Same(t, "the earlier coupon", good(first.json("coupon")), good(s.claim("c", "before").want(t, 200, "already_issued").json("coupon")))
	for where, items := range map[string][]map[string]any{
		"the facts": s.call("GET", "/v1/campaigns/c/facts", "").want(t, 200, "").items(), "the list": s.call("GET", "/v1/campaigns/c/coupons", "").want(t, 200, "").items(),
	} {
		for n, want := range []string{"A <free> drink", "A coffee"} {
			stage.Same(t, where, any(want), items[n]["prize"].(map[string]any)["name"])
		}
	}
	stage.Same(t, "the export", "A <free> drink, A coffee", strings.Join([]string{s.table(',', "", "Accept", "text/csv")[1][16], s.table(',', "", "Accept", "text/csv")[2][16]}, ", "))
	s.create(`{"id":"plain","name":"n","quantity":9}`)
	s.claim("plain", "u").want(t, 201, "issued")
	late := s.call("PATCH", "/v1/campaigns/plain", `{"prizes":`+drinks+`}`)
	stage.Same(t, "prizes after a number", []any{http.StatusConflict, "prizes_fixed"}, []any{late.status, late.text("code")})
}

// TestAnExportForSpreadsheetsHasRankAndPrize in columns of their own, in both languages.
func TestAnExportForSpreadsheetsHasRankAndPrize(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9,"prizes":[{"id":"2-4","name":"=1+1","quantity":1,"benefit":{"n":1}},{"id":"rest","name":"나머지"}]}`)
	s.claim("c", "u1").want(t, 201, "issued")
	s.claim("c", "u2").want(t, 201, "issued")
	exact := s.table(',', "", "Accept", "text/csv")
	sheet := s.table(',', "?excel=1")
	for n, want := range [][]string{{"benefit", "rank", "prize_id", "prize_name"}, {`{"n":1}`, "1", "2-4", "=1+1"}, {"null", "2", "rest", "나머지"}} {
		if diff := cmp.Diff(want, append(exact[n][5:6:6], exact[n][14:]...)); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", n, diff)
		}
	}
	if diff := cmp.Diff([]string{"1", `="2-4"`, "'=1+1"}, sheet[1][14:]); diff != "" {
		t.Errorf("for Excel (-want +got):\n%s", diff)
	}
	s.create(`{"id":"plain","name":"n","quantity":9}`)
	s.claim("plain", "u").want(t, 201, "issued")
	if rows := string(s.call("GET", "/v1/campaigns/plain/coupons", "", "Accept", "text/csv").want(t, 200, "").body); !strings.HasSuffix(rows, ",1,,\n") {
		t.Errorf("without prizes it is %s", rows)
	}
}

// TestTheAuditLogSaysHowManyNumbersHaveNoRank edits the ledger's rows as a rebuild writes them.
func TestTheAuditLogSaysHowManyNumbersHaveNoRank(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	s.call("PATCH", "/v1/campaigns/c", `{"name":"m"}`).want(t, 200, "")
	s.behind(`UPDATE audit_log SET detail = '{"old":{"name":"n","answer":"recorded","skips":[{"after":50,"skipped":20}]},"new":{"name":"n","answer":"recorded","skips":[{"after":50,"skipped":20},{"after":90,"skipped":27}]}}' WHERE action = 'campaign.update'`)
	line := s.call("GET", "/v1/audit-log", "").want(t, 200, "").items()[0]
	if diff := cmp.Diff(map[string]any{"old": map[string]any{}, "new": map[string]any{}, "detail": map[string]any{"skipped": 7.}}, map[string]any{"old": line["old"], "new": line["new"], "detail": line["detail"]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAGateBesideTheLedgerRefusesPrizesThatMove because it has given a number that the ledger does not know yet.
func TestAGateBesideTheLedgerRefusesPrizesThatMove(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":9,"answer":"decided","prizes":[{"id":"drink","name":"A drink","quantity":1},{"id":"ship","name":"Free shipping"}]}`)
	stage.Same(t, "the coupon", "1 1 drink A drink <nil>", good(f.claim("c", "u").want(t, 201, "issued").json("coupon")))
	first := func() map[string]any {
		return f.call("GET", "/v1/campaigns/c", "").want(t, 200, "").json("prizes").([]any)[0].(map[string]any)
	}
	stage.Same(t, "what only the gate knows", []any{1., nil}, []any{first()["given"], first()["ran_out_at"]})
	moved := f.call("PATCH", "/v1/campaigns/c", `{"prizes":[{"id":"drink","name":"A drink","quantity":2},{"id":"ship","name":"Free shipping"}]}`).want(t, 409, "")
	stage.Same(t, "the refusal", "prizes_fixed", moved.text("code"))
	refused := f.call("GET", "/v1/campaigns/c/changes?after=1", "").items()[0]
	logged := f.call("GET", "/v1/audit-log?campaign=c", "").items()[0]
	stage.Same(t, "the change and its line in the log", []any{true, any(map[string]any{"refused": true})}, []any{refused["refused"], logged["detail"]})
	f.call("PATCH", "/v1/campaigns/c", `{"prizes":[{"id":"drink","name":"Coffee","quantity":1},{"id":"ship","name":"Free shipping"}]}`).want(t, 200, "")
	stage.Same(t, "the earlier coupon", "1 1 drink A drink <nil>", good(f.claim("c", "u").want(t, 200, "already_issued").json("coupon")))
	stage.Same(t, "the next coupon", "2 2 ship Free shipping <nil>", good(f.claim("c", "v").want(t, 201, "issued").json("coupon")))
	f.record("c")
	if first()["ran_out_at"] == nil || first()["name"] != "Coffee" {
		t.Errorf("recorded it is %v", first())
	}
}
