package recovery

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// Created reports whether the gate's ledger ever created a campaign with this id at the gate. If the ledger does not have the campaign, it was rolled
// back. gate.ErrUnnamed means that the gate's server has lost its name, so that no campaign can be created there.
func (m *Machine) Created(ctx context.Context, id firstcome.CampaignID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, newestTime)
	defer cancel()
	named, err := m.gate.Named(ctx)
	switch {
	case err != nil:
		return false, err
	case !named:
		return false, gate.ErrUnnamed
	}
	return m.gate.Created(ctx, id)
}

// Adopted is what a ledger took over from its gate.
type Adopted struct {
	Epoch   int64 // the campaign's epoch until the rebuild ends it
	Behind  int64 // the ledger's version before
	Version int64 // the gate's
	Voided  int64 // coupons that the gate no longer has
	// Unexplained is how many coupons are in force in the ledger, are missing at the gate, and are too many to have all been voided by the changes
	// since the backup. They stay in force.
	Unexplained int64
	// FactsFrom is the first position whose facts may differ from those that were published before, or 0 if unknown. Readers of the campaign's facts
	// must read again from there. Followers are those whose cursors the ledger keeps; they have stopped.
	FactsFrom int64
	Followers []string
}

// A Reconciled is the result of a reconcile.
type Reconciled struct {
	Rebuilt
	Adopted
	Recovered int64 // coupons that the ledger got back
	Letters   int64 // coupons that the ledger refused, now dead letters
}

// ErrNothingToReconcile means that the ledger is not older than the gate, or that another gate decides the campaign.
var ErrNothingToReconcile = errors.New("the ledger is not older than the campaign's gate, or another gate decides the campaign: there is nothing to reconcile")

// Reconcile copies into the ledger what only the gate has, because an operator ordered it. It is a rebuild with two more steps between the freeze and
// the journal:
//
//	adopt         the ledger takes the gate's epoch, version, terms, pause and close, as a change of the kind reconcile. The change is
//	              pending until the end, so that the ledger does not count as complete before. Coupons that the gate no longer has are voided
//	bring back    the ledger records every holder's coupon that it lacks, with its number, time and code
//
// Reconcile may be interrupted anywhere, and repeated.
func (m *Machine) Reconcile(ctx context.Context, actor string, id firstcome.CampaignID) (done Reconciled, err error) {
	a, known, err := m.revision(ctx, id)
	if err != nil || !known {
		return done, cmp.Or(err, ErrNothingToReconcile)
	}
	if older := m.isOlder(ctx, a); !errors.Is(older, gate.ErrLedgerRolledBack) {
		return m.endReconcile(ctx, actor, a)
	}
	before, err := m.gate.GateState(ctx, a)
	if err != nil {
		return done, err
	}
	attempt, err := m.ledger.BeginReconcile(ctx, actor, id, before.Attempt)
	if err != nil {
		return done, err
	}
	attempt.InForce = max(attempt.InForce, before.InForce)
	done.Rebuilt, err = m.run(ctx, attempt, m.Refusal(id), &done)
	return done, err
}

// An Estimate is the expected result of a reconcile.
type Estimate struct {
	Recovered int64 // coupons that the gate has and the ledger lacks
	// Voided is how many coupons are in force in the ledger, while the gate issued them and no longer has them. If there are more than the forgotten
	// changes can have voided, they count as Unexplained and stay in force.
	Voided, Unexplained int64
	Behind, Version     int64 // the ledger's version, and the gate's
	Ledger, Gate        int64 // the epochs of the two
}

// Estimate returns the expected result of a reconcile of a campaign. It freezes and changes nothing, so it may or may not count what other nodes do
// at the same time.
func (m *Machine) Estimate(ctx context.Context, id firstcome.CampaignID) (e Estimate, err error) {
	a, known, err := m.revision(ctx, id)
	if err != nil || !known {
		return e, cmp.Or(err, ErrNothingToReconcile)
	}
	if older := m.isOlder(ctx, a); !errors.Is(older, gate.ErrLedgerRolledBack) {
		return e, cmp.Or(older, ErrNothingToReconcile)
	}
	s, err := m.gate.GateState(ctx, a)
	if err != nil {
		return e, err
	}
	e = Estimate{Behind: a.Version, Version: s.Version, Ledger: a.Epoch, Gate: s.Epoch}
	intact, err := m.intact(ctx, s)
	if err != nil {
		return e, err
	}
	absent, err := m.absent(ctx, a, s)
	if err != nil {
		return e, err
	}
	if e.Voided = int64(len(absent)); !intact || e.Voided > max(0, s.Version-a.Version) {
		e.Voided, e.Unexplained = 0, e.Voided
	}
	lacking, err := m.lacking(ctx, Rebuild{Campaign: id, CampaignUID: a.CampaignUID})
	e.Recovered = int64(len(lacking))
	return e, err
}

// endReconcile completes a reconcile that was interrupted after the ledger had the gate's state and before the gate was rebuilt.
func (m *Machine) endReconcile(ctx context.Context, actor string, a gate.Revision) (done Reconciled, err error) {
	err = m.inspect(ctx, a)
	if !errors.Is(err, gate.ErrUnverified) {
		return done, cmp.Or(err, ErrNothingToReconcile)
	}
	attempt, begun := m.begin(ctx, actor, a.Campaign, a.Epoch, false)
	if begun != nil {
		return done, begun
	}
	done.Rebuilt, err = m.run(ctx, attempt, err, nil)
	return done, err
}

// intact reports whether a gate has the last state that it decided, and is consistent: its server has not restarted since, or both runs were durable.
func (m *Machine) intact(ctx context.Context, s GateState) (bool, error) {
	if s.Holders != s.InForce || s.LastNumber < s.DrainedThrough {
		return false, nil
	}
	if s.Was == s.Is {
		return true, nil
	}
	durable, _, err := m.ledger.DurableRun(ctx, s.Was)
	if err != nil || !durable {
		return false, err
	}
	runs, err := m.gate.Runs(ctx) // the restored ledger may not know this run
	return slices.Contains(runs, Run{ID: s.Is, Durable: true}), err
}

// absent returns the coupons that are in force in the ledger, and that the gate issued and no longer has. If the gate is intact, changes that the
// ledger has forgotten voided them.
func (m *Machine) absent(ctx context.Context, at gate.Revision, s GateState) (absent []firstcome.Coupon, err error) {
	var some []firstcome.Coupon
	ask := func() error {
		held, err := m.gate.HoldsEach(ctx, at, some)
		for n := range held {
			if !held[n] {
				absent = append(absent, some[n])
			}
		}
		some = some[:0]
		return err
	}
	_, err = m.ledger.Refills(ctx, at.Campaign, func(c firstcome.Coupon) error {
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

// giveAtOnce is how many coupons a reconcile asks about, or records, in one call: as many as a recorder takes.
const giveAtOnce = 2000

// lacking returns the coupons of the gate's holders that the ledger does not have, in number order.
func (m *Machine) lacking(ctx context.Context, attempt Rebuild) (lacking []firstcome.Coupon, err error) {
	var some []firstcome.Coupon
	ask := func() error {
		has, err := m.records.Has(ctx, attempt.Campaign, some)
		for n := range has {
			if !has[n] {
				lacking = append(lacking, some[n])
			}
		}
		some = some[:0]
		return err
	}
	err = m.gate.Held(ctx, attempt, func(c firstcome.Coupon) error {
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
