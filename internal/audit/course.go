package audit

import (
	"time"

	"github.com/firstcome/firstcome"
)

// course holds when the campaign opened, sold out and was closed, as its row says it, against
// the coupons and the changes. While another gate decides, it keeps the first two.
func (a *couponAudit) course() {
	c, h := a.campaign, a.history
	if c.Row == nil || len(h.terms) == 0 {
		return
	}
	byGate := c.Remote && !c.Row.RetiredAt.IsZero() // whose clock is another one
	if h.closed != !c.ClosedAt.IsZero() || !byGate && !c.ClosedAt.Equal(h.closedAt) {
		a.add("changes", "an operator closed the campaign at %s, by its changes at %s", text(c.ClosedAt), text(h.closedAt))
	}
	switch {
	case !c.Remote:
		a.opened()
		if since := h.fullSince(a.inForce, a.last); !c.SoldOutAt.Equal(since) {
			a.add("counters", "the campaign is sold out since %s, by its coupons and changes since %s", text(c.SoldOutAt), text(since))
		}
	case c.Row.RetiredAt.IsZero():
		if !c.OpenedAt.IsZero() || !c.SoldOutAt.IsZero() {
			a.add("counters", "the campaign opened at %s and sold out at %s, and its gate keeps that", text(c.OpenedAt), text(c.SoldOutAt))
		}
	default:
		a.openedFar()
		if full := a.inForce >= c.Quantity; full != !c.SoldOutAt.IsZero() || full && c.SoldOutAt.Before(a.latest) {
			a.add("counters", "the campaign is sold out since %s, %d of %s are in force and the last was issued at %s",
				text(c.SoldOutAt), a.inForce, quantityText(c.Quantity), text(a.latest))
		}
	}
}

// opened holds the opening against the first coupon or ticket, which the decision that opened the campaign
// gave, unless there were none. Who claims a place in a topic may open it before, and the ledger has no ticket of them.
func (a *couponAudit) opened() {
	at, h := a.campaign.OpenedAt, a.history
	empty := false // once, until the first coupon
	for _, t := range h.terms {
		empty = empty || t.quantity == 0 && (a.first.IsZero() || t.version < a.firstTerms)
	}
	if s := h.barred(at); s != nil && !at.IsZero() {
		a.add("counters", "the campaign opened at %s, after %s at %s", text(at), s.why, text(s.from))
	}
	if !empty && !at.Equal(a.opening) && a.campaign.Feed == nil {
		a.add("counters", "the campaign opened at %s, its first coupon was issued at %s", text(at), text(a.opening))
		return
	}
	a.openedFar()
}

// openedFar holds the opening to what is so of every gate. When a campaign was made is by the ledger's clock.
func (a *couponAudit) openedFar() {
	at := a.campaign.OpenedAt
	early := !a.campaign.Remote && !at.IsZero() && at.Before(a.campaign.CreatedAt)
	if early || len(a.rows) > 0 && (at.IsZero() || at.After(a.first)) {
		a.add("counters", "the campaign opened at %s, it was made at %s and its first coupon was issued at %s", text(at), text(a.campaign.CreatedAt), text(a.first))
	}
}

// fullSince returns since when every coupon is in force, where the ledger decides: since the last
// was issued, or since later terms with as many as were in force then.
func (h *history) fullSince(inForce int64, last Coupon) time.Time {
	if inForce < h.terms[h.effective].quantity {
		return time.Time{}
	}
	index := h.effective
	for n := len(h.changes) - 1; n >= 0 && h.changes[n].version > last.TermsVersion; n-- {
		switch c := h.changes[n]; {
		case c.kind == firstcome.ChangeVoid:
			inForce++ // before it
		case c.version != h.terms[index].version:
		case index == 0 || inForce < h.terms[index-1].quantity:
			return c.at
		default:
			index--
		}
	}
	return last.IssuedAt
}

// saw keeps a coupon if its number is the lowest or the highest of those that were seen.
func (c *comparison) saw(coupon firstcome.Coupon) {
	if c.first.Number == 0 || coupon.Number < c.first.Number {
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
	full := g.InForce >= c.campaign.Quantity
	early := c.last.Number > 0 && g.SoldOutAt.Before(c.last.IssuedAt)
	if full == g.SoldOutAt.IsZero() || full && early {
		c.differs("counters", "by the gate the campaign is sold out since %s, %d coupons of %s are in force there, and number %d was issued at %s",
			text(g.SoldOutAt), g.InForce, quantityText(c.campaign.Quantity), c.last.Number, text(c.last.IssuedAt))
	}
	if c.campaign.Closed == g.ClosedAt.IsZero() {
		c.differs("counters", "by the gate an operator closed the campaign at %s, by the ledger at %s", text(g.ClosedAt), text(c.campaign.ClosedAt))
	}
}
