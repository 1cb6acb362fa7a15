package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// adoptLetters orders the dead letters that name a campaign which is made only now,
// and returns their order; 0: there are none.
func (t *tx) adoptLetters(id firstcome.CampaignID) (order int64, err error) {
	n, err := t.change(`UPDATE dead_letters SET letters_order = 1 WHERE campaign_id = ? AND number > 0`, string(id))
	return min(n, 1), err
}

// maxSince bounds the numbers that SettledSince returns, but for those of one
// transaction: in Redis, which has to take them at once, they take some milliseconds.
const maxSince = 10_000

// SettledSince returns how far a campaign is settled, and which numbers changed since
// an order: see flow.Settled. If more than 10,000 did, it returns the first of them with an
// Order to ask from again, and no Through and Epoch, which hold once all are known.
//
// Where the ledger does not know that order yet, because it was replaced by an older copy of itself, it goes
// on behind it, and returns all of the campaign's: else what it orders from now on would be taken for old.
func (l *Ledger) SettledSince(ctx context.Context, id firstcome.CampaignID, since int64) (flow.Settled, error) {
	s, err := l.settledSince(ctx, id, since)
	if err == nil && s.Order < since {
		if err = l.goOnBehind(ctx, id, since); err == nil {
			s, err = l.settledSince(ctx, id, since)
		}
	}
	if err != nil {
		return s, fmt.Errorf("read what of %s is settled since %d: %w", id, since, err)
	}
	return s, nil
}

// goOnBehind raises a campaign's order of dead letters above one, if it is below, and that of all of them.
func (l *Ledger) goOnBehind(ctx context.Context, id firstcome.CampaignID, order int64) error {
	return l.locked(ctx, id, func(t *tx, s stock) error {
		if s.letters >= order {
			return nil
		}
		for _, update := range []string{
			`UPDATE campaigns SET letters_order = ? WHERE id = ?`,
			`UPDATE dead_letters SET letters_order = ? WHERE campaign_id = ? AND letters_order > 0`,
		} {
			if _, err := t.change(update, order+1, string(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *Ledger) settledSince(ctx context.Context, id firstcome.CampaignID, since int64) (flow.Settled, error) {
	return l.settledIn(ctx, id, func(t *snapshot, s *flow.Settled) error {
		s.Since = min(since, s.Order)
		var end int64
		err := t.QueryRowContext(ctx, `SELECT letters_order FROM dead_letters WHERE campaign_id = ? AND letters_order > ?
			ORDER BY letters_order LIMIT 1 OFFSET ?`, string(id), s.Since, maxSince-1).Scan(&end)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case end < s.Order:
			*s = flow.Settled{Order: end, Since: s.Since}
		}
		return t.letters(ctx, s, `d.campaign_id = ? AND d.letters_order > ? AND d.letters_order <= ?`, string(id), s.Since, s.Order)
	})
}

// SettledThrough returns how far a campaign is settled and which of these numbers are
// unrecorded: see flow.RemoteGate.
func (l *Ledger) SettledThrough(ctx context.Context, id firstcome.CampaignID, numbers []int64) (flow.Settled, error) {
	s, err := l.settledIn(ctx, id, func(t *snapshot, s *flow.Settled) error {
		s.Since = s.Order
		if s.Order == 0 {
			return nil
		}
		err := inChunks(numbers, func(numbers []int64) error {
			args := []any{string(id)}
			for _, n := range numbers {
				args = append(args, n)
			}
			return t.letters(ctx, s, repeated(`d.campaign_id = ? AND d.number IN (%s)`, `?`, len(numbers)), args...)
		})
		s.Recorded = nil
		return err
	})
	if err != nil {
		return s, fmt.Errorf("read what of %s is settled: %w", id, err)
	}
	return s, nil
}

// Has tells of each of these coupons whether the ledger has it, voided or not: the same number,
// user, instant and terms.
func (l *Ledger) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	has := make([]bool, 0, len(coupons))
	err := inChunks(coupons, func(coupons []firstcome.Coupon) error {
		args := []any{string(id)}
		for _, c := range coupons {
			args = append(args, c.Number)
		}
		rows, err := l.conclude.QueryContext(ctx, repeated(`SELECT `+couponColumns+` FROM coupons WHERE campaign_id = ? AND number IN (%s)`, `?`, len(coupons)), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		known := make(map[int64]firstcome.Coupon, len(coupons))
		err = scanCoupons(rows, func(c firstcome.Coupon) error {
			known[c.Number] = c
			return nil
		})
		for _, c := range coupons {
			c.Code = known[c.Number].Code // it follows from the number
			has = append(has, c.Number > 0 && sameCoupon(c, known[c.Number]))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for %d coupons of %s: %w", len(coupons), id, err)
	}
	return has, nil
}

// settledIn reads what a campaign's row says is settled, and what read adds to it, at one instant.
func (l *Ledger) settledIn(ctx context.Context, id firstcome.CampaignID, read func(*snapshot, *flow.Settled) error) (s flow.Settled, err error) {
	t, err := l.conclude.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s, err
	}
	defer func() { _ = t.Rollback() }()
	err = t.QueryRowContext(ctx, `SELECT settled, epoch, letters_order FROM campaigns WHERE id = ?`, string(id)).Scan(&s.Through, &s.Epoch, &s.Order)
	if errors.Is(err, sql.ErrNoRows) {
		return s, firstcome.ErrNoCampaign
	}
	if err == nil {
		err = read(t, &s)
	}
	return s, err
}

// letters adds the numbers of the dead letters where a condition holds.
func (s *snapshot) letters(ctx context.Context, into *flow.Settled, where string, args ...any) error {
	rows, err := s.QueryContext(ctx, `SELECT d.number, count(c.number) FROM dead_letters d
		LEFT JOIN coupons c ON c.campaign_id = d.campaign_id AND c.number = d.number
		WHERE `+where+` GROUP BY d.number ORDER BY d.number`, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number, coupons int64
		if err := rows.Scan(&number, &coupons); err != nil {
			return err
		}
		if coupons == 0 {
			into.Unrecorded = append(into.Unrecorded, number)
		} else {
			into.Recorded = append(into.Recorded, number)
		}
	}
	return rows.Err()
}
