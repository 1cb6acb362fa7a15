package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

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

// A Choice selects coupons of a campaign. A User, Code or Number with its zero value excludes nothing.
type Choice struct {
	Page
	User   firstcome.UserID
	Code   string
	Number int64
}

// Chosen reports whether the Choice selects by more than its page.
func (c Choice) Chosen() bool { return c.User != "" || c.Code != "" || c.Number != 0 }

// Find returns the coupons that a Choice selects, in number order. If next is not 0, there may be more: call Find again with next as
// After. With a code, ErrOtherSecret is possible.
func (rd *Reads) Find(ctx context.Context, id firstcome.CampaignID, c Choice) (found []firstcome.Coupon, next int64, err error) {
	numbers := []int64{c.Number}
	switch {
	case c.Number != 0:
	case c.User != "":
		numbers, next, err = rd.numbersOf(ctx, id, c)
	default:
		numbers[0], err = rd.codes.numberWith(ctx, id, c.Code)
	}
	switch {
	case errors.Is(err, firstcome.ErrNoCoupon):
		return nil, 0, nil
	case err == nil:
		found, err = rd.store.CouponsAt(ctx, id, numbers)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look for a coupon of %s: %w", id, err)
	}
	found = slices.DeleteFunc(found, func(f firstcome.Coupon) bool { return !c.has(f) })
	if c.Limit > 0 && len(found) > c.Limit {
		found = found[:c.Limit]
		next = found[c.Limit-1].Number
	}
	return found, next, nil
}

func (c Choice) has(f firstcome.Coupon) bool {
	return f.Number > c.After && (c.Voided || f.VoidedAt.IsZero()) && !(c.OnlyVoided && f.VoidedAt.IsZero()) &&
		(c.User == "" || c.User == f.User) && (c.Code == "" || c.Code == f.Code) && (c.Number == 0 || c.Number == f.Number)
}

// numbersOf returns the numbers of a user's coupons, and those of the user's voided coupons if the choice wants them. It finds the voided
// ones in the audit log, because an index of voided coupons would make each claim more expensive on MariaDB.
func (rd *Reads) numbersOf(ctx context.Context, id firstcome.CampaignID, c Choice) (numbers []int64, next int64, err error) {
	held, err := rd.store.CouponOf(ctx, id, c.User)
	switch {
	case err == nil:
		numbers = append(numbers, held.Number)
	case !errors.Is(err, firstcome.ErrNoCoupon):
		return nil, 0, err
	}
	if !c.Voided {
		return numbers, 0, nil
	}
	rows, err := rd.db.Conclude.QueryContext(ctx, voidsOfQuery, string(c.User), string(id), c.After, maxFound)
	voided, err := sqldb.AllRows(rows, err, sqldb.One[int64])
	numbers = append(numbers, voided...)
	if len(voided) == maxFound { // the next page begins after the last number
		next = voided[maxFound-1]
		numbers = slices.DeleteFunc(numbers, func(number int64) bool { return number > next })
	}
	return numbers, next, err
}

const voidsOfQuery = campaign.VoidsOf + ` AND number > ? ORDER BY number LIMIT ?`

// maxFound bounds how many voids of a user one call of Find reads.
const maxFound = 1000

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
