package ledger

import (
	"time"

	"github.com/firstcome/firstcome"
)

// Where several nodes share a gate, one of them may repeat "sold out" for as long as
// its lease lasts after stock came back at another. So nobody is issued that stock until
// then: it cools for coolFor, and no lease is granted meanwhile.

// coolFor is how long stock that came back cools: longer than refusalLease, by what
// clocks of two machines may differ in running for so long.
const coolFor = 250 * time.Millisecond

// A cooling is what is kept back from claimants until an instant by the clock. That is
// not the gate's time, which stands still after the clock went back, for as long as it
// went: what cools must not wait for that.
type cooling struct {
	coupons int64
	until   time.Time
	// The window as it was, zero where it was not widened.
	opensAt, closesAt time.Time
	// soldOut tells that claims heard sold_out as this began, so that nodes may still repeat it: nobody joins the line of a
	// paced campaign meanwhile, or who has joined would hear at another node that they have not.
	soldOut bool
}

// recallCooling brings what the row says of it up to the clock, which was just read.
// If something would cool for longer than if it began now, the clock went back: it begins
// now. What has cooled is forgotten, so that it does not cool again if the clock goes back.
func (s *stock) recallCooling() {
	if latest := s.clock.Add(coolFor); s.cooling.until.After(latest) {
		s.cooling.until, s.coolingMoved = latest, true
	}
	over := cooling{until: s.cooling.until}
	if !s.isCooling() && s.cooling != over {
		s.cooling, s.coolingMoved = over, true
	}
}

// isCooling tells whether something cools now.
func (s *stock) isCooling() bool { return s.clock.Before(s.cooling.until) }

// cool has what comes back now cool, before s changes. Since the first of it came back no lease was
// granted, so what comes back meanwhile need not cool for longer: else changes one
// after the other would keep all of it back for ever.
func (s *stock) cool() {
	if !s.isCooling() {
		s.cooling.until, s.cooling.soldOut = s.clock.Add(coolFor), s.isSoldOut()
	}
}

// isSoldOut tells whether claims hear sold_out in an open window while nothing cools.
func (s *stock) isSoldOut() bool { return s.inForce >= s.Quantity && (s.Pace == nil || !s.Waitlist) }

// seen returns the campaign as claims see it now, but for the coupons kept back: a
// window that was widened stays as narrow as it was, nobody stands by where claims hear sold_out,
// and who is in line stays in line without a pace.
func (s *stock) seen() firstcome.Campaign {
	c, was := s.Campaign, s.cooling
	if was.opensAt.After(c.OpensAt) {
		c.OpensAt = was.opensAt
	}
	if !was.closesAt.IsZero() && (c.ClosesAt.IsZero() || was.closesAt.Before(c.ClosesAt)) {
		c.ClosesAt = was.closesAt
	}
	c.Waitlist = c.Waitlist && !was.soldOut
	if c.Pace == nil && s.lined() {
		c.Pace = &firstcome.Pace{}
	}
	return c
}

// coolVoided keeps one more coupon back from now on, where nodes share the ledger.
func (s *stock) coolVoided() {
	if !s.clock.IsZero() {
		s.cool()
		s.cooling.coupons++
	}
}

// coolReturned keeps back what other terms return at now: what a raised quantity adds, a new waitlist, and a window that
// opens earlier, or opens again, is as it was, since not_open and closed
// may be under lease as sold_out may. A lowered quantity is taken from what is kept back first.
func (s *stock) coolReturned(terms firstcome.Terms, now time.Time) {
	if s.clock.IsZero() {
		return
	}
	was := s.seen()
	more := terms.Quantity - s.Quantity
	opensEarlier := now.Before(was.OpensAt) && terms.OpensAt.Before(was.OpensAt)
	closed := !was.ClosesAt.IsZero() && !now.Before(was.ClosesAt)
	opensAgain := closed && (terms.ClosesAt.IsZero() || terms.ClosesAt.After(was.ClosesAt))
	if opensEarlier || opensAgain || more > 0 || s.isSoldOut() && terms.Waitlist {
		s.cool()
	}
	if opensEarlier || opensAgain {
		s.cooling.opensAt, s.cooling.closesAt = was.OpensAt, was.ClosesAt
	}
	s.cooling.coupons = max(0, s.cooling.coupons+more)
}
