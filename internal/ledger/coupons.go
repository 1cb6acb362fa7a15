package ledger

import (
	"context"
	"database/sql"
	"math"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

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
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT `+campaign.CouponColumns+`, void_reason FROM coupons
		WHERE campaign_id = ? AND number > ? AND (? OR COALESCE(voided_at, 0) = 0) AND (voided_at IS NOT NULL OR NOT ?) ORDER BY number LIMIT ?`, id, p.After, p.Voided, p.OnlyVoided, p.Limit)
	var reason sql.NullString
	err = campaign.ScanCoupons(rows, err, func(c firstcome.Coupon) error { return each(c, reason.String) }, &reason)
	return sqldb.Wrap(err, "read the coupons of %s", id)
}

// Wallet returns at most limit of a user's coupons in force, of the campaigns with ids above after, in the order of these ids.
func (rd *Reads) Wallet(ctx context.Context, user firstcome.UserID, after firstcome.CampaignID, limit int) ([]firstcome.Coupon, error) {
	rows, err := rd.db.Conclude.QueryContext(ctx, `SELECT `+campaign.CouponColumns+` FROM coupons
		WHERE `+rd.store.HolderColumn()+` = ? AND campaign_id > ? AND voided_at IS NULL ORDER BY campaign_id LIMIT ?`, user, after, limit)
	coupons, err := campaign.AllCoupons(rows, err)
	return coupons, sqldb.Wrap(err, "read a wallet")
}

// Facts calls each for the facts of a campaign with positions above after, in order. It stops after limit facts, or when each returns
// an error. If the ledger lacks the coupon of a fact, which is a breach, the fact only has the coupon's number.
func (rd *Reads) Facts(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	err := rd.db.Read.AtOnce(ctx, func(s *sqldb.Snapshot) error { return campaign.Facts(ctx, s, id, after, limit, each) })
	return sqldb.Wrap(err, "read the facts of %s", id)
}

// NewFacts returns a channel that is closed when the campaign has new facts. A reader that may have to wait
// takes the channel first, and then reads the facts. The reader must call forget when the wait is over.
func (rd *Reads) NewFacts(id firstcome.CampaignID) (news <-chan struct{}, forget func()) {
	return rd.news.Wait(id)
}
