//go:build soak

package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// claiming is a gate with a bug in its claims.
type claiming struct {
	gate.Decider
	claim func(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)
}

// Claim implements gate.Decider.
func (c claiming) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return c.claim(ctx, id, users)
}

// spoiled has a bug change the decisions of a gate, by when the claims were sent.
func spoiled(change func(d *firstcome.Decision, sent time.Time)) func(*wire, gate.Decider) gate.Decider {
	return func(_ *wire, g gate.Decider) gate.Decider {
		return claiming{g, func(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
			sent := time.Now()
			decisions, err := g.Claim(ctx, id, users)
			for n := range decisions {
				change(&decisions[n], sent)
			}
			return decisions, err
		}}
	}
}

// keeping is a ledger with a bug in recording.
type keeping struct {
	record.Keeper
	record func(context.Context, record.Batch) (record.Result, error)
}

// Record implements record.Keeper.
func (k keeping) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	return k.record(ctx, b)
}

// applying is a gate with a bug in applying changes.
type applying func(context.Context, firstcome.Change) (bool, error)

// Apply implements gate.Applier.
func (a applying) Apply(ctx context.Context, c firstcome.Change) (bool, error) { return a(ctx, c) }

// hasty is a gate that says of everything that it is recorded.
type hasty struct {
	gate.Progress
	gate *Gate
	wire *wire
}

// DrainedThrough is gate.Progress'.
func (h hasty) DrainedThrough(ctx context.Context, _ firstcome.CampaignID) (int64, error) {
	return ask(ctx, h.wire, "the gate", "how far it is drained", func() (int64, error) {
		if c := h.gate.campaigns[campaign]; c != nil {
			return c.Last, nil
		}
		return 0, gate.ErrGone
	})
}

// Has is gate.Progress'.
func (hasty) Has(_ context.Context, _ firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	return slices.Repeat([]bool{true}, len(coupons)), nil
}

// applies has a bug change what the gate does with a change.
func applies(change func(*course, firstcome.Change, gate.Applier) (bool, error)) func(*town) {
	return func(t *town) { t.front = tampered{gated: t.front, gate: t.gate, apply: change} }
}

// late makes the journal get issued coupons later, or never.
func late(t *town) {
	var known int64
	claims(func(*course, []firstcome.UserID, []firstcome.Decision) {
		for n, e := range t.gate.journal {
			if e.id <= known {
				continue
			}
			t.post(nil, show("the journal hears of entry", e.id), func() {
				if !t.percent(10) {
					t.gate.append(e.Batch)
				}
				known = t.gate.entries
			})
			defer func() {
				t.gate.mu.Lock()
				defer t.gate.mu.Unlock()
				t.gate.journal = slices.Delete(t.gate.journal, n, n+1)
			}()
		}
		known = t.gate.entries
	})(t)
}

// older makes the gate go back to its state of a few steps before, like a replica that lagged.
func older(t *town) {
	var old course
	claims(func(c *course, _ []firstcome.UserID, _ []firstcome.Decision) {
		switch n := len(*c.Happened); {
		case n == 2:
			old = *c
			old.Holders = maps.Clone(c.Holders)
		case n == 4 && old.Happened != nil:
			*c = old
			c.Did(stage.Happening{Applied: c.Version})
		}
	})(t)
}

// swapped makes the gate hold back each second change until the next one.
func swapped(t *town) {
	var back *firstcome.Change
	applies(func(c *course, change firstcome.Change, to gate.Applier) (bool, error) {
		switch {
		case change.Version <= c.Version:
		case back == nil && change.Kind == firstcome.ChangeTerms && change.Terms.Quantity > c.Quantity:
			back, c.Version = &change, change.Version
			return false, nil
		case back != nil:
			defer func() {
				c.Change(*back, time.Now(), time.Now(), quarantine)
				back = nil
			}()
		}
		return to.Apply(context.Background(), change)
	})(t)
}

// twice makes the ledger store repeated coupons again.
func twice(t *town) {
	t.bug.keeper = func(_ *wire, k record.Keeper) record.Keeper {
		return keeping{k, func(ctx context.Context, b record.Batch) (record.Result, error) {
			a := t.ledger.campaigns[campaign]
			for _, c := range b.Coupons {
				if a.coupon(c.Number) != nil {
					a.coupons = append(a.coupons, stored{c, a.fact(firstcome.CouponIssued, c.Number)})
				}
			}
			return k.Record(ctx, b)
		}}
	}
}

// busy has everybody ask for more, and no node crash or stand still.
func busy(t *town) {
	t.crash, t.freeze = 0, 0
	for _, p := range t.people {
		p.left += 20
	}
}

// within is how many schedules it may take until a bug is found.
const within = 8000

// bugs are mistakes that are easily made, each with the promises that it may break.
var bugs = []bug{
	{name: "a gate answers before its journal has the coupon", models: late},
	{name: "a gate gives a number again", models: claims(func(c *course, _ []firstcome.UserID, _ []firstcome.Decision) {
		if len(*c.Happened)%3 == 2 {
			c.Last--
		}
	})},
	{name: "a gate decides a lost answer anew", models: claims(func(c *course, users []firstcome.UserID, decisions []firstcome.Decision) {
		for n, d := range decisions {
			if d.Outcome == firstcome.AlreadyIssued && !d.Coupon.Recorded && c.InForce() < c.Quantity {
				decisions[n].Outcome, decisions[n].Coupon = firstcome.Issued, c.Issue(users[n], d.At, 0, 0, false)
			}
		}
	})},
	{name: "a gate decides a batch by the stock before it", models: claims(func(c *course, users []firstcome.UserID, decisions []firstcome.Decision) {
		issued := false
		for n, d := range decisions {
			if d.Outcome == firstcome.SoldOut && issued {
				decisions[n].Outcome, decisions[n].Coupon = firstcome.Issued, c.Issue(users[n], d.At, 0, 0, false)
			}
			issued = issued || d.Outcome == firstcome.Issued
		}
	})},
	{name: "a gate's time goes back", models: claims(func(c *course, _ []firstcome.UserID, _ []firstcome.Decision) { c.Seen = time.Time{} })},
	{name: "a gate applies a change again", seed: 1381, models: applies(func(c *course, change firstcome.Change, to gate.Applier) (bool, error) {
		if change.Version <= c.Version && !c.Refused[change.Version] {
			c.Change(change, time.Now(), time.Now(), quarantine)
		}
		return to.Apply(context.Background(), change)
	})},
	{name: "a gate applies changes in another order", models: swapped},
	{name: "stock that comes back is not quarantined", seed: 745, models: func(t *town) { t.gate.Quarantine = 0 }},
	{name: "a gate goes back to an older state", models: older},
	{name: "a lease never ends", claims: spoiled(func(d *firstcome.Decision, _ time.Time) { d.Lease *= 1000 })},
	{name: "a lease counts from the answer", claims: spoiled(func(d *firstcome.Decision, sent time.Time) {
		if d.Lease > 0 {
			d.Lease += time.Since(sent)
		}
	})},
	{name: "a lease is granted while stock is quarantined", seed: 895, models: busy, claims: spoiled(func(d *firstcome.Decision, _ time.Time) {
		if d.Outcome == firstcome.SoldOut {
			d.Lease = lease
		}
	})},
	{name: "what is recorded is acknowledged before it is", keeper: func(w *wire, k record.Keeper) record.Keeper {
		return keeping{k, func(ctx context.Context, b record.Batch) (record.Result, error) {
			if len(b.Coupons) == 0 { // it says how a line ended
				return k.Record(ctx, b)
			}
			go func() { _, _ = k.Record(context.WithoutCancel(ctx), b) }()
			return record.Result{Through: b.Coupons[len(b.Coupons)-1].Number}, nil
		}}
	}},
	{name: "a recorder skips an entry", keeper: func(_ *wire, k record.Keeper) record.Keeper {
		return keeping{k, func(ctx context.Context, b record.Batch) (record.Result, error) {
			if len(b.Coupons) > 1 {
				b.Coupons = b.Coupons[:len(b.Coupons)-1]
			}
			return k.Record(ctx, b)
		}}
	}},
	{name: "a recorder gives up after an error", keeper: func(_ *wire, k record.Keeper) record.Keeper {
		return keeping{k, func(ctx context.Context, b record.Batch) (record.Result, error) {
			drained, err := k.Record(ctx, b)
			if errors.Is(err, errLost) {
				err = nil
			}
			return drained, err
		}}
	}},
	{name: "a recorder buries what got no answer", keeper: func(_ *wire, k record.Keeper) record.Keeper {
		return keeping{k, func(ctx context.Context, b record.Batch) (record.Result, error) {
			drained, err := k.Record(ctx, b)
			if errors.Is(err, errLost) {
				err = record.ErrRefused
			}
			return drained, err
		}}
	}},
	{name: "a ledger stores twice what comes twice", models: twice},
	{name: "a waiter says recorded too early", models: func(t *town) {
		t.bug.drains = func(w *wire, d gate.Progress) gate.Progress { return hasty{d, t.gate, w} }
	}},
	{name: "an operator is answered before the gate has the change", applier: func(_ *wire, a gate.Applier) gate.Applier {
		return applying(func(ctx context.Context, c firstcome.Change) (bool, error) {
			go func() { _, _ = a.Apply(context.WithoutCancel(ctx), c) }()
			return false, nil
		})
	}},
}

func TestThePlantedBugsAreFound(t *testing.T) {
	for n := range putBackBugs {
		putBackBugs[n].kind.putsBack = true
	}
	for n := range logBugs {
		logBugs[n].kind.logs = true
	}
	for _, b := range slices.Concat(bugs, rebuildBugs, prizeBugs, lineBugs, putBackBugs, logBugs) {
		t.Run(b.name, func(t *testing.T) {
			for from := b.seed; from < b.seed+within; from++ {
				if breaches, _ := schedule(t, from, &b); len(breaches) > 0 {
					t.Logf("found with seed %d: %s: %s", from, breaches[0].promise, breaches[0].text)
					return
				}
			}
			t.Errorf("%d schedules do not find it", within)
		})
	}
}
