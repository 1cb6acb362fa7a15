package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A PrizeGiven is how much of a prize is given.
type PrizeGiven struct {
	Given    int64     // ranks, also of coupons that were voided since
	RanOutAt time.Time // when the coupon with the last rank, or a later one, was issued; zero if no such coupon is recorded
}

// PrizesGiven returns how much of each prize of a campaign is given. last is the last number that its gate has given.
func (rd *Reads) PrizesGiven(ctx context.Context, id firstcome.CampaignID, t *firstcome.Terms, last int64) (all []PrizeGiven, err error) {
	for n := range t.Prizes {
		from, to := t.Ranks(n)
		p := PrizeGiven{Given: max(0, min(t.Rank(last), to)-from+1)}
		if t.Rank(last) >= to {
			if p.RanOutAt, err = rd.issuedFrom(ctx, id, t.NumberOf(to)); err != nil {
				return nil, err
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// issuedFrom returns when the first coupon with a number from one on was issued, or the zero time if there is none.
func (rd *Reads) issuedFrom(ctx context.Context, id firstcome.CampaignID, number int64) (at time.Time, err error) {
	err = rd.db.Read.QueryRowContext(ctx, `SELECT issued_at FROM coupons WHERE campaign_id = ? AND number >= ? ORDER BY number LIMIT 1`, string(id), number).
		Scan(sqldb.Time(&at))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, sqldb.Wrap(err, "read when a prize of %s ran out", id)
}
