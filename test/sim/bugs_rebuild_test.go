//go:build soak

package sim

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// unheeding is the model of a gate that does something before each claim.
type unheeding struct {
	gated
	before func(ctx context.Context)
}

// Claim implements gate.Decider.
func (u unheeding) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	u.before(ctx)
	return u.gated.Claim(ctx, id, users)
}

// before makes a gate do something before each claim of the campaign, if the gate has it.
func before(do func(g *Gate, c *course)) func(*town) {
	return func(t *town) {
		t.front = unheeding{t.front, func(context.Context) {
			if c := t.gate.campaigns[campaign]; c != nil && c.Version > 0 {
				do(t.gate, c)
			}
		}}
	}
}

// steps is a gate with bugs in steps of a rebuild; a nil step is correct.
type steps struct {
	*Gate
	freeze func(c *course)
	empty  bool // the journal is emptied to nobody
	toward func(c *course, r recovery.Rebuild)
}

// Freeze implements recovery.Gate.
func (s steps) Freeze(ctx context.Context, r recovery.Rebuild) (recovery.Frozen, error) {
	f, err := s.Gate.Freeze(ctx, r)
	if s.freeze != nil && err == nil {
		s.freeze(s.campaigns[r.Campaign])
	}
	return f, err
}

// Empty implements recovery.Gate.
func (s steps) Empty(ctx context.Context, r recovery.Rebuild, to record.Sink) error {
	if s.empty {
		return nil
	}
	return s.Gate.Empty(ctx, r, to)
}

// Replace implements recovery.Gate.
func (s steps) Replace(ctx context.Context, r recovery.Rebuild, f recovery.Frozen, loaded recovery.Loaded, fill recovery.Refill) error {
	if c := s.campaigns[r.Campaign]; s.toward != nil && c != nil {
		s.toward(c, r)
	}
	return s.Gate.Replace(ctx, r, f, loaded, fill)
}

// books is a ledger with bugs in calls of a rebuild; a nil call is correct.
type books struct {
	*Ledger
	durable bool // every run is
	goesOn  bool // no attempt is told that another has begun
	refill  func(a *account, each func(firstcome.Coupon) error) error
	finish  func(a *account, r *recovery.Rebuild, loaded *recovery.Loaded) (after func())
}

// DurableRun implements recovery.Ledger.
func (b books) DurableRun(ctx context.Context, run string) (durable, seen bool, err error) {
	durable, seen, err = b.Ledger.DurableRun(ctx, run)
	return durable || b.durable, seen, err
}

// Refills implements recovery.Ledger.
func (b books) Refills(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (recovery.Mark, error) {
	mark, err := b.Ledger.Refills(ctx, id, each)
	if b.refill != nil && err == nil {
		err = b.refill(b.campaigns[id], each)
	}
	return mark, err
}

// Heartbeat implements recovery.Ledger.
func (b books) Heartbeat(ctx context.Context, r recovery.Rebuild) error {
	if err := b.Ledger.Heartbeat(ctx, r); !b.goesOn {
		return err
	}
	return nil
}

// FinishRebuild implements recovery.Ledger.
func (b books) FinishRebuild(ctx context.Context, r recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (recovery.Refill, error) {
	after := func() {}
	if b.finish != nil {
		after = b.finish(b.campaigns[r.Campaign], &r, &loaded)
	}
	fill, err := b.Ledger.FinishRebuild(ctx, r, loaded, frozen)
	if err == nil {
		after()
	}
	return fill, err
}

func finishes(do func(l *Ledger, a *account, r *recovery.Rebuild, loaded *recovery.Loaded) (after func())) func(*Ledger) rebuilds {
	return func(l *Ledger) rebuilds {
		return books{Ledger: l, finish: func(a *account, r *recovery.Rebuild, loaded *recovery.Loaded) func() { return do(l, a, r, loaded) }}
	}
}

// insists has a recorder bring coupons whose numbers are lost again, as those of the latest epoch.
func insists(t *town) {
	t.bug.keeper = func(_ *wire, k record.Keeper) record.Keeper {
		return keeping{k, func(ctx context.Context, b record.Batch) (record.Result, error) {
			drained, err := k.Record(ctx, b)
			if err == nil && drained.Lost > 0 {
				b.Epoch = drained.Epoch
				return k.Record(ctx, b)
			}
			return drained, err
		}}
	}
}

// overreaches has an old server take the ceiling that the ledger granted in the epoch after its own, from a recorder that still reaches it.
func overreaches(t *town) {
	t.bug.keeper = func(w *wire, k record.Keeper) record.Keeper {
		return keeping{k, func(ctx context.Context, b record.Batch) (record.Result, error) {
			drained, err := k.Record(ctx, b)
			if err == nil {
				err = order(ctx, w, "the gate", show("to go up to", drained.Ceiling), func() error {
					if old := t.parted(w.of); old != nil && old.campaigns[campaign] != nil {
						c := old.campaigns[campaign]
						c.Ceiling = max(c.Ceiling, drained.Ceiling)
					}
					return nil
				})
			}
			return drained, err
		}}
	}
}

// rebuildBugs are mistakes of what becomes of a gate whose server restarted, or lost something.
var rebuildBugs = []bug{
	{name: "a gate does not ask whether its server is the one that decided last", models: before(func(g *Gate, c *course) { c.run = g.run.ID })},
	{name: "every restart is taken for harmless", refills: func(l *Ledger) rebuilds { return books{Ledger: l, durable: true} }},
	{name: "a frozen gate decides", models: before(func(_ *Gate, c *course) { c.frozen = 0 }), remade: func(g *Gate) recovery.Gate {
		return steps{Gate: g, toward: func(c *course, r recovery.Rebuild) { c.frozen = r.Attempt }}
	}},
	{name: "an owner switches though another attempt has begun", remade: func(g *Gate) recovery.Gate {
		return steps{Gate: g, toward: func(c *course, r recovery.Rebuild) { c.frozen = r.Attempt }}
	}},
	{name: "an owner ends the epoch though another attempt has begun", stall: []string{"all that it has, for attempt", "which holders there are"}, refills: func(l *Ledger) rebuilds {
		return books{Ledger: l, goesOn: true, finish: func(a *account, r *recovery.Rebuild, _ *recovery.Loaded) func() {
			r.Attempt = a.attempt
			if a.rebuildingAt.IsZero() {
				a.rebuildingAt = time.Now()
			}
			return func() {}
		}}
	}},
	{name: "an owner does not empty the journal", remade: func(g *Gate) recovery.Gate { return steps{Gate: g, empty: true} }},
	{name: "the ledger may have changed since it was loaded", seed: 465, refills: finishes(func(l *Ledger, a *account, _ *recovery.Rebuild, loaded *recovery.Loaded) func() {
		loaded.Mark = l.mark(a)
		return func() {}
	})},
	{name: "numbers go on behind the ledger's last", refills: finishes(func(_ *Ledger, a *account, _ *recovery.Rebuild, _ *recovery.Loaded) func() {
		a.ceiling = 0
		return func() {}
	})},
	{name: "nobody notes which numbers are lost", refills: finishes(func(_ *Ledger, a *account, _ *recovery.Rebuild, _ *recovery.Loaded) func() {
		return func() { a.lost = nil }
	})},
	{name: "a change that waits is not done by a rebuild", refills: finishes(func(_ *Ledger, a *account, _ *recovery.Rebuild, _ *recovery.Loaded) func() {
		a.applied = a.Version
		return func() {}
	})},
	{name: "who has a void coupon is a holder of a rebuilt gate", refills: func(l *Ledger) rebuilds {
		return books{Ledger: l, refill: func(a *account, each func(firstcome.Coupon) error) error {
			for _, c := range a.coupons {
				if !c.VoidedAt.IsZero() && !a.holder(c.User) {
					c.VoidedAt = time.Time{}
					if err := each(c.Coupon); err != nil {
						return err
					}
				}
			}
			return nil
		}}
	}},
	{name: "coupons whose numbers are lost are recorded all the same", models: insists},
	{name: "entries are settled whatever epoch they are of", heedless: true},
	{name: "a node goes on at a gate whose epoch has ended", seed: 658, deaf: true},
	{name: "a gate takes the ceiling of another epoch", models: overreaches},
	{name: "a gate does not heed its ceiling", models: before(func(_ *Gate, c *course) { c.Ceiling = 0 })},
}
