package ledger

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// unclosed is the condition of campaigns that may still issue a coupon to a new user at or after the parameter.
const unclosed = `NOT c.closed AND c.retired_at IS NULL AND (c.closes_at IS NULL OR c.closes_at > ?)`

// A Shown campaign has the figures that metrics show. It has no terms, so a campaign whose terms cannot be
// read is shown, too.
type Shown struct {
	ID              firstcome.CampaignID
	Quantity        int64 // firstcome.Unlimited if there is no limit
	InForce, Issued int64
	Epoch           int64
}

// Unclosed returns at most limit of the campaigns that are not closed, and how many more there are. Campaigns
// that are open and have stock come first, then those that opened lately or will open soon. So the campaigns
// that issue coupons now are among them, however many campaigns there ever were. This node then knows that they exist: see Knows.
func (rd *Reads) Unclosed(ctx context.Context, limit int) (all []Shown, more int64, err error) {
	now := rd.db.Wall().UnixMicro()
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT c.id, c.quantity, c.in_force, c.issued, c.epoch FROM campaigns c WHERE `+unclosed+`
		ORDER BY CASE WHEN (c.opens_at IS NULL OR c.opens_at <= ?) AND (c.quantity IS NULL OR c.in_force < c.quantity) THEN 0 ELSE 1 END,
			ABS(COALESCE(c.opens_at, c.created_at) - ?), c.id LIMIT ?`, now, now, now, limit)
	all, err = sqldb.AllRows(rows, err, func(take sqldb.Scan) (s Shown, err error) {
		if err = take(&s.ID, campaign.Quantity(&s.Quantity), &s.InForce, &s.Issued, &s.Epoch); err == nil {
			rd.store.Existing.Add(s.ID)
		}
		return s, err
	})
	if err == nil && len(all) == limit { // there may be more
		err = rd.db.Read.QueryRowContext(ctx, `SELECT count(*) FROM campaigns c WHERE `+unclosed, now).Scan(&more)
		more = max(0, more-int64(limit))
	}
	return all, more, sqldb.Wrap(err, "read the campaigns that are not closed")
}

// Knows reports whether this node knows that a campaign exists. It reads nothing.
func (rd *Reads) Knows(id firstcome.CampaignID) bool { return rd.store.Existing.Has(id) }

// Exists returns nil if a campaign exists, and firstcome.ErrNoCampaign if it does not. Unless this node knows it, Exists reads the ledger.
func (rd *Reads) Exists(ctx context.Context, id firstcome.CampaignID) error {
	return rd.store.Existing.Check(ctx, id)
}

// LastDecision returns the time of the latest decision of any campaign in the ledger. It is zero if there is no
// campaign.
func (rd *Reads) LastDecision(ctx context.Context) (last time.Time, err error) {
	err = rd.db.Conclude.QueryRowContext(ctx, `SELECT max(decided_at) FROM campaigns`).Scan(sqldb.Time(&last))
	return last, sqldb.Wrap(err, "read the last decision")
}
