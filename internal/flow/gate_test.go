package flow_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newGate returns a gate whose coupons are recorded as they are issued, like the ledger's.
func newGate(quantity int64, ids ...firstcome.CampaignID) *stage.Gate {
	g := stage.NewGate(quantity, ids...)
	g.Records = true
	return g
}

// void voids a user's coupon of the campaign c, as an operator would.
func void(t testing.TB, g *stage.Gate, user firstcome.UserID) {
	t.Helper()
	c := g.Course("c")
	change := firstcome.Change{Campaign: c.ID, Version: c.Version + 1, Kind: firstcome.ChangeVoid, Number: c.Holders[user].Number, User: user}
	stage.Must(t, stage.Err(g.Apply(t.Context(), change)))
}

// issuer returns an Issuer that is stopped when the test ends.
func issuer(t testing.TB, g gate.Decider, limits flow.Limits) *flow.Issuer {
	i := flow.NewIssuer(g, limits)
	t.Cleanup(func() {
		if err := i.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// want claims a coupon and checks the outcome.
func want(t testing.TB, i *flow.Issuer, id firstcome.CampaignID, user firstcome.UserID, outcome firstcome.Outcome) firstcome.Decision {
	t.Helper()
	d, err := i.Claim(context.Background(), id, user)
	if err != nil || d.Outcome != outcome {
		t.Errorf("%s's claim of %s: got %v, %v; want %v", user, id, d.Outcome, err, outcome)
	}
	return d
}
