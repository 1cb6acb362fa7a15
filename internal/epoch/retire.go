package epoch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Retiring returns two kinds of campaigns of this node's gate: those that were retired at least the duration
// retired ago and not forgotten, and those that may be retired. The latter have been closed for at least the
// duration closed, by an operator or by their window, and the gate has all their changes. Retire checks more.
func (e *Epochs) Retiring(ctx context.Context, closed, retired time.Duration) ([]recovery.Retiring, error) {
	now, err := e.db.ReadNow(ctx)
	if err != nil {
		return nil, fmt.Errorf("read which campaigns retire: %w", err)
	}
	by := now.Add(-closed).UnixMicro()
	over, err1 := e.store.AtGate(ctx, `c.retired_at IS NULL AND c.applied = c.version AND (c.closes_at <= ? OR c.closed_at <= ?)`, by, by)
	marked, err2 := e.store.AtGate(ctx, `c.retired_at <= ?`, now.Add(-retired).UnixMicro())
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("read which campaigns retire: %w", err)
	}
	var all []recovery.Retiring
	for n, r := range append(marked, over...) {
		all = append(all, recovery.Retiring{Campaign: r.Campaign, Marked: n < len(marked)})
	}
	return all, nil
}

// retiredBy is the actor of retirements in the audit log.
const retiredBy = "firstcome"

// Retire marks a campaign as retired, and reports whether it is retired. The campaign must have been closed for
// age, by the ledger's time and by the gate's. Its version and epoch must be those of the gate's state seen. All
// its numbers must be drained, and it must have no open dead letter. After Retire the ledger answers for the
// campaign, and the gate may forget it. A second call does nothing.
func (e *Epochs) Retire(ctx context.Context, id firstcome.CampaignID, seen gate.State, age time.Duration) (retired bool, err error) {
	err = e.store.Locked(ctx, id, func(t *sqldb.Tx, s campaign.Row) (err error) {
		if retired = !s.RetiredAt.IsZero(); retired {
			return nil
		}
		now := e.store.DecidesAt(s)
		by := now
		if seen.Now.Before(by) {
			by = seen.Now
		}
		if retired, err = e.mayRetire(t, s, seen, by.Add(-age)); err != nil || !retired {
			return err
		}
		// decided_at keeps the window closed if the clock goes back.
		_, err = t.Change(`UPDATE campaigns SET retired_at = ?, decided_at = ?, opened_at = ?, sold_out_at = ?, closed_at = ? WHERE id = ?`,
			now.UnixMicro(), now.UnixMicro(), sqldb.Micros(seen.OpenedAt), sqldb.Micros(seen.SoldOutAt), sqldb.Micros(seen.ClosedAt), string(id))
		if err != nil {
			return err
		}
		return campaign.AddLog(t, now, retiredBy, "campaign.retire", campaign.Entry{Campaign: id, Detail: "{}"})
	})
	return retired, sqldb.Wrap(err, "retire the campaign %s", id)
}

// mayRetire reports whether a campaign was closed at the time by, and has no pending change, undrained number,
// rebuild or open dead letter. The caller has locked the campaign's row.
func (e *Epochs) mayRetire(t *sqldb.Tx, s campaign.Row, seen gate.State, by time.Time) (bool, error) {
	changed := s.Pending() || seen.Version != s.Version || seen.Epoch != s.Epoch
	undrained := s.DrainedThrough < max(seen.LastNumber, s.LastNumber)
	if !e.store.Remote() || changed || undrained || !s.RebuildingAt.IsZero() || !s.ClosedBy(by) {
		return false, nil
	}
	open, err := t.Exists(`SELECT count(*) FROM dead_letters WHERE campaign_id = ? AND resolved_at IS NULL`, string(s.ID))
	return !open, err
}

// Forgotten notes that the gate has deleted a retired campaign. A second call does nothing.
func (e *Epochs) Forgotten(ctx context.Context, id firstcome.CampaignID) error {
	err := e.store.Locked(ctx, id, func(t *sqldb.Tx, s campaign.Row) error {
		if s.RetiredAt.IsZero() {
			return campaign.ErrNotRetired
		}
		_, err := t.Change(`UPDATE campaigns SET forgotten_at = ? WHERE id = ? AND forgotten_at IS NULL`, e.store.DecidesAt(s).UnixMicro(), string(id))
		return err
	})
	return sqldb.Wrap(err, "note that the gate has forgotten %s", id)
}
