package epoch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Refills calls each with the coupons that make the holders of a rebuilt gate, from one snapshot. The coupons of
// dead letters that are open or void come first, then all coupons. If a user appears twice, the later coupon
// counts. A coupon with VoidedAt is void: its user holds no coupon, and is not in line by an earlier ticket. The
// mark identifies the snapshot.
func (e *Epochs) Refills(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (mark recovery.Mark, err error) {
	err = e.db.Conclude.AtOnce(ctx, func(s *sqldb.Snapshot) error {
		if err := s.QueryRowContext(ctx, markQuery, string(id)).Scan(fieldsOf(&mark)...); err != nil {
			return err
		}
		var err error
		if mark.SoldOutAt, err = firstSoldOut(ctx, s, id); err != nil {
			return err
		}
		rows, err := s.QueryContext(ctx, `SELECT payload, resolved_at FROM dead_letters
			WHERE campaign_id = ? AND number IS NOT NULL AND user_id IS NOT NULL AND (resolved_at IS NULL OR resolved_by = 'voided') ORDER BY id`, string(id))
		if err := sqldb.EachRow(rows, err, func(take sqldb.Scan) error { return refillLetter(take, each) }); err != nil {
			return err
		}
		rows, err = s.QueryContext(ctx, `SELECT `+campaign.CouponColumns+` FROM coupons WHERE campaign_id = ? ORDER BY number`, string(id))
		return campaign.ScanCoupons(rows, err, each)
	})
	return mark, sqldb.Wrap(err, "read what the gate of %s has to have", id)
}

// refillLetter calls each with the coupon of a dead letter that is open or void. It skips a void dead letter
// that cannot be read.
func refillLetter(take sqldb.Scan, each func(firstcome.Coupon) error) error {
	var payload string
	var voided time.Time
	if err := take(&payload, sqldb.Time(&voided)); err != nil {
		return err
	}
	var stored campaign.StoredCoupon
	err := json.Unmarshal([]byte(payload), &stored)
	c := stored.Coupon()
	c.VoidedAt, c.Buried = voided, voided.IsZero()
	switch {
	case !c.Buried && err != nil:
		return nil
	case err != nil:
		return fmt.Errorf("an open dead letter cannot be read: void it, and rebuild again: %w", err)
	}
	return each(c)
}

// markQuery reads the mark of a campaign, in the order of fieldsOf.
const markQuery = `SELECT version, position, ` + openLetters + `, generation,
	(SELECT COALESCE(MAX(p.generation), 0) FROM past_lines p WHERE p.campaign_id = campaigns.id AND p.reason <> '` + campaign.ReasonLost + `') FROM campaigns WHERE id = ?`

func fieldsOf(m *recovery.Mark) []any {
	return []any{&m.Version, &m.Position, &m.Letters, &m.Generation, &m.Ended}
}

// openLetters counts the open dead letters of a campaign's row.
const openLetters = `(SELECT count(*) FROM dead_letters d WHERE d.campaign_id = campaigns.id AND d.resolved_at IS NULL)`
