package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Void takes a coupon back: its stock returns, its number is never given again,
// and its user may claim again. ErrNoCoupon and ErrAlreadyVoided say that
// nothing was done. So does ErrNotRecorded: the ledger does not have the number, and
// only the gate's last number tells whether it may come. ErrPending says that an
// earlier change has to reach the gate first.
func (cs *Campaigns) Void(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (firstcome.Coupon, error) {
	var voided firstcome.Coupon
	err := cs.rows.change(ctx, id, func(t *sqldb.Tx, s stock) (err error) {
		voided, err = cs.void(t, s, actor, number, reason)
		return err
	})
	return voided, sqldb.Wrap(err, "void number %d of %s", number, id)
}

// void is Void in its transaction.
func (cs *Campaigns) void(t *sqldb.Tx, s stock, actor string, number int64, reason string) (firstcome.Coupon, error) {
	c, err := couponAt(t, s.ID, number)
	if errors.Is(err, firstcome.ErrNoCoupon) && cs.rows.remote() {
		err = notRecorded(t, s, number)
	}
	if err != nil {
		return c, err
	}
	if !c.VoidedAt.IsZero() {
		return c, firstcome.ErrAlreadyVoided
	}
	if err := addVoidFact(t, s, number); err != nil {
		return c, err
	}
	s.quarantineVoided()
	after := s
	after.inForce--
	made, err := cs.rows.addChange(t, after, firstcome.ChangeVoid, voidPayload(number, c.User))
	if err != nil {
		return c, err
	}
	c.VoidedAt = made.At
	_, err = t.Change(`UPDATE coupons SET voided_at = ?, void_reason = ? WHERE campaign_id = ? AND number = ?`,
		made.At.UnixMicro(), reason, string(s.ID), number)
	if err != nil {
		return c, err
	}
	_, err = t.Change(`UPDATE campaigns SET in_force = ?, position = ? WHERE id = ?`, after.inForce, s.position+1, string(s.ID))
	if err != nil {
		return c, err
	}
	if err := cs.rows.changeLine(t, s, s, made.At); err != nil {
		return c, err
	}
	return c, addLogJSON(t, made.At, actor, "coupon.void", map[string]any{"reason": reason}, entry{campaign: s.ID, user: c.User, number: number})
}

// voidPayload is what the change of a void holds.
func voidPayload(number int64, user firstcome.UserID) string {
	return textOf(storedVoid{number, user})
}

// A storedVoid is a void as the ledger keeps it among the changes.
type storedVoid struct {
	Number int64            `json:"number"`
	User   firstcome.UserID `json:"user_id"`
}

// addVoidFact adds the fact that a number was voided, after the run of those
// issued since the last void, which is written only now.
func addVoidFact(t *sqldb.Tx, s stock, number int64) error {
	memoryOf(t).touched[s.ID] = true
	var last int64 // position that a run holds
	err := t.Row(`SELECT position + count - 1 FROM facts WHERE campaign_id = ? ORDER BY position DESC LIMIT 1`, s.ID).Scan(&last)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	runs := []run{openRun(last, s.position, s.lastNumber), {s.position + 1, 1, number, firstcome.CouponVoided}}
	for _, r := range runs {
		if r.count == 0 {
			continue
		}
		if err := addFacts(t, s.ID, r); err != nil {
			return err
		}
	}
	return nil
}
