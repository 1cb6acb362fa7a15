package ledger

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Void voids a coupon: its stock returns, its number is never assigned again, and its user may claim again. In a campaign with imported codes
// the stock does not return: the quantity is lowered by one.
// ErrNoCoupon and ErrAlreadyVoided mean that nothing was done. So does ErrNotRecorded: the ledger does not have
// the number, and the caller must compare it with the gate's last number to know whether it may still arrive.
// ErrPending means that an earlier change must reach the gate first.
func (cs *Campaigns) Void(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (firstcome.Coupon, error) {
	var voided firstcome.Coupon
	err := cs.store.Change(ctx, id, func(t *sqldb.Tx, s campaign.Row) (err error) {
		voided, err = cs.void(t, s, actor, number, reason)
		return err
	})
	return voided, sqldb.Wrap(err, "void number %d of %s", number, id)
}

// void is the transaction of Void.
func (cs *Campaigns) void(t *sqldb.Tx, s campaign.Row, actor string, number int64, reason string) (firstcome.Coupon, error) {
	c, err := campaign.CouponAt(t, s.ID, number)
	if errors.Is(err, firstcome.ErrNoCoupon) && cs.store.Remote() {
		err = notRecorded(t, s, number)
	}
	if err != nil {
		return c, err
	}
	if !c.VoidedAt.IsZero() {
		return c, firstcome.ErrAlreadyVoided
	}
	if err := campaign.AddVoidFact(t, s, number); err != nil {
		return c, err
	}
	if !s.Burns {
		s.QuarantineVoided()
	}
	after := s
	if after.InForce--; s.Burns {
		after.Quantity--
	}
	made, err := cs.store.AddChange(t, after, firstcome.ChangeVoid, campaign.VoidPayload(number, c.User, s.Burns))
	if err != nil {
		return c, err
	}
	c.VoidedAt = made.At
	_, err = t.Change(`UPDATE coupons SET voided_at = ?, void_reason = ? WHERE campaign_id = ? AND number = ?`,
		made.At.UnixMicro(), reason, string(s.ID), number)
	if err != nil {
		return c, err
	}
	_, err = t.Change(`UPDATE campaigns SET in_force = ?, quantity = ?, position = ? WHERE id = ?`, after.InForce, campaign.QuantityColumn(after.Quantity), s.Position+1, string(s.ID))
	if err != nil {
		return c, err
	}
	if err := cs.store.ChangeLine(t, s, s, made.At); err != nil {
		return c, err
	}
	return c, campaign.AddLogJSON(t, made.At, actor, "coupon.void", map[string]any{"reason": reason}, campaign.Entry{Campaign: s.ID, User: c.User, Number: number})
}
