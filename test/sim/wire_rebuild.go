package sim

import (
	"cmp"
	"context"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// order is ask of a question whose only answer is that it is done.
func order(ctx context.Context, w *wire, whom, what string, do func() error) error {
	_, err := ask(ctx, w, whom, what, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Inspect implements recovery.Gate.
func (r remote) Inspect(ctx context.Context, rev gate.Revision) error {
	least := r.least(rev)
	return order(ctx, r.wire, "the gate", "whether it stands", func() error {
		return cmp.Or(r.made().Inspect(ctx, rev), r.reached().forgot(campaign, least))
	})
}

// Runs implements recovery.Gate.
func (r remote) Runs(ctx context.Context) ([]recovery.Run, error) {
	return ask(ctx, r.wire, "the gate", "which run it is", func() ([]recovery.Run, error) { return r.made().Runs(ctx) })
}

// Named implements recovery.Gate.
func (r remote) Named(ctx context.Context) (bool, error) {
	return ask(ctx, r.wire, "the gate", "whether it has its name", func() (bool, error) { return r.made().Named(ctx) })
}

// Rename implements recovery.Gate.
func (r remote) Rename(ctx context.Context) error {
	return order(ctx, r.wire, "the gate", "to have its name", func() error { return r.made().Rename(ctx) })
}

// GateState implements recovery.Gate.
func (r remote) GateState(ctx context.Context, rev gate.Revision) (recovery.GateState, error) {
	least := r.least(rev)
	s, err := ask(ctx, r.wire, "the gate", "what it has", func() (recovery.GateState, error) { return r.made().GateState(ctx, rev) })
	s.Witness = least
	return s, err
}

// HoldsEach implements recovery.Gate.
func (r remote) HoldsEach(ctx context.Context, rev gate.Revision, coupons []firstcome.Coupon) ([]bool, error) {
	return ask(ctx, r.wire, "the gate", show("whether it holds", numbers(coupons)), func() ([]bool, error) { return r.made().HoldsEach(ctx, rev, coupons) })
}

// Unrecorded implements recovery.Gate.
func (r remote) Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	all, err := ask(ctx, r.wire, "the journal", "what is unrecorded", func() (all []firstcome.Coupon, err error) {
		err = r.made().Unrecorded(ctx, id, func(c firstcome.Coupon) error {
			all = append(all, c)
			return nil
		})
		return all, err
	})
	for n := 0; err == nil && n < len(all); n++ {
		err = each(all[n])
	}
	return err
}

// Verified implements recovery.Gate.
func (r remote) Verified(ctx context.Context, rev gate.Revision, s recovery.GateState) error {
	return order(ctx, r.wire, "the gate", show("to go on as", s.Is), func() error { return r.made().Verified(ctx, rev, s) })
}

// Room implements recovery.Gate.
func (r remote) Room(ctx context.Context, b recovery.Rebuild) error { return r.made().Room(ctx, b) }

// Freeze implements recovery.Gate.
func (r remote) Freeze(ctx context.Context, b recovery.Rebuild) (recovery.Frozen, error) {
	return ask(ctx, r.wire, "the gate", show("to freeze for attempt", b.Attempt), func() (recovery.Frozen, error) {
		return r.made().Freeze(ctx, b)
	})
}

// Empty implements recovery.Gate: it reads all entries at once, and passes them to the sink.
func (r remote) Empty(ctx context.Context, b recovery.Rebuild, to record.Sink) error {
	all, err := ask(ctx, r.wire, "the journal", show("all that it has, for attempt", b.Attempt), func() (all []record.Batch, err error) {
		err = r.made().Empty(ctx, b, func(_ context.Context, one record.Batch) (record.Result, error) {
			all = append(all, one)
			return record.Result{}, nil
		})
		return all, err
	})
	for n := 0; err == nil && n < len(all); n++ {
		_, err = to(ctx, all[n])
	}
	return err
}

// Loading implements recovery.Gate: it loads all at once.
func (r remote) Loading(ctx context.Context, b recovery.Rebuild) (put func(firstcome.Coupon) error, end func() error, err error) {
	var all []firstcome.Coupon
	put = func(c firstcome.Coupon) error {
		all = append(all, c)
		return nil
	}
	end = func() error {
		return order(ctx, r.wire, "the gate", show("to load", numbers(all), "for attempt", b.Attempt), func() error {
			put, end, err := r.made().Loading(ctx, b)
			for n := 0; err == nil && n < len(all); n++ {
				err = put(all[n])
			}
			if err == nil {
				err = end()
			}
			return err
		})
	}
	return put, end, nil
}

// Carry implements recovery.Gate.
func (r remote) Carry(ctx context.Context, b recovery.Rebuild, generation int64) (recovery.Carried, error) {
	return ask(ctx, r.wire, "the gate", show("to carry its line over, for attempt", b.Attempt), func() (recovery.Carried, error) { return r.made().Carry(ctx, b, generation) })
}

// Carried implements recovery.Gate.
func (r remote) Carried(ctx context.Context, b recovery.Rebuild, each func(recovery.Waiting) error) error {
	all, err := ask(ctx, r.wire, "the gate", show("who was carried over, for attempt", b.Attempt), func() (all seats, err error) {
		err = r.made().Carried(ctx, b, func(one recovery.Waiting) error {
			all = append(all, one)
			return nil
		})
		return all, err
	})
	for n := 0; err == nil && n < len(all); n++ {
		err = each(all[n])
	}
	return err
}

// Seat implements recovery.Gate.
func (r remote) Seat(ctx context.Context, b recovery.Rebuild, generation int64, people []recovery.Waiting) error {
	return order(ctx, r.wire, "the gate", show("to seat", seats(people), "for attempt", b.Attempt), func() error {
		return r.made().Seat(ctx, b, generation, people)
	})
}

// Replace implements recovery.Gate.
func (r remote) Replace(ctx context.Context, b recovery.Rebuild, f recovery.Frozen, loaded recovery.Loaded, fill recovery.Refill) error {
	return order(ctx, r.wire, "the gate", show("to switch to attempt", b.Attempt, "and epoch", fill.Epoch), func() error {
		return r.made().Replace(ctx, b, f, loaded, fill)
	})
}

// Created implements recovery.Gate.
func (r remote) Created(ctx context.Context, id firstcome.CampaignID) (bool, error) {
	return r.made().Created(ctx, id)
}

// Held implements recovery.Gate: it reads all at once.
func (r remote) Held(ctx context.Context, b recovery.Rebuild, each func(firstcome.Coupon) error) error {
	all, err := ask(ctx, r.wire, "the gate", "which coupons its holders have", func() (all []firstcome.Coupon, err error) {
		err = r.made().Held(ctx, b, func(c firstcome.Coupon) error {
			all = append(all, c)
			return nil
		})
		return all, err
	})
	for n := 0; err == nil && n < len(all); n++ {
		err = each(all[n])
	}
	return err
}

// SeeRun implements recovery.Ledger. A report that changes nothing is no event.
func (p paper) SeeRun(ctx context.Context, run recovery.Run) error {
	if p.wire != nil && !p.wire.of.isDead() && !p.wire.of.frozen.Load() && p.Ledger.knows(run) {
		return p.rebuilds.SeeRun(ctx, run)
	}
	return order(ctx, p.wire, "the ledger", show("to note", run.ID, run.Durable), func() error { return p.rebuilds.SeeRun(ctx, run) })
}

// RecentRuns implements recovery.Ledger.
func (p paper) RecentRuns(ctx context.Context, within time.Duration) ([]string, error) {
	return ask(ctx, p.wire, "the ledger", "which runs were seen", func() ([]string, error) { return p.rebuilds.RecentRuns(ctx, within) })
}

type durable struct{ durable, seen bool }

// DurableRun implements recovery.Ledger.
func (p paper) DurableRun(ctx context.Context, run string) (bool, bool, error) {
	d, err := ask(ctx, p.wire, "the ledger", show("whether it lasts:", run), func() (d durable, err error) {
		d.durable, d.seen, err = p.rebuilds.DurableRun(ctx, run)
		return d, err
	})
	return d.durable, d.seen, err
}

// LedgerState implements recovery.Ledger.
func (p paper) LedgerState(ctx context.Context, id firstcome.CampaignID, version int64) (recovery.LedgerState, error) {
	return ask(ctx, p.wire, "the ledger", "what the gate has to have", func() (recovery.LedgerState, error) { return p.rebuilds.LedgerState(ctx, id, version) })
}

// Numbered implements recovery.Ledger.
func (p paper) Numbered(ctx context.Context, id string, above int64, each func(int64)) error {
	all, err := ask(ctx, p.wire, "the ledger", show("the numbers above", above), func() (all []int64, err error) {
		err = p.rebuilds.Numbered(ctx, id, above, func(n int64) { all = append(all, n) })
		return all, err
	})
	for _, n := range all {
		each(n)
	}
	return err
}

// refills are what a gate has to have.
type refills struct {
	coupons []firstcome.Coupon
	mark    recovery.Mark
}

// Refills implements recovery.Ledger.
func (p paper) Refills(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (recovery.Mark, error) {
	all, err := ask(ctx, p.wire, "the ledger", "which holders there are", func() (all refills, err error) {
		all.mark, err = p.rebuilds.Refills(ctx, id, func(c firstcome.Coupon) error {
			all.coupons = append(all.coupons, c)
			return nil
		})
		return all, err
	})
	for n := 0; err == nil && n < len(all.coupons); n++ {
		err = each(all.coupons[n])
	}
	return all.mark, err
}

// Active implements recovery.Ledger.
func (p paper) Active(ctx context.Context) ([]gate.Revision, error) {
	return ask(ctx, p.wire, "the ledger", "which campaigns there are", func() ([]gate.Revision, error) { return p.rebuilds.Active(ctx) })
}

// BeginRebuild implements recovery.Ledger.
func (p paper) BeginRebuild(ctx context.Context, actor string, id firstcome.CampaignID, epoch int64) (recovery.Rebuild, error) {
	return ask(ctx, p.wire, "the ledger", show("for an attempt by", actor, "in epoch", epoch), func() (recovery.Rebuild, error) { return p.rebuilds.BeginRebuild(ctx, actor, id, epoch) })
}

// BeginReconcile implements recovery.Ledger.
func (p paper) BeginReconcile(ctx context.Context, actor string, id firstcome.CampaignID, last int64) (recovery.Rebuild, error) {
	return ask(ctx, p.wire, "the ledger", show("for a reconcile by", actor, "behind attempt", last), func() (recovery.Rebuild, error) {
		return p.rebuilds.BeginReconcile(ctx, actor, id, last)
	})
}

// Adopt implements recovery.Ledger.
func (p paper) Adopt(ctx context.Context, r recovery.Rebuild, gate recovery.GateState, absent []firstcome.Coupon, complete bool) (recovery.Adopted, error) {
	return ask(ctx, p.wire, "the ledger", show("to adopt what the gate has at version", gate.Version, "and to void", numbers(absent)), func() (recovery.Adopted, error) {
		return p.rebuilds.Adopt(ctx, r, gate, absent, complete)
	})
}

// LineHistory implements recovery.Ledger.
func (p paper) LineHistory(ctx context.Context, id firstcome.CampaignID) (recovery.LineHistory, error) {
	if p.Ledger.bare(id) {
		return recovery.LineHistory{}, nil
	}
	return ask(ctx, p.wire, "the ledger", "where the line is logged", func() (recovery.LineHistory, error) { return p.rebuilds.LineHistory(ctx, id) })
}

// Heartbeat implements recovery.Ledger.
func (p paper) Heartbeat(ctx context.Context, r recovery.Rebuild) error {
	return order(ctx, p.wire, "the ledger", show("to hear that attempt", r.Attempt, "goes on"), func() error { return p.rebuilds.Heartbeat(ctx, r) })
}

// GiveUpRebuild implements recovery.Ledger.
func (p paper) GiveUpRebuild(ctx context.Context, r recovery.Rebuild) error {
	return order(ctx, p.wire, "the ledger", show("to end attempt", r.Attempt), func() error { return p.rebuilds.GiveUpRebuild(ctx, r) })
}

// LastRebuild implements recovery.Ledger.
func (p paper) LastRebuild(ctx context.Context, id firstcome.CampaignID) (recovery.Rebuilt, error) {
	return ask(ctx, p.wire, "the ledger", "what the last rebuild came to", func() (recovery.Rebuilt, error) { return p.rebuilds.LastRebuild(ctx, id) })
}

// FinishRebuild implements recovery.Ledger.
func (p paper) FinishRebuild(ctx context.Context, r recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (recovery.Refill, error) {
	return ask(ctx, p.wire, "the ledger", show("to end epoch", r.Epoch, "for attempt", r.Attempt), func() (recovery.Refill, error) {
		given := int64(0)
		_ = p.Ledger.of(r.Campaign, func(a *account) error {
			given = max(a.highest(), frozen.LastNumber)
			return nil
		})
		fill, err := p.rebuilds.FinishRebuild(ctx, r, loaded, frozen)
		if err == nil {
			p.Ledger.onEnd(given, fill.LastNumber)
		}
		return fill, err
	})
}
