package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// openDead opens a shop with the campaign "winter" of three coupons. The ledger has number 1, of "user-1", and refused
// number 2, of "user-2".
func openDead(t *testing.T) *farShop {
	t.Helper()
	f := openFar(t)
	f.create(`{"id":"winter","name":"Winter sale","quantity":3,"answer":"decided"}`)
	f.claim("winter", "user-1").want(t, 201, "issued")
	f.record("winter")
	f.claim("winter", "user-2").want(t, 201, "issued")
	f.bury("winter", "number 2 is over the quantity of 1")
	return f
}

func TestF44ADeadLetterIsListedAndReplayedOverHTTP(t *testing.T) {
	f := openDead(t)
	if r := f.call("GET", "/v1/campaigns/winter/claims/user-2", ""); r.json("coupon", "recorded") != false {
		t.Errorf("the coupon is %s", r.body)
	}
	letters := f.call("GET", "/v1/dead-letters?campaign=winter", "").items()
	if len(letters) != 1 || letters[0]["number"] != 2.0 || letters[0]["user_id"] != "user-2" || letters[0]["resolved_by"] != nil {
		t.Fatalf("the dead letters are %v", letters)
	}
	if other := f.call("GET", "/v1/dead-letters?campaign=spring", "").items(); len(other) != 0 {
		t.Errorf("those of another campaign are %v", other)
	}
	r := f.call("POST", "/v1/dead-letters/1/replay", "").want(t, 200, "")
	if r.text("resolved_by") != "replayed" || r.text("resolved_at") == "" {
		t.Errorf("the letter is %s", r.body)
	}
	f.call("POST", "/v1/dead-letters/1/replay", "").want(t, 409, "")
	f.call("POST", "/v1/dead-letters/1/void", `{"reason":"r"}`).want(t, 409, "")
	f.call("POST", "/v1/dead-letters/2/replay", "").want(t, 404, "")
	f.call("POST", "/v1/dead-letters/none/replay", "").want(t, 404, "")
	// The ledger has the coupon now, so the user gets it.
	if r := f.call("GET", "/v1/campaigns/winter/claims/user-2", ""); r.json("coupon", "recorded") != true {
		t.Errorf("the coupon is %s", r.body)
	}
	if open := f.call("GET", "/v1/dead-letters", "").items(); len(open) != 0 {
		t.Errorf("open are %v", open)
	}
	all := f.call("GET", "/v1/dead-letters?resolved=include&limit=1", "")
	if len(all.items()) != 1 || all.json("next") != nil {
		t.Errorf("all are %s", all.body)
	}
	f.call("GET", "/v1/dead-letters?resolved=yes", "").want(t, 422, "")
	log := f.call("GET", "/v1/audit-log?campaign=winter", "").items()[0]
	if log["action"] != "dead_letter.replay" || log["number"] != 2.0 {
		t.Errorf("the log says %v", log)
	}
}

func TestADeadLetterThatTheLedgerRefusesAgainIs409WithTheCause(t *testing.T) {
	f := openDead(t)
	// Garbage, and a coupon above the quantity.
	_, err := f.ledger.Recorder.Bury(context.Background(), record.Batch{
		Campaign: "winter", Garbage: []record.Garbage{{Source: "journal/7-0", Payload: "\x00?", Cause: "unknown format"}},
	}, "")
	stage.Must(t, err)
	f.behind(`UPDATE campaigns SET quantity = 1`)
	for path, cause := range map[string]string{"1": "over the quantity of 1", "2": "no coupon in it"} {
		r := f.call("POST", "/v1/dead-letters/"+path+"/replay", "").want(t, 409, "")
		if !strings.Contains(r.text("detail"), cause) {
			t.Errorf("the cause is not %q: %s", cause, r.body)
		}
	}
	if letters := f.call("GET", "/v1/dead-letters?limit=1", ""); len(letters.items()) != 1 || letters.text("next") != "1" {
		t.Errorf("the first page is %s", letters.body)
	}
	letters := f.call("GET", "/v1/dead-letters?after=1", "").items()
	if len(letters) != 1 || letters[0]["number"] != nil || letters[0]["user_id"] != nil || letters[0]["cause"] != "unknown format" {
		t.Errorf("the second page is %v", letters)
	}
	f.call("POST", "/v1/dead-letters/2/void", `{"reason":"looked at"}`).want(t, 200, "")
	f.call("POST", "/v1/dead-letters/2/void", `{"reason":"looked at"}`).want(t, 409, "")
}

func TestAVoidedDeadLettersStockReturnsAndItsNumberNever(t *testing.T) {
	f := openDead(t)
	if r := f.call("POST", "/v1/campaigns/winter/coupons/2/void", `{"reason":"r"}`).want(t, 404, ""); r.status != 404 {
		t.Errorf("it is no coupon of the ledger: %s", r.body)
	}
	f.claim("winter", "user-3").want(t, 201, "issued")
	f.claim("winter", "user-4").want(t, 410, "sold_out")
	f.call("POST", "/v1/dead-letters/1/void", `{}`).want(t, 422, "")
	r := f.call("POST", "/v1/dead-letters/1/void", `{"reason":"answered nobody"}`).want(t, 200, "")
	if r.text("resolved_by") != "voided" {
		t.Errorf("the letter is %s", r.body)
	}
	f.call("GET", "/v1/campaigns/winter/claims/user-2", "").want(t, 404, "")
	if again := f.claim("winter", "user-2").want(t, 201, "issued"); again.number("coupon", "number") != 4 {
		t.Errorf("the next number is %s", again.body)
	}
	f.record("winter")
	if s := f.call("GET", "/v1/campaigns/winter", ""); s.number("in_force") != 3 || s.number("recorded") != 3 || s.number("issued") != 4 {
		t.Errorf("the campaign is %s", s.body)
	}
}

func TestADeadLetterIsReplayedWhileTheGateIsAway(t *testing.T) {
	f := openDead(t)
	f.away(errAway)
	f.call("POST", "/v1/dead-letters/1/replay", "").want(t, 200, "")
	if r := f.call("GET", "/v1/campaigns/winter/claims/user-2", ""); r.json("coupon", "recorded") != true {
		t.Errorf("the coupon is %s", r.body)
	}
}

func TestF20ALetterVoidedWhileTheGateIsAwayIsVoidedThereLater(t *testing.T) {
	f := openDead(t)
	f.away(errAway)
	void := func() reply { return f.call("POST", "/v1/dead-letters/1/void", `{"reason":"r"}`) }
	if r := void().want(t, 503, ""); !strings.Contains(r.text("detail"), "will be done") {
		t.Errorf("it is answered %s", r.body)
	}
	void().want(t, 409, "")
	f.away(nil)
	f.call("POST", "/v1/campaigns/winter/pause", "").want(t, 200, "") // the void must reach the gate first
	f.call("GET", "/v1/campaigns/winter/claims/user-2", "").want(t, 404, "")
}

func TestALedgerThatDecidesHasNoDeadLetters(t *testing.T) {
	s := open(t)
	if r := s.call("GET", "/v1/dead-letters?resolved=include", "").want(t, 200, ""); len(r.items()) != 0 {
		t.Errorf("it has %s", r.body)
	}
	s.call("POST", "/v1/dead-letters/1/void", `{"reason":"r"}`).want(t, 404, "")
}

// openManyDead opens a shop whose campaign "winter" has five open dead letters: three with one cause, one with another, and
// one that arrived after the operator listed them.
func openManyDead(t *testing.T) (f *farShop, through string) {
	t.Helper()
	f = openDead(t)
	f.behind(`UPDATE campaigns SET quantity = 9`)
	f.call("PATCH", "/v1/campaigns/winter", `{"quantity":9}`).want(t, 200, "")
	bury := func(user, cause string) {
		f.claim("winter", user).want(t, 201, "issued")
		f.bury("winter", cause)
	}
	bury("user-3", "number 3 has the terms of version 2, the campaign is at 1")
	bury("user-4", "number 4 is over the quantity of 1")
	bury("user-5", "number 5 is over the quantity of 1")
	causes := f.call("GET", "/v1/dead-letters/causes?campaign=winter", "").want(t, 200, "").items()
	if len(causes) != 2 || causes[0]["cause_code"] != "over_quantity" || causes[0]["open"] != 3.0 || causes[0]["through"] != 4.0 || causes[1]["open"] != 1.0 {
		t.Fatalf("the causes are %v", causes)
	}
	bury("user-6", "number 6 is over the quantity of 1")
	return f, "4"
}

func TestManyDeadLettersAreReplayedByTheirCause(t *testing.T) {
	f, through := openManyDead(t)
	body := `{"campaign_id":"winter","cause_code":"over_quantity","through":` + through + `}`
	r := f.call("POST", "/v1/dead-letters/replay", body).want(t, 200, "")
	if r.number("done") != 3 || r.number("remaining") != 0 || r.json("next") != nil || r.json("stopped") != nil {
		t.Errorf("the answer is %s", r.body)
	}
	open := f.call("GET", "/v1/dead-letters", "").items()
	if len(open) != 2 || open[0]["number"] != 3.0 || open[1]["number"] != 6.0 || open[0]["cause_code"] != "unknown_terms" {
		t.Errorf("open are %v", open)
	}
	if of := f.call("GET", "/v1/dead-letters?cause=unknown_terms", "").items(); len(of) != 1 || of[0]["number"] != 3.0 {
		t.Errorf("of one cause are %v", of)
	}
	if again := f.call("POST", "/v1/dead-letters/replay", body).want(t, 200, ""); again.number("done") != 0 || again.number("remaining") != 0 {
		t.Errorf("done again it is %s", again.body)
	}
	log := f.call("GET", "/v1/audit-log?campaign=winter", "").items()
	for n, number := range []float64{5, 4, 2} {
		if log[n]["action"] != "dead_letter.replay" || log[n]["number"] != number {
			t.Errorf("line %d of the log is %v", n, log[n])
		}
	}
	for body, status := range map[string]int{
		`{}`: 422, `{"campaign_id":"winter","cause_code":"none","through":1}`: 422, `{"campaign_id":"winter","cause_code":"other","through":0}`: 400,
		`{"campaign_id":"winter","cause_code":"other","through":1,"reason":"r"}`: 422,
	} {
		f.call("POST", "/v1/dead-letters/replay", body).want(t, status, "")
	}
	f.call("GET", "/v1/dead-letters?cause=none", "").want(t, 422, "")
}

// TestManyDeadLettersAreVoidedByTheirCause has a dead letter that cannot be replayed, and a gate that stops answering.
func TestManyDeadLettersAreVoidedByTheirCause(t *testing.T) {
	f, through := openManyDead(t)
	body := `{"campaign_id":"winter","cause_code":"over_quantity","through":` + through
	f.call("POST", "/v1/dead-letters/void", body+`}`).want(t, 422, "")
	f.away(errAway)
	f.call("POST", "/v1/dead-letters/void", body+`,"reason":"r"}`).want(t, 200, "")
	f.call("POST", "/v1/dead-letters/void", body+`,"reason":"r"}`).want(t, 503, "")
	f.away(nil)
	r := f.call("POST", "/v1/dead-letters/void", body+`,"reason":"a bad entry"}`).want(t, 200, "")
	if r.number("done") != 2 || r.number("remaining") != 0 || r.json("next") != nil || r.json("stopped") != nil {
		t.Errorf("the answer is %s", r.body)
	}
	log := f.call("GET", "/v1/audit-log?campaign=winter", "").items()
	for n, number := range []float64{5, 4} {
		if log[n]["action"] != "dead_letter.void" || log[n]["number"] != number || log[n]["detail"].(map[string]any)["reason"] != "a bad entry" {
			t.Errorf("line %d of the log is %v", n, log[n])
		}
	}
	if s := f.call("GET", "/v1/campaigns/winter", ""); s.number("in_force") != 3 {
		t.Errorf("the campaign is %s", s.body)
	}
}

// TestALetterThatIsRefusedAgainDoesNotKeepTheOthersBack lowers the quantity, so that the ledger refuses two of three letters again.
func TestALetterThatIsRefusedAgainDoesNotKeepTheOthersBack(t *testing.T) {
	f, through := openManyDead(t)
	f.behind(`UPDATE campaigns SET quantity = 2`)
	r := f.call("POST", "/v1/dead-letters/replay", `{"campaign_id":"winter","cause_code":"over_quantity","through":`+through+`}`).want(t, 200, "")
	if r.number("done") != 1 || r.number("remaining") != 0 || len(r.json("refused").([]any)) != 2 {
		t.Errorf("the answer is %s", r.body)
	}
	if open := f.call("GET", "/v1/dead-letters", "").items(); len(open) != 4 {
		t.Errorf("open are %v", open)
	}
}
