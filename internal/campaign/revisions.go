package campaign

import (
	"context"
	"time"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// MayBeInLine selects the campaigns c that may have users in line.
const MayBeInLine = `c.retired_at IS NULL AND (c.pace IS NOT NULL OR c.waiting > 0)`

// AtGate returns the campaigns of this node's gate and secret that meet a condition, in the order of their ids. It leaves out
// campaigns that were deleted from the gate.
func (r *Store) AtGate(ctx context.Context, condition string, args ...any) ([]gate.Revision, error) {
	now := r.DB.Wall().UnixMicro()
	rows, err := r.DB.Conclude.QueryContext(ctx, atGateQuery(condition), append([]any{now, now, r.Gate, r.Fingerprint}, args...)...)
	return sqldb.AllRows(rows, err, func(take sqldb.Scan) (v gate.Revision, err error) {
		var createdAt int64
		err = take(&v.Campaign, &v.Version, &v.Applied, &v.Epoch, &createdAt, &v.Drained, &v.TermsVersion, &v.Rebuilding, &v.Creating, &v.Reconciling, &v.Open)
		v.CampaignUID = r.CampaignUID(time.UnixMicro(createdAt), r.Fingerprint)
		return v, err
	})
}

// reconciling is true if a reconcile of the campaign c has begun and not ended.
const reconciling = `EXISTS (SELECT 1 FROM changes h WHERE h.campaign_id = c.id AND h.version > c.applied AND h.kind = 'reconcile')`

// isOpen is true if claims of the campaign c may get a coupon at a time, by its terms and switches. The time is given twice, in
// microseconds since 1970.
const isOpen = `(NOT c.paused AND NOT c.closed AND (c.opens_at IS NULL OR c.opens_at <= ?) AND (c.closes_at IS NULL OR c.closes_at > ?))`

func atGateQuery(condition string) string {
	return `SELECT c.id, c.version, c.applied, c.epoch, c.created_at, c.drained_through, c.terms_version, c.rebuilding_at IS NOT NULL, ` + creating + `, ` + reconciling + `,
		` + isOpen + ` FROM campaigns c
		WHERE c.gate = ? AND c.forgotten_at IS NULL AND c.secret = ? AND ` + condition + ` ORDER BY c.id`
}
