package audit

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
)

// saw keeps a coupon if its number is the highest so far, or the lowest of a coupon that was not issued directly.
func (c *comparison) saw(coupon firstcome.Coupon) {
	if !coupon.Direct && (c.first.Number == 0 || coupon.Number < c.first.Number) {
		c.first = coupon
	}
	if coupon.Number > c.last.Number {
		c.last = coupon
	}
}

// compareCourse compares when the campaign opened, sold out and was closed, by its gate, with the coupons, whose times are of the gate's clock, and
// with the ledger. The last coupon may be unknown, because it is a dead letter or lost.
func (c *comparison) compareCourse() {
	g := c.after
	if c.first.Number > 0 && (g.OpenedAt.IsZero() || g.OpenedAt.After(c.first.IssuedAt)) {
		c.differs("counters", "by the gate the campaign opened at %s, but number %d was issued at %s", text(g.OpenedAt), c.first.Number, text(c.first.IssuedAt))
	}
	if !maySellOut(&c.campaign, g.InForce, g.SoldOutAt, c.first.IssuedAt, c.last.IssuedAt) {
		c.differs("counters", "by the gate the campaign first sold out at %s, but %d coupons of %s are in force there, and number %d was issued at %s",
			text(g.SoldOutAt), g.InForce, quantityText(c.campaign.Quantity), c.last.Number, text(c.last.IssuedAt))
	}
	if c.campaign.Closed == g.ClosedAt.IsZero() {
		c.differs("counters", "by the gate an operator closed the campaign at %s, but by the ledger at %s", text(g.ClosedAt), text(c.campaign.ClosedAt))
	}
}

// compareTerms compares the text of the terms that the gate keeps with the ledger's. A reconcile takes it into a restored ledger, with the prizes and the
// numbers that have no rank.
func (c *comparison) compareTerms(ctx context.Context, ledger Source, gate GateSource, id firstcome.CampaignID) error {
	kept, err := gate.Terms(ctx, id)
	if err != nil {
		return err
	}
	return ledger.Changes(ctx, id, func(change Change) {
		if change.Version == c.campaign.TermsVersion && change.Payload != kept {
			c.differs("gate", "the gate keeps other terms than the ledger, whose terms are those of version %d: %.200s", change.Version, kept)
		}
	})
}

// maySellOut reports whether a campaign may have first sold out at a time, by its remote gate's clock. Until a change of the quantity or a void, the
// last coupon is the one that sold it out.
func maySellOut(c *Campaign, inForce int64, at, first, last time.Time) bool {
	full, changed := inForce >= c.Quantity, c.Version > 1
	switch {
	case at.IsZero():
		return !full
	case changed:
		return true
	}
	return full && !at.Before(last) && !at.Before(first)
}
