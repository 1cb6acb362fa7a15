package ledger

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
)

// A Step of a campaign's course: when the coupon with a number was issued, and when it was recorded.
type Step struct {
	Number               int64
	IssuedAt, RecordedAt time.Time
}

// Course returns how a campaign was issued: at most so many of its coupons, in number order, evenly spread between 1 and last.
// Numbers are given in the order of time, so this draws the whole course, and costs as many look-ups however many
// coupons there are. It skips numbers without a coupon.
func (l *Ledger) Course(ctx context.Context, id firstcome.CampaignID, last int64, most int) ([]Step, error) {
	return l.StepsAt(ctx, id, spread(last, most))
}

// StepsAt returns the steps of these numbers, in number order. It skips numbers without a coupon.
func (l *Ledger) StepsAt(ctx context.Context, id firstcome.CampaignID, numbers []int64) (steps []Step, err error) {
	err = inChunks(numbers, func(numbers []int64) error {
		args := []any{string(id)}
		for _, number := range numbers {
			args = append(args, number)
		}
		rows, err := l.read.QueryContext(ctx, repeated(`SELECT number, issued_at, recorded_at FROM coupons
			WHERE campaign_id = ? AND number IN (%s) ORDER BY number`, `?`, len(numbers)), args...)
		part, err := allRows(rows, err, func(take scan) (s Step, err error) {
			err = take(&s.Number, when(&s.IssuedAt), when(&s.RecordedAt))
			return s, err
		})
		steps = append(steps, part...)
		return err
	})
	return steps, wrap(err, "read the course of %s", id)
}

// spread returns at most so many numbers from 1 to last, both among them.
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
