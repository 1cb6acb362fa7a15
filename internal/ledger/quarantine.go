package ledger

import (
	"time"

	"github.com/firstcome/firstcome"
)

// Where several nodes share a gate, one of them may repeat "sold out" for as long as
// its lease lasts after stock came back at another. So nobody is issued that stock until
// then: it is quarantined for quarantineFor, and no lease is granted meanwhile.

// quarantineFor is how long returned stock is quarantined: longer than refusalLease, by what
// clocks of two machines may differ in running for so long.
const quarantineFor = 250 * time.Millisecond

// quarantined is what is kept back from claimants until an instant by the clock. That is
// not the gate's time, which stands still after the clock went back, for as long as it
// went: what is quarantined must not wait for that.
type quarantined struct {
	coupons int64
	until   time.Time
	// The window as it was, zero where it was not widened.
	opensAt, closesAt time.Time
	// soldOut tells that claims heard sold_out as this began, so that nodes may still repeat it: nobody joins the line of a
	// paced campaign meanwhile, or who has joined would hear at another node that they have not.
	soldOut bool
}

// recallQuarantine brings what the row says of it up to the clock, which was just read.
// If something would be quarantined for longer than if it began now, the clock went back: it begins
// now. What has left quarantine is forgotten, so that it is not quarantined again if the clock goes back.
func (s *stock) recallQuarantine() {
	if latest := s.clock.Add(quarantineFor); s.quarantined.until.After(latest) {
		s.quarantined.until, s.quarantineMoved = latest, true
	}
	over := quarantined{until: s.quarantined.until}
	if !s.isQuarantined() && s.quarantined != over {
		s.quarantined, s.quarantineMoved = over, true
	}
}

// isQuarantined tells whether something is quarantined now.
func (s *stock) isQuarantined() bool { return s.clock.Before(s.quarantined.until) }

// quarantine keeps back what comes back now, before s changes. Since the first of it came back no lease was
// granted, so what comes back meanwhile need not be quarantined for longer: else changes one
// after the other would keep all of it back for ever.
func (s *stock) quarantine() {
	if !s.isQuarantined() {
		s.quarantined.until, s.quarantined.soldOut = s.clock.Add(quarantineFor), s.isSoldOut()
	}
}

// isSoldOut tells whether claims hear sold_out in an open window while nothing is quarantined.
func (s *stock) isSoldOut() bool { return s.inForce >= s.Quantity && (s.Pace == nil || !s.Waitlist) }

// seen returns the campaign as claims see it now, but for the coupons kept back: a
// window that was widened stays as narrow as it was, nobody stands by where claims hear sold_out,
// and who is in line stays in line without a pace.
func (s *stock) seen() firstcome.Campaign {
	c, was := s.Campaign, s.quarantined
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

// quarantineVoided keeps one more coupon back from now on, where nodes share the ledger.
func (s *stock) quarantineVoided() {
	if !s.clock.IsZero() {
		s.quarantine()
		s.quarantined.coupons++
	}
}

// quarantineReturned keeps back what other terms return at now: what a raised quantity adds, a new waitlist, and a window that
// opens earlier, or opens again, is as it was, since not_open and closed
// may be under lease as sold_out may. A lowered quantity is taken from what is kept back first.
func (s *stock) quarantineReturned(terms firstcome.Terms, now time.Time) {
	if s.clock.IsZero() {
		return
	}
	was := s.seen()
	more := terms.Quantity - s.Quantity
	opensEarlier := now.Before(was.OpensAt) && terms.OpensAt.Before(was.OpensAt)
	closed := !was.ClosesAt.IsZero() && !now.Before(was.ClosesAt)
	opensAgain := closed && (terms.ClosesAt.IsZero() || terms.ClosesAt.After(was.ClosesAt))
	if opensEarlier || opensAgain || more > 0 || s.isSoldOut() && terms.Waitlist {
		s.quarantine()
	}
	if opensEarlier || opensAgain {
		s.quarantined.opensAt, s.quarantined.closesAt = was.OpensAt, was.ClosesAt
	}
	s.quarantined.coupons = max(0, s.quarantined.coupons+more)
}
