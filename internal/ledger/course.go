package ledger

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Step is one point of a campaign's course: when the coupon with a number was issued, and when it was recorded.
type Step struct {
	Number               int64
	Nth                  int64 // the count of numbers up to this one, without lost numbers
	IssuedAt, RecordedAt time.Time
}

// Course returns how a campaign's coupons were issued over time: steps for at most most numbers, evenly spread from the first number to
// last, in number order. Numbers are assigned in the order of time, so the steps show the whole course. The cost does not depend on
// the number of coupons. Course skips numbers without a coupon.
func (rd *Reads) Course(ctx context.Context, id firstcome.CampaignID, last int64, most int) ([]Step, error) {
	lost, err := rd.Lost(ctx, id)
	if err != nil {
		return nil, err
	}
	numbers, nth := spreadAround(lost, last, most)
	steps, err := rd.StepsAt(ctx, id, numbers)
	for n := range steps {
		steps[n].Nth = nth[steps[n].Number]
	}
	return steps, err
}

// StepsAt returns the steps of the given numbers, in number order, without Nth. It skips numbers without a coupon.
func (rd *Reads) StepsAt(ctx context.Context, id firstcome.CampaignID, numbers []int64) (steps []Step, err error) {
	err = sqldb.InChunks(numbers, func(numbers []int64) error {
		args := []any{string(id)}
		for _, number := range numbers {
			args = append(args, number)
		}
		rows, err := rd.db.Read.QueryContext(ctx, sqldb.Repeated(`SELECT number, issued_at, recorded_at FROM coupons WHERE campaign_id = ? AND number IN (%s) ORDER BY number`, `?`, len(numbers)), args...)
		return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
			var s Step
			err := take(&s.Number, sqldb.Time(&s.IssuedAt), sqldb.Time(&s.RecordedAt))
			steps = append(steps, s)
			return err
		})
	})
	return steps, sqldb.Wrap(err, "read the course of %s", id)
}

// A VoidStep has the time of a campaign's nth void.
type VoidStep struct {
	Nth int64
	At  time.Time
}

// Voids returns how a campaign's coupons were voided over time: at most most of its voids, evenly spread, in order. The database counts
// the voids and only returns these rows.
func (rd *Reads) Voids(ctx context.Context, id firstcome.CampaignID, most int) (steps []VoidStep, err error) {
	var voided int64
	err = rd.db.Read.QueryRowContext(ctx, `SELECT count(*) FROM facts WHERE campaign_id = ? AND kind = 'coupon.voided'`, string(id)).Scan(&voided)
	if err != nil {
		return nil, sqldb.Wrap(err, "count the voids of %s", id)
	}
	err = sqldb.InChunks(spread(voided, most), func(nth []int64) error {
		args := []any{string(id)}
		for _, n := range nth {
			args = append(args, n)
		}
		rows, err := rd.db.Read.QueryContext(ctx, sqldb.Repeated(`SELECT v.nth, c.voided_at FROM
			(SELECT number, ROW_NUMBER() OVER (ORDER BY position) AS nth FROM facts WHERE campaign_id = ? AND kind = 'coupon.voided') v
			JOIN coupons c ON c.campaign_id = ? AND c.number = v.number WHERE v.nth IN (%s) ORDER BY v.nth`, `?`, len(nth)),
			append([]any{string(id)}, args...)...)
		return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
			var s VoidStep
			err := take(&s.Nth, sqldb.Time(&s.At))
			steps = append(steps, s)
			return err
		})
	})
	return steps, sqldb.Wrap(err, "read when coupons of %s were voided", id)
}

// spread returns at most most numbers from 1 to last, evenly spread, including both ends.
func spread(last int64, most int) (numbers []int64) {
	if last <= int64(most) {
		for n := range last {
			numbers = append(numbers, n+1)
		}
		return numbers
	}
	for n := range int64(most) {
		numbers = append(numbers, 1+n*(last-1)/int64(most-1))
	}
	return numbers
}

// spreadAround is like spread, but leaves out lost numbers. nth has, for each number returned, the count of numbers up to it that are not
// lost.
func spreadAround(lost []firstcome.Range, last int64, most int) (numbers []int64, nth map[int64]int64) {
	given := last
	for _, r := range lost {
		given -= max(0, min(r.Count, last+1-r.First))
	}
	nth = map[int64]int64{}
	skipped := int64(0)
	for _, n := range spread(given, most) {
		for len(lost) > 0 && n+skipped >= lost[0].First {
			skipped += lost[0].Count
			lost = lost[1:]
		}
		numbers = append(numbers, n+skipped)
		nth[n+skipped] = n
	}
	return numbers, nth
}
