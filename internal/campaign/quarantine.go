package campaign

import (
	"time"

	"github.com/firstcome/firstcome"
)

// recallQuarantine updates the quarantine of a row that was just read, by the clock that was just read. An end
// later than that of a quarantine that begins now means that the clock went back: then the quarantine begins
// now. A quarantine that is over is removed, so that it does not return if the clock goes back.
func (s *Row) recallQuarantine() {
	if latest := s.Clock.Add(firstcome.QuarantineFor); s.Quarantined.Until.After(latest) {
		s.Quarantined.Until, s.QuarantineMoved = latest, true
	}
	over := firstcome.Quarantine{Until: s.Quarantined.Until}
	if !s.IsQuarantined() && s.Quarantined != over {
		s.Quarantined, s.QuarantineMoved = over, true
	}
}

// IsQuarantined reports whether a quarantine is in force. It never is if this process is the only one at the ledger.
func (s *Row) IsQuarantined() bool { return !s.Clock.IsZero() && s.Clock.Before(s.Quarantined.Until) }

// quarantine begins a quarantine, unless one is in force. The caller has not changed s yet. No lease is granted
// during a quarantine, so later returns do not extend it. Otherwise repeated changes could hold stock forever.
func (s *Row) quarantine() {
	if !s.IsQuarantined() {
		s.Quarantined.Until, s.Quarantined.SoldOut = s.Clock.Add(firstcome.QuarantineFor), s.isSoldOut()
	}
}

// isSoldOut reports whether claims in an open window get sold_out, if nothing is quarantined.
func (s *Row) isSoldOut() bool { return s.InForce >= s.Quantity && (s.Pace == nil || !s.Waitlist) }

// Seen returns the campaign as claims see it now.
func (s *Row) Seen() firstcome.Campaign { return s.Campaign.Seen(s.Line.Waiting, s.Quarantined) }

// View returns what the rules of the line and of leases depend on at now, the gate's time.
func (s *Row) View(now time.Time) firstcome.View {
	return firstcome.View{Campaign: s.Seen(), Line: s.Line, InForce: s.InForce, Now: now, Quarantine: s.Quarantined, InQuarantine: s.IsQuarantined()}
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
		s.Quarantined.OpensAt, s.Quarantined.ClosesAt = was.OpensAt, was.ClosesAt
	}
	s.Quarantined.Coupons = max(0, s.Quarantined.Coupons+more)
}
