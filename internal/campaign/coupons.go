package campaign

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// CouponColumns are the columns that ScanCoupons reads.
const CouponColumns = `campaign_id, number, user_id, code, terms_version, issued_at, voided_at, generation, ticket, direct`

// ScanCoupons calls each with the coupon of every row, until each returns an error. It scans the columns after CouponColumns into
// more.
func ScanCoupons(rows *sql.Rows, err error, each func(firstcome.Coupon) error, more ...any) error {
	var c firstcome.Coupon
	into := append([]any{
		&c.Campaign, &c.Number, &c.User, &c.Code, &c.TermsVersion, sqldb.Time(&c.IssuedAt), sqldb.Time(&c.VoidedAt), sqldb.OrZero(&c.Generation), sqldb.OrZero(&c.Ticket), &c.Direct,
	}, more...)
	return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		c = firstcome.Coupon{Recorded: true}
		if err := take(into...); err != nil {
			return err
		}
		return each(c)
	})
}

// AllCoupons returns the coupons of all rows.
func AllCoupons(rows *sql.Rows, err error) (coupons []firstcome.Coupon, _ error) {
	err = ScanCoupons(rows, err, func(c firstcome.Coupon) error {
		coupons = append(coupons, c)
		return nil
	})
	return coupons, err
}

// CouponAt returns the coupon with a number, or ErrNoCoupon.
func CouponAt(t *sqldb.Tx, id firstcome.CampaignID, number int64) (firstcome.Coupon, error) {
	rows, err := t.Query(`SELECT `+CouponColumns+` FROM coupons WHERE campaign_id = ? AND number = ?`, id, number)
	return OnlyCoupon(rows, err)
}

// OnlyCoupon returns the coupon of the only row, or ErrNoCoupon if there is no row.
func OnlyCoupon(rows *sql.Rows, err error) (firstcome.Coupon, error) {
	var found firstcome.Coupon
	err = ScanCoupons(rows, err, func(c firstcome.Coupon) error {
		found = c
		return nil
	})
	if err == nil && found.Number == 0 {
		err = firstcome.ErrNoCoupon
	}
	return found, err
}

// CouponOf returns the coupon in force that a user holds in a campaign, or ErrNoCoupon.
func (r *Store) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	rows, err := r.DB.Conclude.QueryContext(ctx, r.queries.couponOf, user, id)
	if err != nil {
		return firstcome.Coupon{}, fmt.Errorf("read a coupon of %s: %w", id, err)
	}
	return OnlyCoupon(rows, nil)
}

// A StoredCoupon is a coupon as a dead letter keeps it.
type StoredCoupon struct {
	Campaign     firstcome.CampaignID `json:"campaign_id"`
	Number       int64                `json:"number"`
	User         firstcome.UserID     `json:"user_id"`
	Code         string               `json:"code"`
	IssuedAt     int64                `json:"issued_at"` // microseconds since 1970
	TermsVersion int64                `json:"terms_version"`
	Generation   int64                `json:"generation,omitempty"`
	Ticket       int64                `json:"ticket,omitempty"`
	Direct       bool                 `json:"direct,omitempty"`
	Epoch        int64                `json:"epoch"`
	// BuriedIn is the campaign's epoch when the coupon was buried. If the coupon was issued in that epoch, the letter may be
	// replayed in any later epoch. If the campaign did not exist, or the number was above the ceiling, BuriedIn is 0 and the
	// letter has no number.
	BuriedIn int64 `json:"buried_in"`
}

// Coupon returns the coupon.
func (s StoredCoupon) Coupon() firstcome.Coupon {
	return firstcome.Coupon{
		Campaign: s.Campaign, Number: s.Number, User: s.User, Code: s.Code,
		IssuedAt: time.UnixMicro(s.IssuedAt).UTC(), TermsVersion: s.TermsVersion, Generation: s.Generation, Ticket: s.Ticket, Direct: s.Direct,
	}
}

// StoredCouponOf returns a coupon as a dead letter keeps it. epoch is the epoch in which it was issued.
func StoredCouponOf(c firstcome.Coupon, epoch int64) StoredCoupon {
	return StoredCoupon{
		Campaign: c.Campaign, Number: c.Number, User: c.User, Code: c.Code,
		IssuedAt: c.IssuedAt.UnixMicro(), TermsVersion: c.TermsVersion, Generation: c.Generation, Ticket: c.Ticket, Direct: c.Direct, Epoch: epoch,
	}
}

// CouponsAt returns the coupons that have these numbers, in number order. It skips numbers without a coupon.
func (r *Store) CouponsAt(ctx context.Context, id firstcome.CampaignID, numbers []int64) (found []firstcome.Coupon, err error) {
	slices.Sort(numbers)
	err = sqldb.InChunks(slices.Compact(numbers), func(numbers []int64) error {
		args := []any{string(id)}
		for _, number := range numbers {
			args = append(args, number)
		}
		rows, err := r.DB.Conclude.QueryContext(ctx, sqldb.Repeated(`SELECT `+CouponColumns+` FROM coupons
			WHERE campaign_id = ? AND number IN (%s) ORDER BY number`, `?`, len(numbers)), args...)
		part, err := AllCoupons(rows, err)
		found = append(found, part...)
		return err
	})
	return found, err
}
