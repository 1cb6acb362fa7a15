package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

const couponColumns = `campaign_id, number, user_id, code, terms_version, issued_at, voided_at, generation, ticket, direct`

// scanCoupons calls each with the coupon of every row, until each returns an error. It scans the columns after couponColumns into
// more.
func scanCoupons(rows *sql.Rows, err error, each func(firstcome.Coupon) error, more ...any) error {
	var c firstcome.Coupon
	into := append([]any{
		&c.Campaign, &c.Number, &c.User, &c.Code, &c.TermsVersion, when(&c.IssuedAt), when(&c.VoidedAt), orZero(&c.Generation), orZero(&c.Ticket), &c.Direct,
	}, more...)
	return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		c = firstcome.Coupon{Recorded: true}
		if err := take(into...); err != nil {
			return err
		}
		return each(c)
	})
}

// allCoupons returns the coupons of all rows.
func allCoupons(rows *sql.Rows, err error) (coupons []firstcome.Coupon, _ error) {
	err = scanCoupons(rows, err, func(c firstcome.Coupon) error {
		coupons = append(coupons, c)
		return nil
	})
	return coupons, err
}

// couponAt returns the coupon with a number, or ErrNoCoupon.
func couponAt(t *sqldb.Tx, id firstcome.CampaignID, number int64) (firstcome.Coupon, error) {
	rows, err := t.Query(`SELECT `+couponColumns+` FROM coupons WHERE campaign_id = ? AND number = ?`, id, number)
	return only(rows, err)
}

// only returns the coupon of the only row, or ErrNoCoupon if there is no row.
func only(rows *sql.Rows, err error) (firstcome.Coupon, error) {
	var found firstcome.Coupon
	err = scanCoupons(rows, err, func(c firstcome.Coupon) error {
		found = c
		return nil
	})
	if err == nil && found.Number == 0 {
		err = firstcome.ErrNoCoupon
	}
	return found, err
}

// CouponOf returns the coupon in force that a user holds in a campaign, or ErrNoCoupon.
func (g *Gate) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	return g.rows.couponOf(ctx, id, user)
}

func (r *rows) couponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	rows, err := r.db.Conclude.QueryContext(ctx, r.queries.couponOf, user, id)
	if err != nil {
		return firstcome.Coupon{}, fmt.Errorf("read a coupon of %s: %w", id, err)
	}
	return only(rows, nil)
}

// A Page selects a part of a campaign's coupons.
type Page struct {
	After  int64 // only coupons with higher numbers
	Limit  int   // the most coupons to return; if 0, all
	Voided bool  // also voided coupons
	// OnlyVoided leaves out coupons in force. Then Voided must be true, too.
	OnlyVoided bool
}

// Coupons calls each with the coupons of a page, in number order and from one snapshot, until each returns an error.
func (rd *Reads) Coupons(ctx context.Context, id firstcome.CampaignID, p Page, each func(firstcome.Coupon) error) error {
	return rd.Export(ctx, id, p, func(c firstcome.Coupon, _ string) error { return each(c) })
}

// Export is like Coupons, and also gives the reason why a coupon was voided. The reason is empty for a coupon in force.
func (rd *Reads) Export(ctx context.Context, id firstcome.CampaignID, p Page, each func(c firstcome.Coupon, reason string) error) error {
	if p.Limit == 0 {
		p.Limit = math.MaxInt
	}
	// COALESCE is here for PostgreSQL: with voided_at IS NULL it may use the index of users, which has only the coupons in force, and sort all of them.
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT `+couponColumns+`, void_reason FROM coupons
		WHERE campaign_id = ? AND number > ? AND (? OR COALESCE(voided_at, 0) = 0) AND (voided_at IS NOT NULL OR NOT ?) ORDER BY number LIMIT ?`, id, p.After, p.Voided, p.OnlyVoided, p.Limit)
	var reason sql.NullString
	err = scanCoupons(rows, err, func(c firstcome.Coupon) error { return each(c, reason.String) }, &reason)
	return sqldb.Wrap(err, "read the coupons of %s", id)
}

// Wallet returns at most limit of a user's coupons in force, of the campaigns with ids above after, in the order of these ids.
func (rd *Reads) Wallet(ctx context.Context, user firstcome.UserID, after firstcome.CampaignID, limit int) ([]firstcome.Coupon, error) {
	rows, err := rd.db.Conclude.QueryContext(ctx, `SELECT `+couponColumns+` FROM coupons
		WHERE `+rd.rows.holderColumn()+` = ? AND campaign_id > ? AND voided_at IS NULL ORDER BY campaign_id LIMIT ?`, user, after, limit)
	coupons, err := allCoupons(rows, err)
	return coupons, sqldb.Wrap(err, "read a wallet")
}
