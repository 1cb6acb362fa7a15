//go:build soak

package sim

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// skips is a ledger with a bug in the terms with which an epoch begins.
func skips(change func(terms *firstcome.Terms)) func(*Ledger) rebuilds {
	return finishes(func(_ *Ledger, a *account, _ *recovery.Rebuild, _ *recovery.Loaded) func() {
		before := a.Version
		return func() {
			for n := before; n < a.Version; n++ {
				if d := &a.changes[n]; d.Kind == firstcome.ChangeTerms {
					change(&d.Terms)
					change(&a.Terms)
				}
			}
		}
	})
}

// tellsBy is a node with a bug in the terms by which it tells a rank and a prize.
func tellsBy(change func(l *Ledger, of int64) int64, edit func(*firstcome.Terms)) func(*town) {
	return func(t *town) {
		t.bug.terms = func(*wire, readTerms) readTerms {
			return func(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
				terms, err := t.ledger.Terms(ctx, id, change(t.ledger, version))
				edit(&terms)
				return terms, err
			}
		}
	}
}

func own(_ *Ledger, of int64) int64 { return of }

// prizeBugs are mistakes of ranks and prizes. Those of the product's own code are in test/mutants.
var prizeBugs = []bug{
	{name: "a rebuild forgets which numbers it skips", refills: skips(func(terms *firstcome.Terms) { terms.Skips = terms.Skips[:len(terms.Skips)-1] })},
	{name: "a second rebuild forgets which numbers the first one skipped", refills: skips(func(terms *firstcome.Terms) {
		if last := len(terms.Skips) - 1; last > 0 {
			terms.Skips = []firstcome.Skip{{After: terms.Skips[last].After, Skipped: terms.Skips[last].Skipped - terms.Skips[last-1].Skipped}}
		}
	})},
	{name: "a rank follows the number", models: tellsBy(own, func(terms *firstcome.Terms) { terms.Skips = nil })},
	{name: "a prize follows from the newest terms", seed: 266, models: tellsBy(func(l *Ledger, _ int64) int64 { return l.campaigns[campaign].termsVersion }, func(*firstcome.Terms) {})},
	{name: "a gate takes prizes that move after a number was given", models: applies(func(_ *course, change firstcome.Change, to gate.Applier) (bool, error) {
		change.Before = 0
		return to.Apply(context.Background(), change)
	})},
}
