package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/firstcome/firstcome/internal/flow"
)

// errOlder says that the ledger is an older copy of what it was.
var errOlder = fmt.Errorf("%w: it knows more as recorded than the ledger has, so the ledger is older than it was: firstcome gate reconcile with the campaign brings back what the gate has", flow.ErrLedgerRolledBack)

// differs notes that gate and ledger disagree on how far a campaign is drained, though its journal is empty. Then the gate
// was not told, the ledger is an older copy, or the campaign went on between the two readings. Even with entries in the
// journal, it notes that the ledger has numbers that the gate never gave. A gate in an epoch that has ended is told nothing.
func (j *Journal) differs(r flow.Revision, s survey) bool {
	if r.Marker == "" || s.fields[1] == strconv.FormatInt(r.Drained, 10) {
		return false
	}
	if epoch, err := strconv.ParseInt(s.fields[3], 10, 64); err == nil && epoch < r.Epoch {
		return false
	}
	if s.absent() && s.entries == 0 && r.Drained == 0 { // it is being made
		return false
	}
	if last, err := strconv.ParseInt(s.fields[0], 10, 64); s.entries > 0 && (err != nil || last >= r.Drained) {
		return false
	}
	j.stream(r.Campaign).differs.Store(true)
	return true
}

// agree tells the gate how far a campaign is drained, if a sweep saw that the gate says otherwise.
func (j *Journal) agree(ctx context.Context, s *stream, to flow.Sink) error {
	if !s.differs.Swap(false) { // else the next sweep says so again
		return nil
	}
	about := flow.Batch{Campaign: s.id, Marker: s.keys.marker, Told: s.told}
	drained, err := to(ctx, about)
	if err != nil {
		return err
	}
	return j.settle(ctx, s, to, about, drained, nil)
}

// settle removes entries that the sink has taken, and tells the gate how far the campaign is drained. It checks
// that the ledger has what the gate was told before: another recorder may have told more since the ledger
// answered, but if the ledger does not have that now, it is an older copy.
func (j *Journal) settle(ctx context.Context, s *stream, to flow.Sink, about flow.Batch, drained flow.Drained, entries []string) error {
	var before, through int64
	err := flow.Settle(ctx, about, drained, to, &s.told, func(drained flow.Drained) (err error) {
		through = drained.Through
		before, err = j.gate.Settle(ctx, s.id, s.keys.marker, drained, entries...)
		return err
	})
	if err != nil || before <= through {
		return err
	}
	now, err := to(ctx, flow.Batch{Campaign: s.id, Marker: s.keys.marker, Told: before})
	if err == nil && now.Through < before {
		j.alarms.Tell(s.id, errOlder)
	}
	return err
}
