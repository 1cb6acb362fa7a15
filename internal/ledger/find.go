package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

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
		numbers[0], err = rd.numberWith(ctx, id, c.Code)
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
