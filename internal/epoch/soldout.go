package epoch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// errSoldOut ends the walk of firstSoldOut.
var errSoldOut = errors.New("nothing is left")

// firstSoldOut returns when a campaign first had no stock left, or the zero time if it always had some. A rebuilt
// gate has lost that time. firstSoldOut computes it from the coupons and open dead letters, whose times are of the
// gate's clock, and from the voids and terms, whose times are of the ledger's clock. The true time may be
// earlier if coupons were lost that the ledger never had.
func firstSoldOut(ctx context.Context, s *sqldb.Snapshot, id firstcome.CampaignID) (at time.Time, err error) {
	terms, voids, letters, err := soldOutBy(ctx, s, id)
	if err != nil || len(terms) == 0 {
		return at, err
	}
	issued, next, last := int64(0), 0, time.Time{}
	left := func(quantity int64, now time.Time) int64 {
		voided, _ := slices.BinarySearchFunc(voids, now, func(void, now time.Time) int { return cmp.Or(void.Compare(now), -1) }) // up to now
		return quantity - (issued - int64(voided))
	}
	// pass applies the terms up to a version. Only terms that leave exactly 0 count as sold out: a quantity below
	// the coupons in force is refused, or will be.
	pass := func(version int64) error {
		for ; next < len(terms) && terms[next].version <= version; next++ {
			if at = terms[next].at; left(terms[next].quantity, at) == 0 {
				return errSoldOut
			}
		}
		return nil
	}
	issue := func(c firstcome.Coupon) error {
		if err := pass(c.TermsVersion); err != nil {
			return err
		}
		issued, last = issued+1, c.IssuedAt
		if at = c.IssuedAt; left(terms[max(0, next-1)].quantity, at) <= 0 {
			return errSoldOut
		}
		return nil
	}
	rows, err := s.QueryContext(ctx, `SELECT number, terms_version, issued_at FROM coupons WHERE campaign_id = ? ORDER BY number`, string(id))
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var c firstcome.Coupon
		if err := take(&c.Number, &c.TermsVersion, sqldb.Time(&c.IssuedAt)); err != nil {
			return err
		}
		for len(letters) > 0 && letters[0].Number < c.Number {
			if err := issue(letters[0]); err != nil {
				return err
			}
			letters = letters[1:]
		}
		return issue(c)
	})
	for ; err == nil && len(letters) > 0; letters = letters[1:] {
		err = issue(letters[0])
	}
	if err == nil {
		err = pass(math.MaxInt64)
	}
	switch {
	case errors.Is(err, errSoldOut):
		return at, nil
	case err == nil && issued-int64(len(voids)) == terms[len(terms)-1].quantity: // by the two clocks a void was before the coupon that left nothing
		return last, nil
	}
	return time.Time{}, err
}

// A quantityFrom is the quantity of a campaign from a version on.
type quantityFrom struct {
	version, quantity int64
	at                time.Time
}

// soldOutBy returns the input of firstSoldOut except the coupons: the quantities in version order, the voids in time
// order, and the open dead letters in number order. It skips terms that cannot be read.
func soldOutBy(ctx context.Context, s *sqldb.Snapshot, id firstcome.CampaignID) (terms []quantityFrom, voids []time.Time, letters []firstcome.Coupon, err error) {
	burns := false // then voids return no stock
	rows, err := s.QueryContext(ctx, `SELECT version, payload, changed_at FROM changes
		WHERE campaign_id = ? AND kind IN ('terms', 'reconcile') AND NOT refused ORDER BY version`, string(id))
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var v quantityFrom
		var payload string
		if err := take(&v.version, &payload, sqldb.Time(&v.at)); err != nil {
			return err
		}
		if read, err := campaign.DecodeTerms(payload); err == nil {
			v.quantity = read.Quantity + read.Burnt
			burns = burns || read.HasImported()
			terms = append(terms, v)
		}
		return nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	rows, err = s.QueryContext(ctx, `SELECT voided_at FROM coupons WHERE campaign_id = ? AND voided_at IS NOT NULL ORDER BY voided_at`, string(id))
	voids, err = sqldb.AllRows(rows, err, func(take sqldb.Scan) (at time.Time, err error) { return at, take(sqldb.Time(&at)) })
	if err != nil {
		return nil, nil, nil, err
	}
	if burns {
		voids = nil
	}
	rows, err = s.QueryContext(ctx, `SELECT payload FROM dead_letters
		WHERE campaign_id = ? AND number IS NOT NULL AND user_id IS NOT NULL AND resolved_at IS NULL ORDER BY number`, string(id))
	letters, err = sqldb.AllRows(rows, err, func(take sqldb.Scan) (firstcome.Coupon, error) {
		var payload string
		var stored campaign.StoredCoupon
		err := take(&payload)
		if err == nil {
			err = json.Unmarshal([]byte(payload), &stored)
		}
		return stored.Coupon(), err
	})
	return terms, voids, letters, err
}
