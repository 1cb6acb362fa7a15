package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
)

// Refills calls each with what a rebuilt gate of the campaign has to have as holders, at one instant: first the coupons of open dead
// letters, then the coupons in force. A user may come twice: the later one holds. Among them are the coupons that were issued to a ticket
// and are void, with VoidedAt: their users hold none, and were served. Where a feed keeps the line, those who left it come last instead, each as a
// coupon without a number that is void, of the ticket through which they left. The mark says which state of the ledger it was.
func (l *Ledger) Refills(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (mark recovery.Mark, err error) {
	err = l.conclude.atOnce(ctx, func(s *snapshot) error {
		if err := s.QueryRowContext(ctx, markQuery, string(id)).Scan(fieldsOf(&mark)...); err != nil {
			return err
		}
		var err error
		if mark.SoldOutAt, err = firstSoldOut(ctx, s, id); err != nil {
			return err
		}
		var fed bool
		if err := s.QueryRowContext(ctx, `SELECT feed_topic IS NOT NULL FROM campaigns WHERE id = ?`, string(id)).Scan(&fed); err != nil {
			return err
		}
		rows, err := s.QueryContext(ctx, `SELECT payload, resolved_at FROM dead_letters
			WHERE campaign_id = ? AND number IS NOT NULL AND user_id IS NOT NULL AND (resolved_at IS NULL OR resolved_by = 'voided') ORDER BY id`, string(id))
		if err := eachRow(rows, err, func(take scan) error { return refillLetter(take, fed, each) }); err != nil {
			return err
		}
		which := `(voided_at IS NULL OR ticket IS NOT NULL)`
		if fed {
			which = `voided_at IS NULL`
		}
		rows, err = s.QueryContext(ctx, `SELECT `+couponColumns+` FROM coupons WHERE campaign_id = ? AND `+which+` ORDER BY number`, string(id))
		if err := scanCoupons(rows, err, each); err != nil || !fed {
			return err
		}
		rows, err = s.QueryContext(ctx, `SELECT l.campaign_id, l.user_id, l.generation, l.through FROM leavers l
			JOIN campaigns c ON c.id = l.campaign_id WHERE c.id = ? AND l.generation >= c.generation`, string(id))
		return eachRow(rows, err, func(take scan) error { return refillLeaver(take, each) })
	})
	return mark, wrap(err, "read what the gate of %s has to have", id)
}

// refillLetter is Refills of a dead letter that is open, or void. Where a feed keeps the line, a void one says nothing.
func refillLetter(take scan, fed bool, each func(firstcome.Coupon) error) error {
	var payload string
	var voided time.Time
	if err := take(&payload, when(&voided)); err != nil {
		return err
	}
	var stored storedCoupon
	err := json.Unmarshal([]byte(payload), &stored)
	c := stored.coupon()
	c.VoidedAt, c.Buried = voided, voided.IsZero()
	switch {
	case !c.Buried && (err != nil || c.Ticket == 0 || fed):
		return nil
	case err != nil:
		return fmt.Errorf("an open dead letter cannot be read: void it, and rebuild again: %w", err)
	}
	return each(c)
}

// markQuery reads the mark of a campaign, which fieldsOf takes.
const markQuery = `SELECT version, position, ` + openLetters + `, generation,
	(SELECT COALESCE(MAX(p.generation), 0) FROM past_lines p WHERE p.campaign_id = campaigns.id AND p.reason <> '` + reasonLost + `') FROM campaigns WHERE id = ?`

func fieldsOf(m *recovery.Mark) []any {
	return []any{&m.Version, &m.Position, &m.Letters, &m.Generation, &m.Ended}
}

// openLetters counts the open dead letters of a campaign's row.
const openLetters = `(SELECT count(*) FROM dead_letters d WHERE d.campaign_id = campaigns.id AND d.resolved_at IS NULL)`
