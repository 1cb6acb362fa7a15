package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

// later claims for a user, and sends the answer when it arrives.
func (f *farShop) later(id, user string) <-chan reply {
	answer := make(chan reply, 1)
	go func() {
		r, err := f.try("POST", "/v1/campaigns/"+id+"/claims", `{"user_id":"`+user+`"}`)
		if err != nil {
			f.t.Error(err)
		}
		answer <- r
	}()
	return answer
}

// TestARefusalNeverNamesTermsThatTheGateRefused reads the terms after the gate has refused a change, and before the ledger has noted that.
func TestARefusalNeverNamesTermsThatTheGateRefused(t *testing.T) {
	f := openFar(t)
	ctx := t.Context()
	const closed, proposed = "2020-01-01T00:00:00.000000Z", "2020-02-02T00:00:00.000000Z"
	// 1. A coupon is issued, and the window closes.
	f.create(`{"id":"c","name":"n","quantity":2,"answer":"decided"}`)
	f.claim("c", "u").want(t, 201, "issued")
	f.call("PATCH", "/v1/campaigns/c", `{"closes_at":"`+closed+`"}`).want(t, 200, "")
	// 2. An operator lowers the quantity below the number of coupons in force, which the ledger does not know yet, and moves the end. The ledger proposes
	// the change.
	_, err := f.ledger.Campaigns.SetTerms(ctx, "operator", "c", 0, func(t *firstcome.Terms) {
		t.Quantity, t.ClosesAt = 0, time.Date(2020, 2, 2, 0, 0, 0, 0, time.UTC)
	})
	stage.Must(t, err)
	// 3. The gate refuses it.
	pending, err := f.ledger.Campaigns.Pending(ctx, "c")
	stage.Must(t, err)
	refused, err := f.gate.Apply(ctx, pending[0])
	stage.Must(t, err)
	if !refused || pending[0].Version != 3 {
		t.Fatalf("the gate took %+v", pending[0])
	}
	// 4. The node that brought the change is stalled. Another node answers with a refusal, and reads the terms for it.
	for _, when := range []string{"before", "after"} {
		r := f.claim("c", "late").want(t, 410, "closed")
		if r.text("closes_at") != closed {
			t.Errorf("%s the note the window closes at %s, want %s; %s was refused", when, r.text("closes_at"), closed, proposed)
		}
		// 5. The first node continues and notes the refusal.
		stage.Must(t, f.ledger.Campaigns.Applied(ctx, pending[0], true))
	}
}

func TestTheGateSaysWhenItsCampaignOpenedAndSoldOut(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":1,"answer":"decided"}`)
	at := f.claim("c", "u").want(t, 201, "issued").text("coupon", "issued_at")
	for _, path := range []string{"/v1/campaigns/c", "/v1/campaigns"} {
		answer := string(f.call("GET", path, "").body)
		for _, field := range []string{"opened_at", "sold_out_at"} {
			if !strings.Contains(answer, `"`+field+`":"`+at+`"`) {
				t.Errorf("%s: %s should be %s: %s", path, field, at, answer)
			}
		}
	}
}

func TestAClaimIsAnsweredOnceItsCouponIsRecorded(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":2}`)
	answer := f.later("c", "u")
	<-f.issued
	if s := f.call("GET", "/v1/campaigns/c", ""); s.number("issued") != 1 || s.number("recorded") != 0 {
		t.Errorf("before it is recorded the campaign says %s", s.body)
	}
	select {
	case r := <-answer:
		t.Fatalf("it was answered %s before it was recorded", r.body)
	default:
	}
	f.record("c")
	r := (<-answer).want(t, 201, "issued")
	if r.json("coupon", "recorded") != true {
		t.Errorf("it was answered %s", r.body)
	}
	again := f.claim("c", "u").want(t, 200, "already_issued")
	if again.json("coupon", "recorded") != true || again.text("coupon", "code") != r.text("coupon", "code") {
		t.Errorf("asking again was answered %s", again.body)
	}
	f.call("GET", "/v1/campaigns/c/claims/u", "").want(t, 200, "already_issued")
}

func TestAClaimThatIsNotRecordedInTimeIs503AndFoundLater(t *testing.T) {
	f := openFar(t, func(s *shop, _ *api.Options) { s.claims.Wait = time.Millisecond })
	f.create(`{"id":"c","name":"n","quantity":2}`)
	for range 2 {
		r := f.claim("c", "u").want(t, 503, "")
		if r.header.Get("Retry-After") == "" || !strings.Contains(r.text("detail"), "Ask again: it is safe") {
			t.Errorf("it is answered %s", r.body)
		}
	}
	f.call("GET", "/v1/campaigns/c/claims/u", "").want(t, 503, "")
	f.record("c")
	f.claim("c", "u").want(t, 200, "already_issued")
}

func TestACampaignThatAnswersWhenDecidedSaysTheTruthAboutRecorded(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":2,"answer":"decided"}`)
	for _, want := range []bool{false, true} {
		if r := f.claim("c", "u"); r.json("coupon", "recorded") != want {
			t.Errorf("recorded should be %v: %s", want, r.body)
		}
		if r := f.call("GET", "/v1/campaigns/c/claims/u", "").want(t, 200, "already_issued"); r.json("coupon", "recorded") != want {
			t.Errorf("recorded should be %v: %s", want, r.body)
		}
		f.record("c")
	}
	issued := f.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["u","v","w"]}`)
	if got := issued.each("outcome"); got != "already_issued issued sold_out" {
		t.Errorf("they are answered %s", got)
	}
}

func TestACampaignShowsTheGatesCountersWhileTheLedgerLags(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":3,"answer":"decided"}`)
	for n := range 3 {
		f.claim("c", fmt.Sprint("u", n)).want(t, 201, "issued")
	}
	f.claim("c", "late").want(t, 410, "sold_out")
	for _, recorded := range []int64{0, 3} {
		one, all := f.call("GET", "/v1/campaigns/c", ""), f.call("GET", "/v1/campaigns", "").items()[0]
		for name, want := range map[string]int64{"in_force": 3, "issued": 3, "recorded": recorded, "remaining": 0} {
			if one.number(name) != want || int64(all[name].(float64)) != want {
				t.Errorf("%s is %v and should be %d: %s", name, all[name], want, one.body)
			}
		}
		if one.text("state") != "sold_out" {
			t.Errorf("the state is %s", one.text("state"))
		}
		f.record("c")
	}
}

func TestF20WhileTheGateIsAwayAChangeIs503AndWillBeDone(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":3}`)
	f.away(errAway)
	r := f.call("POST", "/v1/campaigns/c/close", "").want(t, 503, "")
	if !strings.Contains(r.text("detail"), "will be done") {
		t.Errorf("it is answered %s", r.body)
	}
	if r := f.call("POST", "/v1/campaigns/c/pause", "").want(t, 503, ""); !strings.Contains(r.text("detail"), "nothing was changed") {
		t.Errorf("the next one is answered %s", r.body)
	}
	f.away(nil)
	// Repeating the request finishes the change.
	if s := f.call("POST", "/v1/campaigns/c/close", "").want(t, 200, ""); s.number("version") != 2 {
		t.Errorf("the campaign is %s", s.body)
	}
	f.claim("c", "u").want(t, 410, "closed")
	f.call("POST", "/v1/campaigns/c/pause", "").want(t, 409, "")
}

func TestF20AChangeThatTheGateMissedIsDoneBeforeTheNext(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":3}`)
	f.away(errAway)
	f.call("PATCH", "/v1/campaigns/c", `{"quantity":1}`).want(t, 503, "")
	if s := f.call("GET", "/v1/campaigns/c", ""); s.number("quantity") != 3 || s.number("version") != 2 {
		t.Errorf("a lower quantity is only proposed, and the campaign is %s", s.body)
	}
	f.away(nil)
	if s := f.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, ""); s.number("quantity") != 1 || s.number("version") != 3 {
		t.Errorf("the campaign is %s", s.body)
	}
}

func TestF20ALowerQuantityThanTheGateHasInForceIs409(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":3,"answer":"decided"}`)
	f.claim("c", "u").want(t, 201, "issued")
	f.claim("c", "v").want(t, 201, "issued")
	f.call("PATCH", "/v1/campaigns/c", `{"quantity":1}`).want(t, 409, "") // the ledger knows of no coupon
	s := f.call("GET", "/v1/campaigns/c", "")
	if s.number("quantity") != 3 || s.number("in_force") != 2 {
		t.Errorf("the campaign is %s", s.body)
	}
	changes := f.call("GET", "/v1/campaigns/c/changes", "").items()
	if changes[1]["refused"] != true {
		t.Errorf("the changes are %v", changes)
	}
	f.record("c")
	f.call("PATCH", "/v1/campaigns/c", `{"quantity":2}`).want(t, 200, "")
	f.claim("c", "w").want(t, 410, "sold_out")
	var details []any
	for _, line := range f.call("GET", "/v1/audit-log?campaign=c", "").want(t, 200, "").items() {
		details = append(details, line["detail"])
	}
	if diff := cmp.Diff([]any{map[string]any{}, map[string]any{"refused": true}, map[string]any{}}, details); diff != "" {
		t.Errorf("of the refused change the log says otherwise:\n%s", diff)
	}
}

func TestF20ARefusalThatAnotherNodeNotesFirstIs409(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":3,"answer":"decided"}`)
	f.claim("c", "u").want(t, 201, "issued")
	f.claim("c", "v").want(t, 201, "issued")
	other := func() { // brings the change, which is in the ledger now, to the gate
		f.behind(`UPDATE changes SET refused = TRUE WHERE version = 2`)
		f.behind(`UPDATE campaigns SET applied = 2`)
	}
	f.ledger.committed.Store(&other)
	f.call("PATCH", "/v1/campaigns/c", `{"quantity":1}`).want(t, 409, "")
}

func TestAVoidReachesTheGateAndWaitsForTheLedger(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":1,"answer":"decided"}`)
	f.claim("c", "u").want(t, 201, "issued")
	void := func(number string) reply {
		return f.call("POST", "/v1/campaigns/c/coupons/"+number+"/void", `{"reason":"r"}`)
	}
	if r := void("1").want(t, 503, ""); !strings.Contains(r.text("detail"), "not in the ledger yet") {
		t.Errorf("it is answered %s", r.body)
	}
	void("2").want(t, 404, "")
	f.record("c")
	void("1").want(t, 200, "")
	void("1").want(t, 409, "")
	f.call("GET", "/v1/campaigns/c/claims/u", "").want(t, 404, "")
	if r := f.claim("c", "v").want(t, 201, "issued"); r.number("coupon", "number") != 2 {
		t.Errorf("the number is given again: %s", r.body)
	}
}

func TestOfACampaignThatItsGateHasLostNoFigureOfTheGateIsToldAndItHidesNoOther(t *testing.T) {
	f := openFar(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		f.create(`{"id":"` + id + `","name":"n","quantity":5,"answer":"decided"}`)
		f.claim(id, "u").want(t, 201, "issued")
		f.record(firstcome.CampaignID(id))
		f.claim(id, "v").want(t, 201, "issued") // only the gate knows this coupon
	}
	states := map[firstcome.CampaignID]error{"b": fmt.Errorf("%w: part of it is gone", gate.ErrGone), "c": firstcome.ErrGateMismatch}
	f.gate.Set(func() { f.gate.States = func(id firstcome.CampaignID, _ *gate.State) error { return states[id] } })
	for id, want := range map[string]string{"a": "open ok 2", "b": "unknown lost <nil>", "c": "unknown mismatch <nil>", "d": "open ok 2"} {
		if got := seen(f.call("GET", "/v1/campaigns/"+id, "").want(t, 200, "").json()); got != want {
			t.Errorf("the campaign %s is %q, want %q", id, got, want)
		}
		for _, c := range f.call("GET", "/v1/campaigns", "").want(t, 200, "").items() {
			if c["id"] == id && seen(c) != want {
				t.Errorf("in the list the campaign %s is %q, want %q", id, seen(c), want)
			}
		}
	}
	f.call("POST", "/v1/campaigns/d/close", "").want(t, 200, "")
	f.gate.Set(func() { states["d"] = gate.ErrGone })
	if got := seen(f.call("GET", "/v1/campaigns/d", "").want(t, 200, "").json()); got != "closed lost <nil>" {
		t.Errorf("a lost campaign that an operator closed is %q", got)
	}
}

func TestAListWhileTheGateIsAwayTellsNoFigureOfTheGateAndAsksItOnce(t *testing.T) {
	f := openFar(t)
	for _, id := range []string{"a", "b", "c"} {
		f.create(`{"id":"` + id + `","name":"n","quantity":5}`)
	}
	asked := 0
	f.gate.Set(func() {
		f.gate.States = func(firstcome.CampaignID, *gate.State) error {
			asked++
			return errors.New("it does not answer")
		}
	})
	for _, c := range f.call("GET", "/v1/campaigns", "").want(t, 200, "").items() {
		if got := seen(c); got != "unknown unknown <nil>" {
			t.Errorf("the campaign %s is %q", c["id"], got)
		}
	}
	f.gate.Set(func() {
		if asked != 1 {
			t.Errorf("the gate that does not answer was asked %d times", asked)
		}
	})
	f.call("GET", "/v1/campaigns/a", "").want(t, 503, "")
}

// TestF20ACampaignThatHasNotReachedItsGateIsUnknown creates a campaign while the gate takes no changes, and reads it until the gate has it.
func TestF20ACampaignThatHasNotReachedItsGateIsUnknown(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"a","name":"n","quantity":5}`)
	f.away(errAway)
	f.call("POST", "/v1/campaigns", `{"id":"b","name":"n","quantity":5}`).want(t, 503, "")
	is := func(want string) {
		t.Helper()
		one := f.call("GET", "/v1/campaigns/b", "").want(t, 200, "")
		if got := fmt.Sprint(one.json("state"), " ", one.json("gate_state"), " ", one.json("in_force"), " ", one.json("waiting"), " ", one.json("recorded")); got != want {
			t.Errorf("the campaign is %q, want %q", got, want)
		}
		both := f.call("GET", "/v1/campaigns", "").want(t, 200, "").items()
		if got := seen(both[0]); got != "open ok 0" {
			t.Errorf("the other in the list is %q", got)
		}
		if got := seen(both[1]); !strings.HasPrefix(want, got) {
			t.Errorf("in the list it is %q", got)
		}
		if got := f.call("GET", "/v1/campaigns/b/ledger", "").text("gate_state"); !strings.HasPrefix(want, "unknown "+got) && !strings.HasPrefix(want, "paused "+got) {
			t.Errorf("of the ledger it is %q", got)
		}
	}
	is("unknown unknown <nil> <nil> 0")
	f.away(nil)
	f.call("POST", "/v1/campaigns/b/pause", "").want(t, 200, "") // the creation must reach the gate first
	is("paused ok 0 0 0")
}

// seen returns the parts of a campaign that matter here. If all counts of the gate are known, or none is, it has one count for them.
func seen(campaign any) string {
	c, _ := campaign.(map[string]any)
	counts := fmt.Sprint(c["in_force"])
	if (c["issued"] == nil) != (c["in_force"] == nil) || (c["remaining"] == nil) != (c["in_force"] == nil) {
		counts = fmt.Sprint("in_force ", c["in_force"], ", issued ", c["issued"], ", remaining ", c["remaining"])
	}
	return fmt.Sprint(c["state"], " ", c["gate_state"], " ", counts)
}

func TestF32ANodeWithAnotherGateThanTheCampaignsDecidesNothingAndSaysWhy(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":1,"answer":"decided"}`)
	f.claim("c", "u").want(t, 201, "issued")
	f.bury("c", "a trial")
	f.behind(`UPDATE campaigns SET gate = 'redis:another'`)
	f.gate.Set(func() {
		f.gate.Before = func(context.Context, firstcome.CampaignID) error { return firstcome.ErrGateMismatch }
	})
	for _, r := range []reply{
		f.claim("c", "v"),
		f.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["v"]}`),
		f.call("POST", "/v1/campaigns/c/pause", ""),
		f.call("PATCH", "/v1/campaigns/c", `{"quantity":2}`),
		f.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"r"}`),
		f.call("POST", "/v1/dead-letters/1/replay", ""),
		f.call("POST", "/v1/dead-letters/1/void", `{"reason":"r"}`),
	} {
		if r.want(t, 503, ""); !strings.Contains(r.text("detail"), "another gate") {
			t.Errorf("it is answered %s", r.body)
		}
	}
	if s := f.call("GET", "/v1/campaigns/c", ""); s.number("version") != 1 || s.number("recorded") != 0 || seen(s.json()) != "unknown lost <nil>" {
		t.Errorf("the campaign, as the ledger has it, is %s", s.body)
	}
}

func TestAChangeThatTheGateTakesFromOthersOnlyIsSaidToBeInTheLedger(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":1}`)
	f.away(firstcome.ErrGateMismatch)
	for id, r := range map[string]reply{
		"c":     f.call("POST", "/v1/campaigns/c/pause", ""),
		"newer": f.call("POST", "/v1/campaigns", `{"id":"newer","name":"n","quantity":1}`),
	} {
		r.want(t, 503, "")
		for _, says := range []string{"in the ledger", "Not by this node", "the newer firstcome"} {
			if !strings.Contains(r.text("detail"), says) {
				t.Errorf("it is answered %s, which does not say %q", r.body, says)
			}
		}
		if s := f.call("GET", "/v1/campaigns/"+id, "").want(t, 200, ""); s.number("version") == 0 {
			t.Errorf("the ledger has %s", s.body)
		}
	}
}
