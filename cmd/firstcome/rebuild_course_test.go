//go:build !check

package main

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAnEmptiedRedisSaysWhenTheCampaignSoldOutFirst, and not when it was rebuilt: by the ledger's coupons, dead letters, voids and terms. A
// minute passes after each step.
func TestAnEmptiedRedisSaysWhenTheCampaignSoldOutFirst(t *testing.T) {
	t.Parallel()
	issue := func(users ...firstcome.UserID) func(*desk) {
		return func(d *desk) { d.settle(d.record(d.issue("c", users...)...)) }
	}
	void := func(number int64) func(*desk) {
		return func(d *desk) {
			d.reaches("c", stage.Err(d.ledger.Campaigns.Void(d.t.Context(), "op", "c", number, "a trial")))
		}
	}
	quantity := func(n int64) func(*desk) {
		return func(d *desk) {
			d.reaches("c", stage.Err(d.ledger.Campaigns.SetTerms(d.t.Context(), "op", "c", 0, func(t *firstcome.Terms) { t.Quantity = n })))
		}
	}
	buried := func(d *desk) { d.settle(d.bury(d.issue("c", "buried")...)) }
	for what, steps := range map[string][]func(*desk){
		"never":                    {issue("a", "b")},
		"by the last coupon":       {issue("a"), issue("b", "c")},
		"by a dead letter":         {issue("a", "b"), buried},
		"after a dead letter":      {issue("a"), buried, issue("c")},
		"and stock came back":      {issue("a", "b", "c"), void(2)},
		"and again":                {issue("a", "b", "c"), void(2), issue("d")},
		"after a void only":        {issue("a", "b"), void(2), issue("c"), issue("d")},
		"and was raised":           {issue("a", "b", "c"), quantity(9), issue("d")},
		"after a raise only":       {issue("a", "b"), quantity(4), issue("c"), issue("d")},
		"by a lower quantity":      {issue("a", "b"), quantity(2)},
		"by a lower one, and then": {issue("a", "b"), quantity(2), quantity(9), issue("c")},
		"with nothing to issue":    {quantity(0), quantity(2), issue("a")},
	} {
		t.Run(what, func(t *testing.T) {
			ledgers(t, func(t *testing.T, name string) {
				at := time.Now().Truncate(time.Second).Add(-time.Hour)
				d := newDesk(t, services.Redis.Database(t), name, func() time.Time { return at })
				terms := stage.Terms(3)
				terms.Answer = firstcome.Decided
				d.reaches("c", d.ledger.Campaigns.Create(t.Context(), "test", "c", terms))
				for _, step := range steps {
					at = at.Add(time.Minute)
					step(d)
				}
				before, err := d.remote.gate.State(t.Context(), "c")
				stage.Must(t, err)
				at = at.Add(time.Minute)
				d.do("FLUSHALL")
				d.rebuilt(d.rebuilder())
				after, err := d.remote.gate.State(t.Context(), "c")
				stage.Must(t, err)
				if stage.Same(t, "sold out, and opened", before.Instants, after.Instants); before.SoldOutAt.IsZero() != (what == "never") {
					t.Errorf("before, it sold out at %v", before.SoldOutAt)
				}
			})
		})
	}
}
