package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// find asks for a code, in a campaign unless that is empty.
func (s *shop) find(code, campaign string, header ...string) reply {
	s.t.Helper()
	body := `{"code":"` + code + `"}`
	if campaign != "" {
		body = `{"code":"` + code + `","campaign_id":"` + campaign + `"}`
	}
	return s.call("POST", "/v1/coupons/find", body, header...)
}

// TestACouponIsFoundByItsCode with its campaign and without, as people type it, and once it is voided.
func TestACouponIsFoundByItsCode(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":2,"coupon":{"benefit":{"won":5000}}}`)
	s.create(`{"id":"d","name":"n","quantity":2}`)
	code := s.claim("c", "mina").want(t, 201, "issued").text("coupon", "code")
	typed := strings.ToLower(code[:4]) + " - " + code[4:]
	for _, campaign := range []string{"", "c"} {
		for _, text := range []string{code, typed} {
			if r := s.find(text, campaign).want(t, 200, ""); r.text("coupon", "user_id") != "mina" || r.text("coupon", "code") != code || r.number("coupon", "benefit", "won") != 5000 || r.json("reason") != nil {
				t.Errorf("%q in %q finds %s", text, campaign, r.body)
			}
		}
	}
	none := func(r reply) {
		t.Helper()
		if r.want(t, 404, ""); r.text("code") != "no_coupon" {
			t.Errorf("it answers %s", r.body)
		}
	}
	none(s.find(code, "d"))
	none(s.find("7ZK2M0Q9X4T1B8RC", ""))
	none(s.find("7ZK2M0Q9X4T1B8RC", "c"))
	none(s.find(stage.Secret().Code("c", 2), "c"))
	if r := s.find(code, "none").want(t, 404, ""); r.text("code") != "not_found" {
		t.Errorf("in no campaign it answers %s", r.body)
	}
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"returned"}`).want(t, 200, "")
	if r := s.find(code, "").want(t, 200, ""); r.text("coupon", "state") != "voided" {
		t.Errorf("voided it is %s", r.body)
	}
	for body, field := range map[string]string{`{}`: "code", `{"code":"UUUU"}`: "code", `{"code":"` + code + `","campaign_id":"No"}`: "campaign_id", `{"code":"` + code + `","number":1}`: "number"} {
		if r := s.call("POST", "/v1/coupons/find", body).want(t, 422, ""); !strings.Contains(string(r.body), `"field":"`+field+`"`) {
			t.Errorf("%s is %s", body, r.body)
		}
	}
	for _, body := range []string{`{"code":7}`, `{"code":null}`, `{"code":"` + code + `","campaign_id":null}`, `[]`} {
		s.call("POST", "/v1/coupons/find", body).want(t, 400, "")
	}
}

// TestACodeOfAnotherSecretIsToldApart from a code that no coupon has.
func TestACodeOfAnotherSecretIsToldApart(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":2}`)
	code := s.claim("c", "mina").want(t, 201, "issued").text("coupon", "code")
	s.behind(`UPDATE campaigns SET secret = 'another'`)
	if r := s.find(code, "c").want(t, 409, ""); r.text("code") != "other_secret" {
		t.Errorf("in its campaign: %s", r.body)
	}
	if r := s.find(code, "").want(t, 404, ""); r.text("code") != "no_coupon" || !strings.HasSuffix(r.text("detail"), "another secret than this node's, or by an earlier firstcome, were not searched: 1") {
		t.Errorf("in all campaigns: %s", r.body)
	}
	if r := s.call("GET", "/v1/campaigns/c/coupons?code="+code, "").want(t, 409, ""); r.text("code") != "other_secret" {
		t.Errorf("in the list: %s", r.body)
	}
	// With the codes of an earlier build the node's secret is the right one, and the answer must not deny it.
	s.behind(`UPDATE campaigns SET secret = '` + stage.Secret().EarlierFingerprint() + `'`)
	if r := s.find(code, "c").want(t, 409, ""); r.text("code") != "other_secret" || !strings.Contains(r.text("detail"), "or by an earlier firstcome") {
		t.Errorf("of an earlier build: %s", r.body)
	}
}

// An edgeLedger calls a function between the ledger's answer about a code and the gate's.
type edgeLedger struct {
	*ledger.Reads
	then func()
}

func (l *edgeLedger) ByCode(ctx context.Context, id firstcome.CampaignID, code string) (ledger.Holding, error) {
	found, err := l.Reads.ByCode(ctx, id, code)
	if l.then != nil {
		l.then()
	}
	return found, err
}

// TestACodeIsAnsweredAtTheEdgeOfTheGatesLastNumber has a claim get the number, and a recorder record it, after the ledger was read and before the gate
// is, and gates that do not say which number they gave last.
func TestACodeIsAnsweredAtTheEdgeOfTheGatesLastNumber(t *testing.T) {
	edge := &edgeLedger{}
	f := openFar(t, func(s *shop, c *api.Options) {
		edge.Reads = s.ledger.Reads
		c.Ledger = edge
	})
	states := func(hook func(*gate.State) error) {
		f.gate.Set(func() {
			f.gate.States = nil
			if hook != nil {
				f.gate.States = func(_ firstcome.CampaignID, s *gate.State) error { return hook(s) }
			}
		})
	}
	f.create(`{"id":"c","name":"n","quantity":9,"answer":"decided"}`)
	code := func(number int64) string { return stage.Secret().Code("c", number) }
	coming := func(r reply) {
		t.Helper()
		if r.want(t, 503, ""); r.text("code") != "not_recorded" || r.header.Get("Retry-After") == "" {
			t.Errorf("it answers %s", r.body)
		}
	}
	none := func(r reply) {
		t.Helper()
		if r.want(t, 404, ""); r.text("code") != "no_coupon" {
			t.Errorf("it answers %s", r.body)
		}
	}
	none(f.find(code(1), "c"))
	f.claim("c", "user-1").want(t, 201, "issued")
	for _, campaign := range []string{"", "c"} {
		coming(f.find(code(1), campaign))
		none(f.find(code(2), campaign))
	}
	edge.then = func() { f.claim("c", "user-2").want(t, 201, "issued") }
	coming(f.find(code(2), "c"))
	edge.then = func() { f.claim("c", "user-3").want(t, 201, "issued"); f.record("c") }
	coming(f.find(code(3), "c"))
	edge.then = nil
	for what, lost := range map[string]func(*gate.State) error{
		"away":       func(*gate.State) error { return errors.New("away") },
		"gone":       func(s *gate.State) error { s.Gone = true; return nil },
		"unverified": func(s *gate.State) error { s.Unverified = true; return nil },
		"frozen":     func(s *gate.State) error { s.Frozen = true; return nil },
		"rebuilt":    func(s *gate.State) error { s.Epoch++; return nil },
	} {
		t.Run(what, func(t *testing.T) {
			states(lost)
			coming(f.find(code(9), "c"))
		})
	}
	states(nil)
	if r := f.find(code(3), "c").want(t, 200, ""); r.text("coupon", "user_id") != "user-3" {
		t.Errorf("once it is recorded: %s", r.body)
	}
	f.claim("c", "user-4").want(t, 201, "issued")
	f.bury("c", "test")
	reason := func(number int64, want string) {
		t.Helper()
		r := f.find(code(number), "").want(t, 200, "")
		if coupon, is := r.json().(map[string]any)["coupon"]; !is || coupon != nil || r.text("reason") != want || r.number("number") != number || r.text("campaign_id") != "c" {
			t.Errorf("number %d: %s", number, r.body)
		}
	}
	reason(4, "dead_letter")
	f.call("POST", "/v1/dead-letters/1/void", `{"reason":"gone"}`).want(t, 200, "")
	reason(4, "dead_letter_voided")
	f.behind(`INSERT INTO lost VALUES ('c', 5, 2, 2)`)
	reason(6, "lost")
	found, err := client.New(f.url, "").FindCode(t.Context(), "", code(6))
	if err != nil || found.Coupon != nil || found.Reason != "lost" || found.Number != 6 || found.CampaignID != "c" {
		t.Errorf("the client finds %+v, %v", found, err)
	}
}

// A timedLedger has no coupons. It fails a search for a code that has no deadline.
type timedLedger struct{ *ledger.Reads }

func (timedLedger) ByCode(ctx context.Context, _ firstcome.CampaignID, _ string) (ledger.Holding, error) {
	if err := inTime(ctx); err != nil {
		return ledger.Holding{}, err
	}
	return ledger.Holding{}, firstcome.ErrNoCoupon
}

func (timedLedger) Wallet(ctx context.Context, _ firstcome.UserID, _ firstcome.CampaignID, _ int) ([]firstcome.Coupon, error) {
	return nil, inTime(ctx)
}

func inTime(ctx context.Context) error {
	if _, is := ctx.Deadline(); !is {
		return errors.New("it may last as long as its caller waits")
	}
	return nil
}

// TestASearchForACodeEndsInTime although it is a POST, for which the guard sets no end: it may wait for another search, or for a ledger that hangs.
func TestASearchForACodeEndsInTime(t *testing.T) {
	s := open(t, guarded, func(s *shop, c *api.Options) { c.Ledger = timedLedger{s.ledger.Reads} })
	for what, caller := range map[string][]string{"a key": s.key(firstcome.Service), "a user": s.token("mina")} {
		if r := s.find("7ZK2M0Q9X4T1B8RC", "", caller...).want(t, 404, ""); r.text("code") != "no_coupon" {
			t.Errorf("%s: %s", what, r.body)
		}
	}
}

// TestAUserFindsOnlyTheirOwnCoupons on all pages of the wallet.
func TestAUserFindsOnlyTheirOwnCoupons(t *testing.T) {
	s := open(t, guarded)
	admin, mina := s.key(firstcome.Admin), s.token("mina")
	codes := map[string]string{}
	for _, id := range []string{"a", "b", "c"} {
		s.call("POST", "/v1/campaigns", `{"id":"`+id+`","name":"n","quantity":9}`, admin...).want(t, 201, "")
		codes[id] = s.call("POST", "/v1/campaigns/"+id+"/claims", "", mina...).want(t, 201, "issued").text("coupon", "code")
	}
	others := s.call("POST", "/v1/campaigns/a/claims", "", s.token("joon")...).want(t, 201, "issued").text("coupon", "code")
	voided := codes["b"]
	s.call("POST", "/v1/campaigns/b/coupons/1/void", `{"reason":"r"}`, admin...).want(t, 200, "")
	for _, c := range []struct {
		code, campaign string
		found          bool
	}{
		{codes["a"], "", true},
		{codes["c"], "", true},
		{codes["c"], "c", true},
		{codes["c"], "a", false},
		{codes["c"], "none", false},
		{voided, "", false},
		{others, "", false},
		{others, "a", false},
		{stage.Secret().Code("a", 9), "a", false},
		{"7ZK2M0Q9X4T1B8RC", "", false},
	} {
		r := s.find(c.code, c.campaign, mina...)
		if c.found {
			if r.want(t, 200, ""); r.text("coupon", "code") != c.code {
				t.Errorf("%s in %q finds %s", c.code, c.campaign, r.body)
			}
			continue
		}
		// Whether somebody else has it, or nobody, is told alike.
		if r.want(t, 404, ""); r.text("code") != "no_coupon" || r.text("detail") != "no coupon has this code" {
			t.Errorf("%s in %q: %s", c.code, c.campaign, r.body)
		}
	}
	s.behind(`INSERT INTO campaigns (id, version, terms_version, applied, gate, epoch, secret, decided_at, created_at)
		WITH RECURSIVE n AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM n WHERE n < 1000) SELECT printf('b-%04d', n), 1, 1, 1, 'ledger', 1, 'print', 1, 1 FROM n`)
	s.behind(`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
		SELECT id, 1, 'mina', '0123456789ABCDEF', 1, 1, 1, 1 FROM campaigns WHERE id LIKE 'b-%'`)
	if r := s.find(codes["c"], "", mina...).want(t, 200, ""); r.text("coupon", "code") != codes["c"] {
		t.Errorf("after a thousand others it finds %s", r.body)
	}
}
