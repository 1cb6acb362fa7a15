package campaign

import (
	"time"

	"github.com/firstcome/firstcome"
)

// Several nodes may share the ledger as their gate. After stock comes back through one node, another node may
// repeat "sold out" until its lease ends. So returned stock is quarantined: no claim gets it for quarantineFor,
// and no lease is granted in that time.

// quarantineFor is how long returned stock is quarantined. It is longer than sqlgate.refusalLease, because the clocks
// of two machines may run at different speeds.
const quarantineFor = 250 * time.Millisecond

// A quarantined is the stock and the terms that claims do not see yet. The quarantine ends by the server's
// clock. It does not end by the gate's time, because that stops after the clock goes back, until the clock
// catches up.
type quarantined struct {
	Coupons int64     // returned coupons that no claim gets before Until
	Until   time.Time // when the quarantine ends
	// The window before it was widened. Zero if it was not widened.
	opensAt, closesAt time.Time
	// SoldOut is true if claims got sold_out when the quarantine began. Nodes may still repeat that answer, so
	// no user joins the line until the quarantine ends. Otherwise another node could tell a user in line that
	// the campaign is sold out.
	SoldOut bool
}

// recallQuarantine updates the quarantine of a row that was just read, by the clock that was just read. An end
// later than that of a quarantine that begins now means that the clock went back: then the quarantine begins
// now. A quarantine that is over is removed, so that it does not return if the clock goes back.
func (s *Row) recallQuarantine() {
	if latest := s.Clock.Add(quarantineFor); s.Quarantined.Until.After(latest) {
		s.Quarantined.Until, s.QuarantineMoved = latest, true
	}
	over := quarantined{Until: s.Quarantined.Until}
	if !s.IsQuarantined() && s.Quarantined != over {
		s.Quarantined, s.QuarantineMoved = over, true
	}
}

// IsQuarantined reports whether a quarantine is in force.
func (s *Row) IsQuarantined() bool { return s.Clock.Before(s.Quarantined.Until) }

// quarantine begins a quarantine, unless one is in force. The caller has not changed s yet. No lease is granted
// during a quarantine, so later returns do not extend it. Otherwise repeated changes could hold stock forever.
func (s *Row) quarantine() {
	if !s.IsQuarantined() {
		s.Quarantined.Until, s.Quarantined.SoldOut = s.Clock.Add(quarantineFor), s.isSoldOut()
	}
}

// isSoldOut reports whether claims in an open window get sold_out, if nothing is quarantined.
func (s *Row) isSoldOut() bool { return s.InForce >= s.Quantity && (s.Pace == nil || !s.Waitlist) }

// Seen returns the campaign as claims see it now, except that the quarantined coupons are not subtracted. A
// window that was widened keeps its old bounds. There is no waitlist if claims got sold_out when the quarantine
// began. A campaign whose pace was removed keeps a line while users wait in it.
func (s *Row) Seen() firstcome.Campaign {
	c, was := s.Campaign, s.Quarantined
	if was.opensAt.After(c.OpensAt) {
		c.OpensAt = was.opensAt
	}
	if !was.closesAt.IsZero() && (c.ClosesAt.IsZero() || was.closesAt.Before(c.ClosesAt)) {
		c.ClosesAt = was.closesAt
	}
	c.Waitlist = c.Waitlist && !was.SoldOut
	if c.Pace == nil && s.Lined() {
		c.Pace = &firstcome.Pace{}
	}
	return c
}

// QuarantineVoided quarantines the stock of one voided coupon, if nodes share the ledger.
func (s *Row) QuarantineVoided() {
	if !s.Clock.IsZero() {
		s.quarantine()
		s.Quarantined.Coupons++
	}
}

// QuarantineReturned quarantines what new terms give back at now, if nodes share the ledger. These are the
// coupons that a higher quantity adds, a waitlist if claims got sold_out, and a window that opens earlier or
// again. Nodes may also repeat not_open and closed under a lease. A lower quantity takes quarantined coupons first.
func (s *Row) QuarantineReturned(terms firstcome.Terms, now time.Time) {
	if s.Clock.IsZero() {
		return
	}
	was := s.Seen()
	more := terms.Quantity - s.Quantity
	opensEarlier := now.Before(was.OpensAt) && terms.OpensAt.Before(was.OpensAt)
	closed := !was.ClosesAt.IsZero() && !now.Before(was.ClosesAt)
	opensAgain := closed && (terms.ClosesAt.IsZero() || terms.ClosesAt.After(was.ClosesAt))
	if opensEarlier || opensAgain || more > 0 || s.isSoldOut() && terms.Waitlist {
		s.quarantine()
	}
	if opensEarlier || opensAgain {
		s.Quarantined.opensAt, s.Quarantined.closesAt = was.OpensAt, was.ClosesAt
	}
	s.Quarantined.Coupons = max(0, s.Quarantined.Coupons+more)
}
