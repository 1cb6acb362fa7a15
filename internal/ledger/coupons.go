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

// scanCoupons calls each with the coupon of every row of an answer, until it returns an error. What else a
// row has is scanned into more.
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

// allCoupons returns the coupons of an answer.
func allCoupons(rows *sql.Rows, err error) (coupons []firstcome.Coupon, _ error) {
	err = scanCoupons(rows, err, func(c firstcome.Coupon) error {
		coupons = append(coupons, c)
		return nil
	})
	return coupons, err
}

// couponAt returns the coupon of a number, or ErrNoCoupon.
func couponAt(t *sqldb.Tx, id firstcome.CampaignID, number int64) (firstcome.Coupon, error) {
	rows, err := t.Query(`SELECT `+couponColumns+` FROM coupons WHERE campaign_id = ? AND number = ?`, id, number)
	return only(rows, err)
}

// only returns the coupon of the one row, or ErrNoCoupon.
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

// CouponOf returns the coupon in force that a user holds of a campaign, or ErrNoCoupon.
func (g *Gate) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	return g.rows.couponOf(ctx, id, user)
}

// couponOf is CouponOf.
func (r *rows) couponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	rows, err := r.db.Conclude.QueryContext(ctx, r.queries.couponOf, user, id)
	if err != nil {
		return firstcome.Coupon{}, fmt.Errorf("read a coupon of %s: %w", id, err)
	}
	return only(rows, nil)
}

// A Page is a part of a campaign's coupons: those with numbers above After, at
// most Limit of them (0: all), and the voided ones too or not.
type Page struct {
	After  int64
	Limit  int
	Voided bool // also the voided ones
	// OnlyVoided leaves out those in force; then Voided holds, too.
	OnlyVoided bool
}

// Coupons calls each with the coupons of a page, in number order, as they are at
// one instant, until it returns an error.
func (rd *Reads) Coupons(ctx context.Context, id firstcome.CampaignID, p Page, each func(firstcome.Coupon) error) error {
	return rd.Export(ctx, id, p, func(c firstcome.Coupon, _ string) error { return each(c) })
}

// Export is Coupons that also tells why each was voided, "" of one in force.
func (rd *Reads) Export(ctx context.Context, id firstcome.CampaignID, p Page, each func(c firstcome.Coupon, reason string) error) error {
	if p.Limit == 0 {
		p.Limit = math.MaxInt
	}
	// With voided_at IS NULL, PostgreSQL may take the index of users, which has just these coupons, and sort all of them for a page.
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT `+couponColumns+`, void_reason FROM coupons
		WHERE campaign_id = ? AND number > ? AND (? OR COALESCE(voided_at, 0) = 0) AND (voided_at IS NOT NULL OR NOT ?) ORDER BY number LIMIT ?`, id, p.After, p.Voided, p.OnlyVoided, p.Limit)
	var reason sql.NullString
	err = scanCoupons(rows, err, func(c firstcome.Coupon) error { return each(c, reason.String) }, &reason)
	return sqldb.Wrap(err, "read the coupons of %s", id)
}

// Wallet returns at most limit coupons in force of a user, in the order of their
// campaigns' ids, from the campaign behind after on.
func (rd *Reads) Wallet(ctx context.Context, user firstcome.UserID, after firstcome.CampaignID, limit int) ([]firstcome.Coupon, error) {
	rows, err := rd.db.Conclude.QueryContext(ctx, `SELECT `+couponColumns+` FROM coupons
		WHERE `+rd.rows.queries.holder+` = ? AND campaign_id > ? AND voided_at IS NULL ORDER BY campaign_id LIMIT ?`, user, after, limit)
	coupons, err := allCoupons(rows, err)
	return coupons, sqldb.Wrap(err, "read a wallet")
}
