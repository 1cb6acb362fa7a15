package ledger_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestClaimsAndADirectIssueOfALineShareATransaction: whoever joins in it may be issued a coupon past the line in it.
func TestClaimsAndADirectIssueOfALineShareATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := haltingLedger(t, file(t))
		paced(t, l.Ledger, 9, 1)
		create(t, l.Ledger, "other", 1)
		l.during(func() { claim(t, l.Ledger.Gate, "other", "a") },
			func() { stage.Same(t, "joining", "waiting:0 waiting:0", claim(t, l.Ledger.Gate, "c", "a", "b")) },
			func() {
				d, err := l.Gate.Issue(context.Background(), gate.Order{Actor: "test"}, "c", users("b", "x"))
				if err != nil || d[0].Outcome != firstcome.Issued || d[1].Coupon.Number != 2 || d[1].InLine != 1 {
					t.Errorf("direct: %+v, %v", d, err)
				}
			},
			func() {
				stage.Same(t, "again", "waiting:0 already_issued:1 waiting:0", claim(t, l.Ledger.Gate, "c", "a", "b", "d"))
			})
		stage.Same(t, "calls in the last transaction", 3, l.committed[len(l.committed)-1])
		if state := keepsPlaces(t, l.Ledger); state.Line.Waiting != 2 || state.Line.LastTicket != 3 || state.Line.Served != 1 {
			t.Errorf("%+v", state.Line)
		}
	})
}

// TestWhoJoinsBesideADamagedCampaignJoinsOnce: the schema refuses a claim of d, so that the transaction is halved.
func TestWhoJoinsBesideADamagedCampaignJoinsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := file(t)
		l, db := haltingLedger(t, path), services.Beside(t, path)
		paced(t, l.Ledger, 9, 0)
		create(t, l.Ledger, "d", 9)
		create(t, l.Ledger, "other", 1)
		execute(t, db, `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES ('d', 1, 'z', 'x', 1, 1, 1, 1)`)
		l.during(func() { claim(t, l.Ledger.Gate, "other", "a") },
			func() { stage.Same(t, "joining", "waiting:0 waiting:0", claim(t, l.Ledger.Gate, "c", "a", "b")) },
			func() {
				if d, err := l.Gate.Claim(context.Background(), "d", users("a")); err == nil {
					t.Errorf("the damaged one decided %+v", d)
				}
			},
			func() { stage.Same(t, "joining behind", "waiting:0 waiting:0", claim(t, l.Ledger.Gate, "c", "b", "e")) })
		if state := keepsPlaces(t, l.Ledger); state.Line.Waiting != 3 || state.Line.LastTicket != 3 {
			t.Errorf("%+v", state.Line)
		}
	})
}

// TestAJoinIsCountedInTheLineThatIsThere has somebody end a ticket behind the writer, before the next one joins.
func TestAJoinIsCountedInTheLineThatIsThere(t *testing.T) {
	path := file(t)
	l := start(t, path, nil)
	paced(t, l, 9, 0)
	stage.Same(t, "joining", "waiting:0 waiting:0", claim(t, l.Gate, "c", "a", "b"))
	execute(t, services.Beside(t, path), `UPDATE tickets SET ended_at = joined_at, outcome = 'left' WHERE ticket = 1`, `UPDATE campaigns SET waiting = 1`)
	stage.Same(t, "joining behind", "waiting:0", claim(t, l.Gate, "c", "d"))
	stage.Same(t, "in line", int64(2), keepsPlaces(t, l).Line.Waiting)
}

// TestWhoHoldsACouponAlreadyIsNotServed has somebody record a coupon of a user in line by hand.
func TestWhoHoldsACouponAlreadyIsNotServed(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		paced(t, l, 9, 0)
		stage.Same(t, "joining", "waiting:0 waiting:0 waiting:0", claim(t, l.Gate, "c", "a", "b", "d"))
		execute(t, services.Beside(t, name),
			`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES ('c', 1, 'b', 'x', 1, 1, 1, 1)`,
			`UPDATE campaigns SET in_force = 1, issued = 1, last_number = 1, position = 1 WHERE id = 'c'`)
		served, err := l.Gate.Serve(t.Context(), "c", 9)
		if err != nil || served.Waiting != 0 || len(served.Coupons) != 2 || served.Coupons[1].Number != 3 || served.Coupons[1].Ticket != 3 {
			t.Errorf("%+v, %v", served, err)
		}
		state, err := l.Gate.LineOf(t.Context(), "c")
		stage.Must(t, err)
		stage.Same(t, "served", int64(3), state.Line.Served)
		stage.Same(t, "claims", "already_issued:2 already_issued:1 already_issued:3", claim(t, l.Gate, "c", "a", "b", "d"))
	})
}

// TestTheLinesOfAnotherGateAreNotServed: a node has the lines that it decides.
func TestTheLinesOfAnotherGateAreNotServed(t *testing.T) {
	path := file(t)
	l := start(t, path, nil)
	for _, id := range []firstcome.CampaignID{"c", "gate", "secret", "empty"} {
		stage.Must(t, l.Campaigns.Create(t.Context(), "test", id, withPace(9, 0)))
		if id != "empty" {
			stage.Same(t, "joining", "waiting:0", claim(t, l.Gate, id, "a"))
		}
	}
	execute(t, services.Beside(t, path), `UPDATE campaigns SET gate = 'redis:x' WHERE id = 'gate'`, `UPDATE campaigns SET secret = 'x' WHERE id = 'secret'`)
	var found []firstcome.CampaignID
	stage.Must(t, l.Gate.Lines(t.Context(), func(id firstcome.CampaignID) { found = append(found, id) }))
	stage.Same(t, "lines", 1, len(found))
	stage.Same(t, "the line", firstcome.CampaignID("c"), found[0])
	for _, id := range []firstcome.CampaignID{"gate", "secret"} {
		if served, err := l.Gate.Serve(t.Context(), id, 9); err == nil {
			t.Errorf("%s: %+v", id, served)
		}
	}
}
