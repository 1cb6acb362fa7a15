package sim

import (
	"time"

	"github.com/firstcome/firstcome"
)

// verdict holds a history that has ended against the promises: what everybody was told, then the ledger.
func (h *history) verdict() []breach {
	for n, a := range h.asked {
		if a.what != "a coupon" || a.outcome == 0 {
			continue
		}
		for _, b := range h.asked[n+1:] {
			if b.what == "a coupon" && b.outcome != 0 && b.sent >= a.received {
				h.order(a, b)
				h.again(a, b)
			}
		}
	}
	h.kept()
	h.ranked()
	for _, b := range h.town.ledger.broken(campaign) {
		h.breach(b.promise, "ledger: %s", b.text)
	}
	return h.breaches
}

// order checks P4 between a claim and one that was sent after it was answered.
func (h *history) order(a, b *asked) {
	one, other := h.issueOf(a.number), h.issueOf(b.number)
	of := one != nil && other != nil && one.epoch == other.epoch // of two servers only one decides in an epoch
	if of && a.outcome == firstcome.Issued && b.outcome == firstcome.Issued && b.number <= a.number {
		h.breach("P4", "%s was issued number %d, and %s, who asked later, number %d", a.name, a.number, b.name, b.number)
	}
	if a.stray || b.stray {
		return // each server has stock of its own
	}
	if a.outcome == firstcome.SoldOut && b.outcome == firstcome.Issued && !h.cameBack(a.sentAt.Add(-2*slack), b.at) {
		h.breach("P4", "%s was told sold_out, and %s, who asked later, was issued number %d, and no stock came back", a.name, b.name, b.number)
	}
}

// cameBack reports whether stock came back between two instants: it is quarantined first.
func (h *history) cameBack(from, to time.Time) bool {
	for _, at := range h.backs {
		if !at.Before(from) && !at.After(to) {
			return true
		}
	}
	for _, l := range h.looks {
		if l.Stock > 0 && !l.from.Before(from) && !l.from.After(to) {
			return true
		}
	}
	return false
}

// again checks P6 for two claims of a user, the second of which was sent after the first was answered.
func (h *history) again(a, b *asked) {
	if a.name != b.name || a.number == 0 || b.stray {
		return
	}
	i := h.issueOf(a.number)
	voided := i != nil && (i.voided > 0 && i.voided <= b.received || i.lost > 0 && i.lost <= b.received)
	jumped := !b.outcome.HasCoupon() && h.since(b.sentAt) != b.sentAt
	if !voided && !jumped && (b.outcome != firstcome.AlreadyIssued || b.number != a.number) {
		h.breach("P6", "%s was told number %d, and asking again %s, number %d", a.name, a.number, b.outcome, b.number)
	}
}

// kept checks P5: what the gate gave is in the ledger, and both say the same of who holds what and under which terms.
func (h *history) kept() {
	a, c := h.town.ledger.campaigns[campaign], h.town.gate.campaigns[campaign]
	if c == nil {
		c = &course{}
	}
	for _, i := range h.issues {
		forgotten := h.town.puts > 0 && i.voided > 0 && a.isLost(i.Number, 0) // with its void
		if kept := a.coupon(i.Number); i.lost == 0 && !forgotten && (kept == nil || kept.User != i.User) {
			h.breach("P5", "number %d of %s is not in the ledger", i.Number, i.User)
		}
	}
	for _, letter := range h.town.ledger.letters {
		h.breach("P5", "number %d of %s is a dead letter, and no gate went wrong", letter.number, letter.user)
	}
	for _, one := range a.coupons {
		if held := c.Holders[one.User]; one.VoidedAt.IsZero() && held.Number != one.Number {
			h.breach("gate", "number %d of %s is in force in the ledger, and %s has number %d at the gate", one.Number, one.User, one.User, held.Number)
		}
	}
	if a.inForce() != c.InForce() {
		h.breach("gate", "%d coupons are in force in the ledger, and %d at the gate", a.inForce(), c.InForce())
	}
	if a.Version != c.Version || a.Quantity != c.Quantity || a.Paused != c.Paused || a.Closed != c.Closed || a.MovesPrizes(c.Terms) || !a.OpensAt.Equal(c.OpensAt) || !a.ClosesAt.Equal(c.ClosesAt) {
		h.breach("changes", "the ledger is at version %d with a quantity of %d, and the gate at %d with %d", a.Version, a.Quantity, c.Version, c.Quantity)
	}
}
