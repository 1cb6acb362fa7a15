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

// holding returns the coupons held at an instant.
func (s *stock) holding(now time.Time) int64 {
	if now.Before(s.heldUntil) {
		return s.held
	}
	return 0
}

// hold takes count more coupons back from claimants until holdFor from now.
func (s *stock) hold(count int64, now time.Time) {
	s.held, s.heldUntil = s.holding(now)+count, now.Add(holdFor)
}

// holdFrom sets what is held after terms took the place of others at now: what a
// raised quantity added, and everything where the window answers otherwise than it
// did, because that was under lease too. A lowered quantity is taken from what is held first.
func (s *stock) holdFrom(before firstcome.Terms, now time.Time) {
	was := stock{Campaign: firstcome.Campaign{Terms: before}}
	more := s.Quantity - before.Quantity
	switch {
	case phase(was, now) != firstcome.Issued && phase(*s, now) != phase(was, now):
		s.held = 0
		s.hold(s.Quantity-s.inForce, now)
	case more > 0:
		s.hold(more, now)
	default:
		s.held = max(0, s.holding(now)+more)
	}
}

// holdReturned holds what new terms of a campaign, which was in the state s, return to it.
func (t *tx) holdReturned(s stock, terms firstcome.Terms, now time.Time) error {
	before := s.Terms
	s.Terms = terms
	s.holdFrom(before, now)
	return t.keepHold(s)
}

// holdVoided holds the one coupon that was voided of a campaign, which was in the state s.
func (t *tx) holdVoided(s stock, now time.Time) error {
	s.hold(1, now)
	return t.keepHold(s)
}

// keepHold writes what is held, where nodes share the ledger.
func (t *tx) keepHold(s stock) error {
	if !t.dialect.shared {
		return nil
	}
	_, err := t.change(`UPDATE campaigns SET held = ?, held_until = ? WHERE id = ?`, s.held, s.heldUntil.UnixMicro(), s.ID)
	return err
}
