package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

// newestTime bounds how long a change waits for the gate to say whether the ledger is older. A gate that hangs must not hold up an
// operator for longer.
const newestTime = 3 * time.Second

// ahead says what a gate knows that the ledger's revision does not; empty: nothing.
func ahead(r gate.Revision, s Stopped) string {
	switch {
	case s.Epoch > r.Epoch:
		return fmt.Sprintf("it is in epoch %d, the ledger in %d", s.Epoch, r.Epoch)
	case s.Version > r.Version:
		return fmt.Sprintf("it is at version %d, the ledger at %d", s.Version, r.Version)
	case s.DrainedThrough > r.Drained:
		return fmt.Sprintf("it was told that the ledger has the numbers up to %d, and the ledger has them up to %d", s.DrainedThrough, r.Drained)
	}
	return ""
}

// outlived returns a gate.StaleEpochError if a gate is in an epoch that has ended by a revision which was read before it. A frozen gate is one that is
// rebuilt: its epoch ends in the ledger first.
func outlived(a gate.Revision, s Stopped) error {
	if s.Frozen || s.Epoch >= a.Epoch {
		return nil
	}
	return &gate.StaleEpochError{Campaign: a.Campaign, Gate: s.Epoch, Ledger: a.Epoch}
}

// ErrAhead says that a gate has more than a revision of the ledger says. The ledger may have gone on since that was read.
var ErrAhead = errors.New("the gate has more than the ledger said")

// standsAhead is standing of a gate that has more than a revision says. If that is so because the ledger has gone on, the gate is asked once
// more; ErrAhead says that it goes on still.
func (r *Machine) standsAhead(ctx context.Context, a gate.Revision) error {
	if err := r.compare(ctx, a); err != nil {
		return err
	}
	now, known, err := r.revision(ctx, a.Campaign)
	if err != nil || !known {
		return errors.Join(err, ErrAhead)
	}
	return r.gate.Standing(ctx, now)
}

// refusalOf is compare, of which only what refuses the campaign counts.
func (r *Machine) refusalOf(ctx context.Context, a gate.Revision) error {
	if err := r.compare(ctx, a); refuses(err) {
		return err
	}
	return nil
}

// compare returns an gate.LedgerRolledBackError, a gate.StaleEpochError, nil if gate and ledger are of one age, or why that is not known. Where the gate seems to be
// ahead, the ledger is read once more behind it, because the campaign goes on meanwhile.
func (r *Machine) compare(ctx context.Context, a gate.Revision) error {
	if a.Reconciling {
		return &gate.LedgerRolledBackError{Campaign: a.Campaign}
	}
	s, err := r.gate.Stopped(ctx, a)
	switch {
	case err != nil:
		return err
	case ahead(a, s) != "":
		return r.confirm(ctx, a.Campaign, s)
	}
	return outlived(a, s)
}

// confirm compares again, with the ledger read after the gate.
func (r *Machine) confirm(ctx context.Context, id firstcome.CampaignID, s Stopped) error {
	now, known, err := r.revision(ctx, id)
	if err != nil || !known {
		return err
	}
	if found := ahead(now, s); found != "" {
		return &gate.LedgerRolledBackError{Campaign: id, Found: found}
	}
	return nil
}

// isOlder compares, and notes what it finds. Of a gate that does not say, or has nothing, what was known before still holds.
func (r *Machine) isOlder(ctx context.Context, a gate.Revision) error {
	err := r.compare(ctx, a)
	if err == nil || refuses(err) {
		r.Refuse(a.Campaign, err)
	}
	return r.Refusal(a.Campaign)
}

// Newest asks the gate whether it and the ledger are of one age, and returns an gate.LedgerRolledBackError, a gate.StaleEpochError, or nil. If the gate does not
// say, it is what this node knew before: a change of a campaign whose gate is gone goes on.
func (r *Machine) Newest(ctx context.Context, id firstcome.CampaignID) error {
	ctx, cancel := context.WithTimeout(ctx, newestTime)
	defer cancel()
	a, known, err := r.revision(ctx, id)
	if err != nil || !known {
		return r.Refusal(id)
	}
	return r.isOlder(ctx, a)
}

// LookBack looks once, for a moment, of which campaigns gate and ledger are not of one age: before a node decides its first claim.
func (r *Machine) LookBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, newestTime)
	defer cancel()
	active, _ := r.book.Active(ctx) // the next look finds what this one does not
	r.begun(active)
	for _, a := range first(active, nil) {
		_ = r.isOlder(ctx, a)
	}
}

// Guard returns a keeper that keeps nothing in a rolled-back ledger. What such a ledger refuses would become dead letters: coupons
// of an epoch, of terms or of a quantity that it has forgotten. So the gate is asked before anything is buried, which is seldom.
//
// Coupons that an older gate gave go to the ledger all the same, which notes whose they were: see Drained.Lost. The first such batch says that the gate
// may be older, so it is asked at once. What the ledger refuses because of a rebuild waits for its end, and if its owner has died, this node begins
// another.
func (r *Machine) Guard(k flow.Keeper) flow.Keeper { return guarded{k, r} }

type guarded struct {
	flow.Keeper
	machine *Machine
}

func (g guarded) Record(ctx context.Context, b flow.Batch) (flow.Drained, error) {
	if err := g.machine.Refusal(b.Campaign); errors.Is(err, gate.ErrLedgerRolledBack) {
		return flow.Drained{}, err
	}
	drained, err := g.Keeper.Record(ctx, b)
	if errors.Is(err, flow.ErrRebuilding) {
		g.machine.Suspect(b.Campaign, err)
	}
	if err == nil && len(b.Coupons) > 0 && b.Epoch < drained.Epoch && g.machine.Refusal(b.Campaign) == nil {
		_ = g.machine.Newest(ctx, b.Campaign) // of which it takes note
	}
	return drained, err
}

func (g guarded) Bury(ctx context.Context, b flow.Batch, cause string) (flow.Drained, error) {
	if len(b.Coupons) > 0 {
		if err := g.machine.Newest(ctx, b.Campaign); errors.Is(err, gate.ErrLedgerRolledBack) {
			return flow.Drained{}, err
		}
	}
	return g.Keeper.Bury(ctx, b, cause)
}
