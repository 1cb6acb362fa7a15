package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// became returns what became of a code, as text.
func became(t testing.TB, l *ledger.Ledger, id firstcome.CampaignID, code string) string {
	t.Helper()
	found, err := l.Reads.ByCode(t.Context(), id, code)
	switch {
	case errors.Is(err, firstcome.ErrNoCoupon) && found.Unread > 0:
		return fmt.Sprintf("none, %d unread", found.Unread)
	case errors.Is(err, firstcome.ErrNoCoupon):
		return "none"
	case errors.Is(err, firstcome.ErrNoCampaign):
		return "no campaign"
	case errors.Is(err, ledger.ErrOtherSecret):
		return "another secret"
	case err != nil:
		return err.Error()
	case found.Why != "":
		return fmt.Sprint(found.Campaign, " ", found.Number, " ", found.Why)
	}
	if c := found.Coupon; c.Campaign != found.Campaign || c.Number != found.Number || c.Code != code {
		t.Errorf("%s of %q finds %+v", code, id, found)
	}
	return fmt.Sprint(found.Campaign, " ", found.Number, " of ", found.Coupon.User)
}

// TestACodeFindsItsCoupon with its campaign and without, also if another node created the campaign since the last search.
func TestACodeFindsItsCoupon(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		db := services.Beside(t, name)
		finds := func(id firstcome.CampaignID, code, want string) {
			t.Helper()
			if got := became(t, l, id, code); got != want {
				t.Errorf("%s in %q is %q, and should be %q", code, id, got, want)
			}
		}
		code := stage.Secret().Code
		finds("", code("a", 1), "none")
		finds("a", code("a", 1), "no campaign")
		for _, id := range []firstcome.CampaignID{"b", "a", "c"} { // not in the order of their ids
			create(t, l, id, 9)
			claim(t, l.Gate, id, "mina", "joon")
			finds("", code(id, 1), string(id)+" 1 of mina")
			finds(id, code(id, 2), string(id)+" 2 of joon")
		}
		void(t, l, "a", 1)
		finds("", code("a", 1), "a 1 of mina")
		finds("a", code("a", 1), "a 1 of mina")
		finds("b", code("a", 2), "none")       // of another campaign
		finds("", code("a", 3), "none")        // not given yet
		finds("a", code("a", 3), "none")       // also
		finds("", code("d", 1), "none")        // of no campaign of this ledger
		finds("", "7ZK2M0Q9X4T1B8RC", "none")  // made up
		finds("a", "7ZK2M0Q9X4T1B8RC", "none") // also
		execute(t, db, `UPDATE coupons SET code = '7ZK2M0Q9X4T1B8RC' WHERE campaign_id = 'a' AND number = 2`)
		finds("", code("a", 2), "none") // the ledger has another code under this number
		finds("a", code("a", 2), "none")
		execute(t, db, `UPDATE campaigns SET secret = 'another' WHERE id = 'b'`)
		finds("b", code("b", 1), "another secret")
		finds("", code("d", 1), "none, 1 unread")
		if _, _, err := l.Reads.Find(t.Context(), "b", ledger.Choice{Code: code("b", 1)}); !errors.Is(err, ledger.ErrOtherSecret) {
			t.Errorf("Find with another secret: %v", err)
		}
	})
}

// TestACodeWithoutACouponSaysWhy where a gate beside the ledger decides.
func TestACodeWithoutACouponSaysWhy(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 9)
		stage.Must(t, l.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 1}, false))
		says := func(number int64, want string) {
			t.Helper()
			for _, id := range []firstcome.CampaignID{"c", ""} {
				if got := became(t, l, id, stage.Secret().Code("c", number)); got != want {
					t.Errorf("number %d in %q is %q, and should be %q", number, id, got, want)
				}
			}
		}
		says(2, "c 2 not_recorded")
		recordIn(t, l, stage.Coupon("c", 1), stage.Coupon("c", 3))
		says(1, "c 1 of user-1")
		says(2, "c 2 not_recorded") // on its way
		says(3, "c 3 of user-3")
		bury(t, l, "refused", stage.Coupon("c", 2), stage.Coupon("c", 4))
		says(2, "c 2 dead_letter")
		says(4, "c 4 dead_letter")
		letters, err := l.Reads.DeadLetters(t.Context(), ledger.Letters{})
		stage.Must(t, err)
		stage.Must(t, l.Recorder.Replay(t.Context(), "test", letters[0].ID))
		stage.Must(t, l.Recorder.VoidLetter(t.Context(), "test", letters[1].ID, "gone"))
		says(2, "c 2 of user-2")
		says(4, "c 4 dead_letter_voided")
		says(5, "c 5 not_recorded")
		execute(t, services.Beside(t, name), `INSERT INTO lost VALUES ('c', 5, 2, 2)`, `UPDATE campaigns SET epoch = 2, drained_through = 6`)
		says(5, "c 5 lost")
		says(6, "c 6 lost")
		says(7, "c 7 not_recorded")
	})
}

// A counted gate returns a state of counters.
type counted struct {
	state gate.State
	err   error
}

func (c counted) State(context.Context, firstcome.CampaignID) (gate.State, error) {
	return c.state, c.err
}

// TestACouponIsAwaitedUnlessItsGateSurelyNeverGaveIt has number 7 of a campaign in epoch 2.
func TestACouponIsAwaitedUnlessItsGateSurelyNeverGaveIt(t *testing.T) {
	h := ledger.Holding{Campaign: "c", Number: 7, Epoch: 2, Why: ledger.NotThere}
	for what, c := range map[string]struct {
		gate gate.Counters
		want bool
	}{
		"no gate of this node":           {nil, true},
		"it does not answer":             {counted{gate.State{Epoch: 2, LastNumber: 6}, errors.New("away")}, true},
		"it has not come so far":         {counted{gate.State{Epoch: 2, LastNumber: 6}, nil}, false},
		"it has just given it":           {counted{gate.State{Epoch: 2, LastNumber: 7}, nil}, true},
		"it has given more":              {counted{gate.State{Epoch: 2, LastNumber: 8}, nil}, true},
		"it was rebuilt since":           {counted{gate.State{Epoch: 3, LastNumber: 6}, nil}, true},
		"its epoch has ended":            {counted{gate.State{Epoch: 1, LastNumber: 6}, nil}, true},
		"some of its keys are gone":      {counted{gate.State{Epoch: 2, LastNumber: 6, Gone: true}, nil}, true},
		"nobody has verified it":         {counted{gate.State{Epoch: 2, LastNumber: 6, Unverified: true}, nil}, true},
		"it is frozen, and being loaded": {counted{gate.State{Epoch: 2, LastNumber: 6, Frozen: true}, nil}, true},
	} {
		if got := h.Awaited(t.Context(), c.gate); got != c.want {
			t.Errorf("%s: it is awaited: %v", what, got)
		}
	}
}

// TestACampaignThatALedgerHasForgottenIsNotAnError: a node remembers campaigns, and a restored backup may not have one.
func TestACampaignThatALedgerHasForgottenIsNotAnError(t *testing.T) {
	name := services.Ledgers[services.SQLite](t)
	l := start(t, name, nil)
	create(t, l, "c", 9)
	create(t, l, "d", 9)
	claim(t, l.Gate, "d", "mina")
	if got := became(t, l, "", stage.Secret().Code("d", 1)); got != "d 1 of mina" {
		t.Fatalf("it is %q", got)
	}
	execute(t, services.Beside(t, name), `DELETE FROM coupons WHERE campaign_id = 'd'`, `DELETE FROM changes WHERE campaign_id = 'd'`, `DELETE FROM campaigns WHERE id = 'd'`)
	if got := became(t, l, "", stage.Secret().Code("d", 1)); got != "none" {
		t.Errorf("then it is %q", got)
	}
}
