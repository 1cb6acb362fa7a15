package audit

import (
	"time"

	"github.com/firstcome/firstcome"
)

// saw keeps a coupon if its number is the highest of those that were seen, or the lowest that was not issued directly.
func (c *comparison) saw(coupon firstcome.Coupon) {
	if !coupon.Direct && (c.first.Number == 0 || coupon.Number < c.first.Number) {
		c.first = coupon
	}
	if coupon.Number > c.last.Number {
		c.last = coupon
	}
}

// compareCourse holds when the campaign opened, sold out and was closed, as its gate says it, against the
// coupons, which are of the gate's clock, and the ledger. What the last one is may not be known: it is a
// dead letter then, or was lost.
func (c *comparison) compareCourse() {
	g := c.after
	if c.first.Number > 0 && (g.OpenedAt.IsZero() || g.OpenedAt.After(c.first.IssuedAt)) {
		c.differs("counters", "by the gate the campaign opened at %s, and number %d was issued at %s", text(g.OpenedAt), c.first.Number, text(c.first.IssuedAt))
	}
	if !maySellOut(&c.campaign, g.InForce, g.SoldOutAt, c.first.IssuedAt, c.last.IssuedAt) {
		c.differs("counters", "by the gate the campaign sold out first at %s, %d coupons of %s are in force there, and number %d was issued at %s",
			text(g.SoldOutAt), g.InForce, quantityText(c.campaign.Quantity), c.last.Number, text(c.last.IssuedAt))
	}
	if c.campaign.Closed == g.ClosedAt.IsZero() {
		c.differs("counters", "by the gate an operator closed the campaign at %s, by the ledger at %s", text(g.ClosedAt), text(c.campaign.ClosedAt))
	}
}

// maySellOut reports whether a campaign of a remote gate may have sold out first at an instant, by that gate's clock. Before anything changes the
// quantity or voids a coupon, the last coupon is the one that sells it out.
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
