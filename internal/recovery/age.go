package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// newestTime is how long a change waits for the gate to report whether the ledger is older. A gate that hangs must not hold up an operator for
// longer.
const newestTime = 3 * time.Second

// ahead returns in which value a gate is ahead of the ledger's revision, or "" if in none.
func ahead(r gate.Revision, s GateState) string {
	switch {
	case s.Epoch > r.Epoch:
		return fmt.Sprintf("it is in epoch %d, the ledger in %d", s.Epoch, r.Epoch)
	case s.Version > r.Version:
		return fmt.Sprintf("it is at version %d, the ledger at %d", s.Version, r.Version)
	case s.DrainedThrough > r.Drained:
		return fmt.Sprintf("it is drained through number %d, the ledger through %d", s.DrainedThrough, r.Drained)
	}
	return ""
}

// outlived returns a gate.StaleEpochError if a gate's epoch has ended by a revision that was read before the gate. A frozen gate is being rebuilt,
// and its epoch rightly ends in the ledger first.
func outlived(a gate.Revision, s GateState) error {
	if s.Frozen || s.Epoch >= a.Epoch {
		return nil
	}
	return &gate.StaleEpochError{Campaign: a.Campaign, Gate: s.Epoch, Ledger: a.Epoch}
}

// ErrAhead means that a gate is ahead of a revision of the ledger. The ledger may have advanced since the revision was read.
var ErrAhead = errors.New("the gate is ahead of the ledger's revision")

// inspectAhead returns the standing of a gate that is ahead of a revision. If only the revision was out of date, the gate is asked again with the
// current one. ErrAhead then means that the campaign has advanced again.
func (m *Machine) inspectAhead(ctx context.Context, a gate.Revision) error {
	if err := m.compare(ctx, a); err != nil {
		return err
	}
	now, known, err := m.revision(ctx, a.Campaign)
	if err != nil || !known {
		return errors.Join(err, ErrAhead)
	}
	return m.gate.Inspect(ctx, now)
}

// compare returns a gate.LedgerRolledBackError, a gate.StaleEpochError, nil if gate and ledger are of one age, or why that is unknown. If the gate
// seems to be ahead, the ledger is read again after the gate, because the campaign continues during the two readings.
func (m *Machine) compare(ctx context.Context, a gate.Revision) error {
	if a.Reconciling {
		return &gate.LedgerRolledBackError{Campaign: a.Campaign}
	}
	s, err := m.gate.GateState(ctx, a)
	switch {
	case err != nil:
		return err
	case ahead(a, s) != "":
		return m.confirm(ctx, a.Campaign, s)
	}
	return outlived(a, s)
}

// confirm compares again, with a revision that is read after the gate.
func (m *Machine) confirm(ctx context.Context, id firstcome.CampaignID, s GateState) error {
	now, known, err := m.revision(ctx, id)
	if err != nil || !known {
		return err
	}
	if found := ahead(now, s); found != "" {
		return &gate.LedgerRolledBackError{Campaign: id, Found: found}
	}
	return nil
}

// isOlder compares, notes the result, and returns the campaign's refusal. If the gate does not answer, or has nothing of the campaign, the earlier
// refusal stays.
func (m *Machine) isOlder(ctx context.Context, a gate.Revision) error {
	err := m.compare(ctx, a)
	if err == nil || refuses(err) {
		m.Refuse(a.Campaign, err)
	}
	return m.Refusal(a.Campaign)
}

// Newest asks the gate whether it and the ledger are of one age, and returns a gate.LedgerRolledBackError, a gate.StaleEpochError, or nil. If the
// gate does not answer, Newest returns what this node knew before: operators can still change a campaign whose gate is gone.
func (m *Machine) Newest(ctx context.Context, id firstcome.CampaignID) error {
	ctx, cancel := context.WithTimeout(ctx, newestTime)
	defer cancel()
	a, known, err := m.revision(ctx, id)
	if err != nil || !known {
		return m.Refusal(id)
	}
	return m.isOlder(ctx, a)
}

// LookBack compares gate and ledger of each active campaign once, for up to newestTime, before a node decides its first claim.
func (m *Machine) LookBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, newestTime)
	defer cancel()
	active, _ := m.records.Active(ctx) // the next look checks the others
	m.begun(active)
	for _, a := range first(active, nil) {
		_ = m.isOlder(ctx, a)
	}
}

// Guard returns a Keeper that writes nothing into a rolled-back ledger. Such a ledger refuses coupons of an epoch, of terms or of a quantity that it
// has forgotten, and these must not become dead letters. So the gate is asked before a coupon becomes a dead letter, which is seldom.
//
// The ledger still gets coupons of a gate in a stale epoch, and notes their users: see Result.Lost. The first such batch suggests that the gate's
// epoch has ended, so the gate is asked at once. Batches that the ledger refuses because of a rebuild wait for its end. If the owner of that rebuild
// has died, this node begins another.
func (m *Machine) Guard(k record.Keeper) record.Keeper { return guarded{k, m} }

type guarded struct {
	record.Keeper
	machine *Machine
}

func (g guarded) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	if err := g.machine.Refusal(b.Campaign); errors.Is(err, gate.ErrLedgerRolledBack) {
		return record.Result{}, err
	}
	drained, err := g.Keeper.Record(ctx, b)
	if errors.Is(err, record.ErrRebuilding) {
		g.machine.Suspect(b.Campaign, err)
	}
	if err == nil && len(b.Coupons) > 0 && b.Epoch < drained.Epoch && g.machine.Refusal(b.Campaign) == nil {
		_ = g.machine.Newest(ctx, b.Campaign) // it notes the answer
	}
	return drained, err
}

func (g guarded) Bury(ctx context.Context, b record.Batch, cause string) (record.Result, error) {
	if len(b.Coupons) > 0 {
		if err := g.machine.Newest(ctx, b.Campaign); errors.Is(err, gate.ErrLedgerRolledBack) {
			return record.Result{}, err
		}
	}
	return g.Keeper.Bury(ctx, b, cause)
}
