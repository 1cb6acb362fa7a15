package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Void voids a coupon: its stock returns, its number is never assigned again, and its user may claim again.
// ErrNoCoupon and ErrAlreadyVoided mean that nothing was done. So does ErrNotRecorded: the ledger does not have
// the number, and the caller must compare it with the gate's last number to know whether it may still arrive.
// ErrPending means that an earlier change must reach the gate first.
func (cs *Campaigns) Void(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (firstcome.Coupon, error) {
	var voided firstcome.Coupon
	err := cs.rows.change(ctx, id, func(t *sqldb.Tx, s stock) (err error) {
		voided, err = cs.void(t, s, actor, number, reason)
		return err
	})
	return voided, sqldb.Wrap(err, "void number %d of %s", number, id)
}

// void is the transaction of Void.
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

// voidPayload returns the payload of a void's change.
func voidPayload(number int64, user firstcome.UserID) string {
	return textOf(storedVoid{number, user})
}

// A storedVoid is the JSON of a void in the table changes.
type storedVoid struct {
	Number int64            `json:"number"`
	User   firstcome.UserID `json:"user_id"`
}

// addVoidFact writes the fact that a number was voided. Before it, addVoidFact writes the run of coupons issued
// since the last void, if that run is not written yet.
func addVoidFact(t *sqldb.Tx, s stock, number int64) error {
	hasFacts(t, s.ID)
	var last int64 // the last position of any run
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
