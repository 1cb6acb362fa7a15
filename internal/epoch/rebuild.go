// Package epoch keeps what package recovery needs in the ledger's database: which attempt rebuilds a gate, the epochs and the numbers
// that were lost at their ends, what a reconcile adopts, which campaigns are retired, and the runs of the gate's servers.
package epoch

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Epochs manages the epochs of remote gates for package recovery. A rebuild or a reconcile begins the next
// epoch. The last epoch of a campaign ends when the campaign is retired.
type Epochs struct {
	db    *sqldb.DB
	store *campaign.Store
}

// New returns the epochs of a ledger.
func New(r *campaign.Store) *Epochs { return &Epochs{db: r.DB, store: r} }

// attemptTime is how long a rebuild may send no heartbeat before another attempt may begin.
const attemptTime = 10 * time.Second

// BeginRebuild claims the campaign's row for a new attempt at a rebuild. Until FinishRebuild, only batches of
// this attempt add coupons. recovery.ErrSuperseded means that another attempt sent a heartbeat within the last ten
// seconds, or that the campaign has left the given epoch because another node was faster. Epoch 0 accepts any
// epoch, and it moves a campaign of another Redis to this node's gate. With any other epoch, a campaign of
// another Redis is refused with firstcome.ErrGateMismatch.
func (e *Epochs) BeginRebuild(ctx context.Context, actor string, id firstcome.CampaignID, epoch int64) (recovery.Rebuild, error) {
	r, err := e.begin(ctx, actor, id, func(s campaign.Row) (int64, error) {
		switch {
		case s.Away != nil && epoch != 0:
			return 0, s.Away
		case s.RetiredAt.IsZero() && s.Creating():
			return 0, fmt.Errorf("%w: it is being made", firstcome.ErrGateUnavailable)
		case s.RetiredAt.IsZero() && epoch != 0 && epoch != s.Epoch:
			return 0, recovery.ErrSuperseded
		}
		return nextAttempt(s.Attempt), nil
	})
	return r, sqldb.Wrap(err, "begin to rebuild the gate of %s", id)
}

// tokenBits is how many of the lowest bits of an attempt's number are random. The higher bits count attempts.
const tokenBits = 24

// nextAttempt returns the number of the attempt after last. If the ledger fails over to a replica that lagged,
// two attempts may have the same count. Their random bits differ, so neither performs a step of the other.
func nextAttempt(last int64) int64 { return (last>>tokenBits+1)<<tokenBits | rand.Int64N(1<<tokenBits) }

// begin claims the campaign's row for an attempt. next returns the attempt's number, or an error that refuses it.
func (e *Epochs) begin(ctx context.Context, actor string, id firstcome.CampaignID, next func(campaign.Row) (attempt int64, err error)) (r recovery.Rebuild, err error) {
	err = e.db.Update(ctx, func(t *sqldb.Tx) error {
		s, err := e.store.RowToChange(t, id)
		if err != nil {
			return err
		}
		if !e.store.Remote() || e.store.Gate == "" {
			return gate.ErrUnnamed
		}
		attempt, err := next(s)
		if err == nil {
			err = e.store.CheckTopics(t, id)
		}
		if err != nil {
			return err
		}
		now, err := e.db.Now(t)
		if err != nil {
			return err
		}
		switch {
		case !s.RetiredAt.IsZero():
			return gate.ErrRetired
		case !s.RebuildingAt.IsZero() && now.Before(s.RebuildingAt.Add(attemptTime)) && !now.Before(s.RebuildingAt):
			return recovery.ErrSuperseded
		}
		r = recovery.Rebuild{Campaign: id, CampaignUID: s.CampaignUID, Attempt: attempt, Epoch: s.Epoch, Version: s.Version, Drained: s.DrainedThrough, Actor: actor, InForce: s.InForce, Left: !s.RebuildingAt.IsZero()}
		_, err = t.Change(`UPDATE campaigns SET attempt = ?, rebuilding_at = ?, gate = ? WHERE id = ?`, r.Attempt, now.UnixMicro(), e.store.Gate, string(id))
		return err
	})
	return r, err
}

// Heartbeat records that the owner of a rebuild is alive. recovery.ErrSuperseded means that this attempt is over, as when another
// attempt has begun.
func (e *Epochs) Heartbeat(ctx context.Context, r recovery.Rebuild) error {
	err := e.db.Update(ctx, func(t *sqldb.Tx) error {
		now, err := e.db.Now(t)
		if err != nil {
			return err
		}
		n, err := t.Change(`UPDATE campaigns SET rebuilding_at = ? WHERE id = ? AND attempt = ? AND rebuilding_at IS NOT NULL`,
			now.UnixMicro(), string(r.Campaign), r.Attempt)
		if err == nil && n == 0 {
			err = recovery.ErrSuperseded
		}
		return err
	})
	return sqldb.Wrap(err, "rebuild the gate of %s", r.Campaign)
}

// GiveUpRebuild ends an attempt that failed, so that another may begin at once. The gate stays frozen.
func (e *Epochs) GiveUpRebuild(ctx context.Context, r recovery.Rebuild) error {
	err := e.db.Update(ctx, func(t *sqldb.Tx) error {
		_, err := t.Change(`UPDATE campaigns SET rebuilding_at = NULL WHERE id = ? AND attempt = ?`, string(r.Campaign), r.Attempt)
		return err
	})
	return sqldb.Wrap(err, "give up to rebuild the gate of %s", r.Campaign)
}

// LastRebuild returns the result of the last rebuild of a campaign's gate. If the gate was never rebuilt, it
// returns epoch 1 with no losses.
func (e *Epochs) LastRebuild(ctx context.Context, id firstcome.CampaignID) (recovery.Rebuilt, error) {
	was := storedRebuild{Epoch: 1}
	var payload string
	err := e.db.Conclude.QueryRowContext(ctx, `SELECT payload FROM changes WHERE campaign_id = ? AND kind = 'rebuild' ORDER BY version DESC LIMIT 1`, string(id)).
		Scan(&payload)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = nil
	case err == nil:
		err = json.Unmarshal([]byte(payload), &was)
	}
	return recovery.Rebuilt{Campaign: id, Epoch: was.Epoch, Lost: was.Lost, Carried: was.Carried, LostPlaces: was.LostPlaces}, sqldb.Wrap(err, "read the last rebuild of %s", id)
}
