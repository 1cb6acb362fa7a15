package epoch

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// SeeRun notes a run of a server of this node's gate, and when it was seen. A run that was seen as not durable
// never counts as durable again: see recovery.Run.
func (e *Epochs) SeeRun(ctx context.Context, run recovery.Run) error {
	err := e.db.Repeat(ctx, func(t *sqldb.Tx) error {
		now, err := e.db.Now(t)
		if err != nil {
			return err
		}
		var durable bool
		err = t.Row(`SELECT durable FROM gate_runs WHERE gate = ? AND run = ?`+e.db.Dialect.ForUpdate, e.store.Gate, run.ID).Scan(&durable)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = t.Change(`INSERT INTO gate_runs (gate, run, durable, seen_at) VALUES (?, ?, ?, ?)`, e.store.Gate, run.ID, run.Durable, now.UnixMicro())
		case err == nil:
			_, err = t.Change(`UPDATE gate_runs SET durable = ?, seen_at = ? WHERE gate = ? AND run = ?`, durable && run.Durable, now.UnixMicro(), e.store.Gate, run.ID)
		}
		return err
	})
	return sqldb.Wrap(err, "note a run of the gate's server")
}

// RecentRuns returns the runs of servers of this node's gate that a node saw within an age.
func (e *Epochs) RecentRuns(ctx context.Context, within time.Duration) (runs []string, err error) {
	now, err := e.db.ReadNow(ctx)
	if err == nil {
		rows, err2 := e.db.Conclude.QueryContext(ctx, `SELECT run FROM gate_runs WHERE gate = ? AND seen_at > ? ORDER BY run`, e.store.Gate, now.Add(-within).UnixMicro())
		runs, err = sqldb.AllRows(rows, err2, sqldb.One[string])
	}
	return runs, sqldb.Wrap(err, "read which runs of the gate's servers were seen")
}

// DurableRun reports whether a run of a server of this node's gate was durable each time a node checked it, and
// whether any node did.
func (e *Epochs) DurableRun(ctx context.Context, run string) (durable, seen bool, err error) {
	err = e.db.Conclude.QueryRowContext(ctx, `SELECT durable FROM gate_runs WHERE gate = ? AND run = ?`, e.store.Gate, run).Scan(&durable)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return durable, err == nil, sqldb.Wrap(err, "read of a run of the gate's server")
}

// Numbered calls each with every number of a campaign above one that is a coupon or a dead letter, in their order.
func (e *Epochs) Numbered(ctx context.Context, campaign string, above int64, each func(number int64)) error {
	rows, err := e.db.Conclude.QueryContext(ctx, `SELECT number FROM coupons WHERE campaign_id = ? AND number > ?
		UNION SELECT number FROM dead_letters WHERE campaign_id = ? AND number > ? ORDER BY number`, campaign, above, campaign, above)
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		number, err := sqldb.One[int64](take)
		if err == nil {
			each(number)
		}
		return err
	})
	return sqldb.Wrap(err, "read which numbers of %s the ledger has", campaign)
}

// LedgerState returns the state in which a campaign's gate must be, with terms, pause and close as of a version that
// the gate has.
func (e *Epochs) LedgerState(ctx context.Context, id firstcome.CampaignID, version int64) (recovery.LedgerState, error) {
	s, err := e.store.Campaign(ctx, id)
	if err != nil {
		return recovery.LedgerState{}, err
	}
	standard := recovery.LedgerState{Campaign: s.Campaign, Applied: s.Applied, Epoch: s.Epoch, LastNumber: s.LastNumber, DrainedThrough: s.DrainedThrough}
	if standard.Terms, err = e.store.Terms(ctx, id, version); err != nil {
		return standard, err
	}
	if err = e.before(ctx, &standard.Campaign, version); err == nil {
		standard.IssuedAt, err = e.lastIssue(ctx, id)
	}
	return standard, sqldb.Wrap(err, "read what the gate of %s has to be in", id)
}

// before undoes in c the pause, resume or close that follows a version. At most one change follows, and each
// pause, resume or close changes the state.
func (e *Epochs) before(ctx context.Context, c *firstcome.Campaign, version int64) error {
	var kind firstcome.ChangeKind
	err := e.db.Conclude.QueryRowContext(ctx, `SELECT kind FROM changes WHERE campaign_id = ? AND version > ? AND version <= ? ORDER BY version LIMIT 1`,
		string(c.ID), version, c.Version).Scan(&kind)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	switch kind {
	case firstcome.ChangePause:
		c.Paused = false
	case firstcome.ChangeResume:
		c.Paused = true
	case firstcome.ChangeClose:
		c.Closed = false
	}
	return nil
}

// lastIssue returns when the coupon with a campaign's highest number was issued, or the zero time if there is none.
func (e *Epochs) lastIssue(ctx context.Context, id firstcome.CampaignID) (at time.Time, err error) {
	err = e.db.Conclude.QueryRowContext(ctx, `SELECT issued_at FROM coupons WHERE campaign_id = ? ORDER BY number DESC LIMIT 1`, string(id)).Scan(sqldb.Time(&at))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, err
}
