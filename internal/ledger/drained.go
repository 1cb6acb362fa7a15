package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// count computes how far the campaign is drained now, and updates the campaign's row if a counter changed.
func (r *recording) count() error {
	after := r.stock
	for _, c := range r.fresh {
		after.inForce++
		after.issued++
		after.lastNumber = max(after.lastNumber, c.Number)
		if after.decidedAt.Before(c.IssuedAt) {
			after.decidedAt = c.IssuedAt // later decisions of the ledger must not be earlier than this coupon
		}
	}
	for _, c := range r.Letters {
		after.lastNumber = max(after.lastNumber, c.Number)
	}
	after.position += int64(len(r.fresh))
	var err error
	if after.drained, err = r.through(after.lastNumber); err != nil {
		return err
	}
	after.ceiling = r.rows.grant(&after)
	r.Through, r.Grant = after.drained, record.Grant{Epoch: r.epoch, Ceiling: after.ceiling}
	if len(r.fresh) == 0 && after.drained == r.drained && after.lastNumber == r.lastNumber && after.ceiling == r.ceiling {
		return nil
	}
	_, err = r.Change(`UPDATE campaigns SET in_force = ?, issued = ?, last_number = ?, position = ?, drained_through = ?, ceiling = ?, decided_at = ? WHERE id = ?`,
		after.inForce, after.issued, after.lastNumber, after.position, after.drained, after.ceiling, after.decidedAt.UnixMicro(), string(r.ID))
	return err
}

// through returns the number up to which every number is a coupon, a dead letter or lost. lastNumber is the highest number of a coupon
// or dead letter.
func (r *recording) through(lastNumber int64) (int64, error) {
	through := r.drained
	for _, run := range runs(r.given) {
		if run[0].Number <= through+1 {
			through = max(through, run[len(run)-1].Number)
		}
	}
	for {
		before := through
		err := r.throughLost(&through)
		if err == nil && through < lastNumber {
			err = r.throughKnown(&through)
		}
		if err != nil || through == before {
			return through, err
		}
	}
}

// throughLost advances through past the lost numbers that directly follow it.
func (r *recording) throughLost(through *int64) error {
	if r.epoch == firstEpoch {
		return nil // numbers are lost only when an epoch ends
	}
	var end int64
	err := r.Row(`SELECT number + count - 1 FROM lost WHERE campaign_id = ? AND number <= ? ORDER BY number DESC LIMIT 1`,
		string(r.ID), *through+1).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	*through = max(*through, end)
	return err
}

// throughStep is how many numbers one query reads, some 10 kB.
const throughStep = 1000

// throughKnown advances through past the coupons and dead letters that directly follow it. They were recorded earlier than lower
// numbers.
func (r *recording) throughKnown(through *int64) error {
	for {
		from := *through
		args := []any{string(r.ID), from, from + throughStep}
		rows, err := r.Query(`SELECT number FROM coupons WHERE campaign_id = ? AND number > ? AND number <= ?
			UNION SELECT number FROM dead_letters WHERE campaign_id = ? AND number > ? AND number <= ? ORDER BY number`, append(args, args...)...)
		if err != nil {
			return err
		}
		for rows.Next() {
			var number int64
			if err = rows.Scan(&number); err != nil || number != *through+1 {
				break
			}
			*through = number
		}
		err = errors.Join(err, rows.Err(), rows.Close())
		if err != nil || *through < from+throughStep {
			return err
		}
	}
}

// DrainedThrough returns the number up to which every number of a campaign is a coupon in the ledger, a dead
// letter or lost.
func (rc *Recorder) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (through int64, err error) {
	err = rc.db.Conclude.QueryRowContext(ctx, `SELECT drained_through FROM campaigns WHERE id = ?`, string(id)).Scan(&through)
	if errors.Is(err, sql.ErrNoRows) {
		err = firstcome.ErrNoCampaign
	}
	return through, sqldb.Wrap(err, "read how far %s is drained", id)
}

// Has reports for each coupon whether the ledger has it, voided or not. The ledger's coupon must have the same number, user, time of
// issue and version of the terms.
func (rc *Recorder) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	numbers := make([]int64, len(coupons))
	for n, c := range coupons {
		numbers[n] = c.Number
	}
	found, err := rc.rows.couponsAt(ctx, id, numbers)
	known := make(map[int64]firstcome.Coupon, len(found))
	for _, c := range found {
		known[c.Number] = c
	}
	has := make([]bool, len(coupons))
	for n, c := range coupons {
		c.Code = known[c.Number].Code // it follows from the number
		has[n] = c.Number > 0 && sameCoupon(c, known[c.Number])
	}
	return has, sqldb.Wrap(err, "look for %d coupons of %s", len(coupons), id)
}

// A Range is Count consecutive numbers, beginning with First.
type Range struct{ First, Count int64 }

// Lost returns the lost numbers of a campaign: numbers that its gate may have assigned before it was rebuilt, and that no coupon or dead
// letter has.
func (rd *Reads) Lost(ctx context.Context, id firstcome.CampaignID) ([]Range, error) {
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT number, count FROM lost WHERE campaign_id = ? ORDER BY number`, string(id))
	all, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (r Range, err error) {
		err = take(&r.First, &r.Count)
		return r, err
	})
	return all, sqldb.Wrap(err, "read the lost numbers of %s", id)
}
