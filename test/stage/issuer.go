package stage

import (
	"context"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
)

// NewLedgerGate returns a gate whose coupons are recorded as they are issued, like the ledger's.
func NewLedgerGate(quantity int64, ids ...firstcome.CampaignID) *Gate {
	g := NewGate(quantity, ids...)
	g.Records = true
	return g
}

// Hold makes a gate wait, in each call for one of ids, until the test lets it continue.
func Hold(m *Gate, ids ...firstcome.CampaignID) (letGo func()) {
	gate := make(chan struct{})
	m.Before = func(ctx context.Context, id firstcome.CampaignID) error {
		for _, held := range ids {
			if id == held {
				select {
				case <-gate:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		return nil
	}
	return sync.OnceFunc(func() { close(gate) })
}

// Issuer returns an Issuer that is stopped when the test ends.
func Issuer(t testing.TB, g gate.Decider, limits issue.Options) *issue.Issuer {
	i := issue.NewIssuer(g, limits)
	t.Cleanup(func() {
		if err := i.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// Claim claims a coupon and checks the outcome.
func Claim(t testing.TB, i *issue.Issuer, id firstcome.CampaignID, user firstcome.UserID, outcome firstcome.Outcome) firstcome.Decision {
	t.Helper()
	d, err := i.Claim(context.Background(), id, user)
	if err != nil || d.Outcome != outcome {
		t.Errorf("%s's claim of %s: got %v, %v; want %v", user, id, d.Outcome, err, outcome)
	}
	return d
}
