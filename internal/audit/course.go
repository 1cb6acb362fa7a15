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
		if earliest, latest := a.soldOut(); !c.SoldOutAt.Equal(earliest) && !c.SoldOutAt.Equal(latest) {
			a.add("counters", "the campaign sold out first at %s, by its coupons and changes at %s", text(c.SoldOutAt), text(latest))
		}
	case c.Row.RetiredAt.IsZero():
		if !c.OpenedAt.IsZero() || !c.SoldOutAt.IsZero() {
			a.add("counters", "the campaign opened at %s and sold out at %s, and its gate keeps that", text(c.OpenedAt), text(c.SoldOutAt))
		}
	default:
		a.openedFar()
		if !maySellOut(c, a.inForce, c.SoldOutAt, a.first, a.latest) {
			a.add("counters", "the campaign sold out first at %s, %d of %s are in force, the first was issued at %s and the last at %s",
				text(c.SoldOutAt), a.inForce, quantityText(c.Quantity), text(a.first), text(a.latest))
		}
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

// soldOut returns when nothing was left for the first time, where the ledger decides. If a coupon and a void have the same microsecond, either may
// have been first, so there are two such instants. Both are zero if there always was something left.
func (a *couponAudit) soldOut() (earliest, latest time.Time) {
	var changed time.Time // the first terms with as few as were in force
	h, issued, voided, next := a.history, 0, 0, 0
	for _, c := range h.changes {
		switch {
		case c.kind == firstcome.ChangeVoid:
			voided++
		case next < len(h.terms) && h.terms[next].version == c.version:
			for issued < len(a.rows) && int(a.rows[issued].terms) < next {
				issued++
			}
			if changed.IsZero() && int64(issued-voided) >= h.terms[next].quantity {
				changed = c.at
			}
			next++
		}
	}
	return earlier(a.full[0], changed), earlier(a.full[1], changed)
}

// earlier returns the earlier of two instants, of which either may be none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// fills notes whether a coupon that the ledger decided left nothing.
func (a *couponAudit) fills(c Coupon, terms *termsFrom) {
	for n, before := range []func(void time.Time) bool{
		func(void time.Time) bool { return void.Before(c.IssuedAt) },
		func(void time.Time) bool { return !void.After(c.IssuedAt) },
	} {
		for a.behind[n] < len(a.history.changes) && before(a.history.changes[a.behind[n]].at) {
			if a.history.changes[a.behind[n]].kind == firstcome.ChangeVoid {
				a.voided[n]++
			}
			a.behind[n]++
		}
		if left := terms.quantity - (int64(len(a.rows)) + 1 - a.voided[n]); left <= 0 && a.full[n].IsZero() {
			a.full[n] = c.IssuedAt
		}
	}
}

// opened holds the opening against the first coupon or ticket, which the decision that opened the campaign
// gave, unless there were none. A claim of a place in a topic may open it before, and the ledger has no such ticket. So may a direct
// issue, and a claim that got nothing because direct issues had taken all.
func (a *couponAudit) opened() {
	at, h := a.campaign.OpenedAt, a.history
	empty := false // once, until the first coupon
	for _, t := range h.terms {
		empty = empty || t.quantity == 0 && (a.first.IsZero() || t.version < a.firstTerms)
	}
	if s := h.barred(at); s != nil && !at.IsZero() {
		a.add("counters", "the campaign opened at %s, after %s at %s", text(at), s.why, text(s.from))
	}
	if !empty && !a.early && !at.Equal(a.opening) && a.campaign.Feed == nil {
		a.add("counters", "the campaign opened at %s, its first coupon was issued at %s", text(at), text(a.opening))
		return
	}
	a.openedFar()
}

// openedFar holds the opening to what is so of every gate. When a campaign was made is by the ledger's clock.
func (a *couponAudit) openedFar() {
	at := a.campaign.OpenedAt
	early := !a.campaign.Remote && !at.IsZero() && at.Before(a.campaign.CreatedAt)
	if early || !a.first.IsZero() && (at.IsZero() || at.After(a.first)) {
		a.add("counters", "the campaign opened at %s, it was made at %s and its first coupon was issued at %s", text(at), text(a.campaign.CreatedAt), text(a.first))
	}
}

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
