package ledger

import (
	"time"

	"github.com/firstcome/firstcome"
)

// Where several nodes share a gate, one of them may repeat "sold out" for as long as
// its lease lasts after stock came back at another. So nobody is issued that stock before:
// it is held for holdFor, and no lease is granted meanwhile.

// holdFor is how long stock that came back is held: longer than refusalLease, by what
// clocks of two machines may differ in running for so long.
const holdFor = 250 * time.Millisecond

// A hold is what is kept back from claimants until an instant by the clock. That is
// not the gate's time, which stands still after the clock went back, for as long as it
// went: what is held must not wait for that.
type hold struct {
	coupons int64
	until   time.Time
	// The window as it was, zero where it was not widened.
	opensAt, closesAt time.Time
}

// recallHold brings what the row has of a hold up to the clock, which was just read.
// What is held until later than if it were held from now on was held before the clock went
// back: it is held from now on. What is held no longer is forgotten, so that it is not
// held again if the clock goes back.
func (s *stock) recallHold() {
	if latest := s.clock.Add(holdFor); s.hold.until.After(latest) {
		s.hold.until, s.holdMoved = latest, true
	}
	over := hold{until: s.hold.until}
	if !s.isHeld() && s.hold != over {
		s.hold, s.holdMoved = over, true
	}
}

// isHeld tells whether something is held now.
func (s *stock) isHeld() bool { return s.clock.Before(s.hold.until) }

// holdEnd returns until when what comes back now is held. Since a hold began no lease was
// granted, so what comes back during it need not be held for longer: else changes one
// after the other would hold all of it for ever.
func (s *stock) holdEnd() time.Time {
	if s.isHeld() {
		return s.hold.until
	}
	return s.clock.Add(holdFor)
}

// seen returns the campaign as claims see it now, but for the coupons kept back: a
// window that was widened stays as narrow as it was.
func (s *stock) seen() firstcome.Campaign {
	c, h := s.Campaign, s.hold
	if h.opensAt.After(c.OpensAt) {
		c.OpensAt = h.opensAt
	}
	if !h.closesAt.IsZero() && (c.ClosesAt.IsZero() || h.closesAt.Before(c.ClosesAt)) {
		c.ClosesAt = h.closesAt
	}
	return c
}

// holdMore keeps count more coupons back from now on.
func (s *stock) holdMore(count int64) {
	s.hold.coupons += count
	s.hold.until = s.holdEnd()
}

// take gives the campaign other terms at now. What a raised quantity adds is kept back,
// and a window that opens earlier, or opens again, is as it was: not_open and closed
// may be under lease as sold_out may. A lowered quantity is taken from what is kept back first.
func (s *stock) take(terms firstcome.Terms, now time.Time) {
	was := s.seen()
	more := terms.Quantity - s.Quantity
	s.Terms = terms
	opensEarlier := now.Before(was.OpensAt) && terms.OpensAt.Before(was.OpensAt)
	closed := !was.ClosesAt.IsZero() && !now.Before(was.ClosesAt)
	opensAgain := closed && (terms.ClosesAt.IsZero() || terms.ClosesAt.After(was.ClosesAt))
	if opensEarlier || opensAgain {
		s.hold.opensAt, s.hold.closesAt = was.OpensAt, was.ClosesAt
	}
	s.hold.coupons = max(0, s.hold.coupons+more)
	if opensEarlier || opensAgain || more > 0 {
		s.hold.until = s.holdEnd()
	}
}

// holdReturned holds what new terms of a campaign, which was in the state s, return to it.
func (t *tx) holdReturned(s stock, terms firstcome.Terms, now time.Time) error {
	s.take(terms, now)
	return t.keepHold(s)
}

// holdVoided holds the one coupon that was voided of a campaign, which was in the state s.
func (t *tx) holdVoided(s stock) error {
	s.holdMore(1)
	return t.keepHold(s)
}

// keepHold writes what is held, where nodes share the ledger.
func (t *tx) keepHold(s stock) error {
	if !t.dialect.shared {
		return nil
	}
	_, err := t.change(`UPDATE campaigns SET held = ?, held_until = ?, was_opens_at = ?, was_closes_at = ? WHERE id = ?`,
		s.hold.coupons, s.hold.until.UnixMicro(), micros(s.hold.opensAt), micros(s.hold.closesAt), s.ID)
	return err
}
