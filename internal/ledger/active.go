package ledger

import (
	"context"
	"time"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Active returns the campaigns that recorders must check, in the order of their ids: the campaigns of this node's gate and secret
// that are not retired. A campaign that is created or retired during the call may be included or not.
func (rc *Recorder) Active(ctx context.Context) ([]gate.Revision, error) {
	all, err := rc.rows.atGate(ctx, `c.retired_at IS NULL`)
	return all, sqldb.Wrap(err, "read the active campaigns")
}

// Lined returns the campaigns that may have users in line at this node's remote gate: the campaigns with a pace, and those with users
// in line by the gate's last report.
func (rc *Recorder) Lined(ctx context.Context) ([]gate.Revision, error) {
	all, err := rc.rows.atGate(ctx, mayBeInLine)
	return all, sqldb.Wrap(err, "read which campaigns may have people in line")
}

// mayBeInLine selects the campaigns c that may have users in line.
const mayBeInLine = `c.retired_at IS NULL AND (c.pace IS NOT NULL OR c.waiting > 0)`

// atGate returns the campaigns of this node's gate and secret that meet a condition, in the order of their ids. It leaves out
// campaigns that were deleted from the gate.
func (r *rows) atGate(ctx context.Context, condition string, args ...any) ([]gate.Revision, error) {
	now := r.db.Wall().UnixMicro()
	rows, err := r.db.Conclude.QueryContext(ctx, atGateQuery(condition), append([]any{now, now, r.gate, r.fingerprint}, args...)...)
	return sqldb.AllRows(rows, err, func(take sqldb.Scan) (v gate.Revision, err error) {
		var createdAt int64
		err = take(&v.Campaign, &v.Version, &v.Epoch, &createdAt, &v.Drained, &v.Rebuilding, &v.Unmade, &v.Reconciling, &v.Open)
		v.Marker = r.marker(time.UnixMicro(createdAt), r.fingerprint)
		return v, err
	})
}

// reconciling is true if a reconcile of the campaign c has begun and not ended.
const reconciling = `EXISTS (SELECT 1 FROM changes h WHERE h.campaign_id = c.id AND h.version > c.applied AND h.kind = 'reconcile')`

// isOpen is true if claims of the campaign c may get a coupon at a time, by its terms and switches. The time is given twice, in
// microseconds since 1970.
const isOpen = `(NOT c.paused AND NOT c.closed AND (c.opens_at IS NULL OR c.opens_at <= ?) AND (c.closes_at IS NULL OR c.closes_at > ?))`

func atGateQuery(condition string) string {
	return `SELECT c.id, c.version, c.epoch, c.created_at, c.drained_through, c.rebuilding_at IS NOT NULL, ` + unmade + `, ` + reconciling + `,
		` + isOpen + ` FROM campaigns c
		WHERE c.gate = ? AND c.forgotten_at IS NULL AND c.secret = ? AND ` + condition + ` ORDER BY c.id`
}
