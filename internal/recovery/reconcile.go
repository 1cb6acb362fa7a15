package recovery

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// Created reports whether the gate's ledger ever created a campaign of an id there. If the ledger does not know it, it has forgotten it.
func (r *Machine) Created(ctx context.Context, id firstcome.CampaignID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, newestTime)
	defer cancel()
	return r.gate.Created(ctx, id)
}

// Adopted is what a ledger took over from its gate.
type Adopted struct {
	Epoch   int64 // which the campaign is in until the rebuild ends it
	Behind  int64 // the ledger's version before
	Version int64 // the gate's
	Voided  int64 // coupons that the gate does not have any more
	// Unexplained coupons of the ledger are in force, the gate does not have them, and no change behind the backup can have voided
	// them all. They stay in force.
	Unexplained int64
	// FactsFrom is the position from which on the campaign's facts may be others than those that were told before: whoever follows them has
	// to begin again there. 0: that is not known any more. Followers are those that the ledger keeps cursors of; they have stopped.
	FactsFrom int64
	Followers []string
}

// A Reconciled is what a reconcile came to.
type Reconciled struct {
	Rebuilt
	Adopted
	Recovered int64 // coupons that the ledger has again
	Letters   int64 // coupons that it refused, which are dead letters
}

// ErrNothingToReconcile says that there is nothing to reconcile.
var ErrNothingToReconcile = errors.New("the ledger is not older than the campaign's gate, or another gate decides the campaign: there is nothing to reconcile")

// Reconcile brings back what a gate has and the ledger has forgotten, because somebody asked for it. It is a rebuild with two steps between
// the freeze and the journal:
//
//	adopt         epoch, version, quantity, window, pace, pause and close are the gate's from then on: a change of the kind reconcile, which is
//	              pending until the end, so that nobody takes the ledger for whole before. Coupons that the gate does not have any more are void
//	bring back    every holder's coupon that the ledger lacks, with its number, instant and code
//
// It may be cut off anywhere, and done again.
func (r *Machine) Reconcile(ctx context.Context, actor string, id firstcome.CampaignID) (done Reconciled, err error) {
	a, known, err := r.revision(ctx, id)
	if err != nil || !known {
		return done, cmp.Or(err, ErrNothingToReconcile)
	}
	if older := r.isOlder(ctx, a); !errors.Is(older, gate.ErrLedgerRolledBack) {
		return r.endReconcile(ctx, actor, a)
	}
	before, err := r.gate.Stopped(ctx, a)
	if err != nil {
		return done, err
	}
	attempt, err := r.book.BeginReconcile(ctx, actor, id, before.Attempt)
	if err != nil {
		return done, err
	}
	attempt.InForce = max(attempt.InForce, before.InForce)
	done.Rebuilt, err = r.run(ctx, attempt, r.Refusal(id), &done)
	return done, err
}

// An Estimate is what a reconcile would come to, about.
type Estimate struct {
	Recovered int64 // coupons that the gate has and the ledger lacks
	// Voided coupons are in force by the ledger, and the gate gave them and does not have them any more. Unexplained ones are more than the
	// forgotten changes can have voided, so they would stay in force.
	Voided, Unexplained int64
	Behind, Version     int64 // the ledger's version, and the gate's
	Ledger, Gate        int64 // the epochs of the two
}

// Estimate says what a reconcile of a campaign would come to. It freezes nothing and changes nothing, so what other nodes do meanwhile may be
// counted or not.
func (r *Machine) Estimate(ctx context.Context, id firstcome.CampaignID) (e Estimate, err error) {
	a, known, err := r.revision(ctx, id)
	if err != nil || !known {
		return e, cmp.Or(err, ErrNothingToReconcile)
	}
	if older := r.isOlder(ctx, a); !errors.Is(older, gate.ErrLedgerRolledBack) {
		return e, cmp.Or(older, ErrNothingToReconcile)
	}
	s, err := r.gate.Stopped(ctx, a)
	if err != nil {
		return e, err
	}
	e = Estimate{Behind: a.Version, Version: s.Version, Ledger: a.Epoch, Gate: s.Epoch}
	whole, err := r.whole(ctx, s)
	if err != nil {
		return e, err
	}
	absent, err := r.absent(ctx, a, s)
	if err != nil {
		return e, err
	}
	if e.Voided = int64(len(absent)); !whole || e.Voided > max(0, s.Version-a.Version) {
		e.Voided, e.Unexplained = 0, e.Voided
	}
	lacking, err := r.lacking(ctx, Rebuild{Campaign: id, Marker: a.Marker})
	e.Recovered = int64(len(lacking))
	return e, err
}

// endReconcile does what is left of a reconcile that was cut off before the gate had its end.
func (r *Machine) endReconcile(ctx context.Context, actor string, a gate.Revision) (done Reconciled, err error) {
	err = r.standing(ctx, a)
	if !errors.Is(err, gate.ErrUnverified) {
		return done, cmp.Or(err, ErrNothingToReconcile)
	}
	attempt, begun := r.begin(ctx, actor, a.Campaign, a.Epoch, false)
	if begun != nil {
		return done, begun
	}
	done.Rebuilt, err = r.run(ctx, attempt, err, nil)
	return done, err
}

// whole reports whether a gate has the last state that it decided, and agrees with itself: its server has not restarted since, or both runs
// were durable.
func (r *Machine) whole(ctx context.Context, s Stopped) (bool, error) {
	if s.Holders != s.InForce || s.LastNumber < s.DrainedThrough {
		return false, nil
	}
	if s.Was == s.Is {
		return true, nil
	}
	durable, _, err := r.book.DurableRun(ctx, s.Was)
	if err != nil || !durable {
		return false, err
	}
	runs, err := r.gate.Runs(ctx) // the ledger that was restored may not know this one
	return slices.Contains(runs, Run{ID: s.Is, Durable: true}), err
}

// absent returns the coupons that are in force by the ledger, and that the gate gave and does not have. If the gate is whole, changes that the ledger has
// forgotten voided them.
func (r *Machine) absent(ctx context.Context, at gate.Revision, s Stopped) (absent []firstcome.Coupon, err error) {
	var some []firstcome.Coupon
	ask := func() error {
		held, err := r.gate.HoldsEach(ctx, at, some)
		for n := range held {
			if !held[n] {
				absent = append(absent, some[n])
			}
		}
		some = some[:0]
		return err
	}
	_, err = r.book.Refills(ctx, at.Campaign, func(c firstcome.Coupon) error {
		if !c.VoidedAt.IsZero() || c.Buried || c.Number > s.LastNumber {
			return nil
		}
		if some = append(some, c); len(some) < giveAtOnce {
			return nil
		}
		return ask()
	})
	if err == nil {
		err = ask()
	}
	return absent, err
}

// giveAtOnce is how many coupons a reconcile asks about, or gives to the ledger, at once: as many as a recorder.
const giveAtOnce = 2000

// lacking returns the coupons of the gate's holders that the ledger does not have, in number order.
func (r *Machine) lacking(ctx context.Context, attempt Rebuild) (lacking []firstcome.Coupon, err error) {
	var some []firstcome.Coupon
	ask := func() error {
		has, err := r.book.Has(ctx, attempt.Campaign, some)
		for n := range has {
			if !has[n] {
				lacking = append(lacking, some[n])
			}
		}
		some = some[:0]
		return err
	}
	err = r.gate.Held(ctx, attempt, func(c firstcome.Coupon) error {
		if some = append(some, c); len(some) < giveAtOnce {
			return nil
		}
		return ask()
	})
	if err == nil {
		err = ask()
	}
	slices.SortFunc(lacking, func(a, b firstcome.Coupon) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(lacking, func(a, b firstcome.Coupon) bool { return a.Number == b.Number && a.User == b.User }), err
}
