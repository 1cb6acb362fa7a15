package ledger

import (
	"math"
	"time"

	"github.com/firstcome/firstcome"
)

// decidesAt returns the gate's time for a campaign, in whole microseconds. This is the clock's time, or the campaign's latest decision
// time if that is later.
func (r *rows) decidesAt(s stock) time.Time { return s.at(r.clockOf(s)) }

// at returns the gate's time for a campaign when the clock shows the given time.
func (s *stock) at(clock time.Time) time.Time {
	if clock.After(s.decidedAt) {
		return clock
	}
	return s.decidedAt
}

// clockOf returns the clock's time that was read with a campaign's row. If none was read, it reads the clock now.
func (r *rows) clockOf(s stock) time.Time {
	if s.clock.IsZero() {
		return r.db.Clock().UTC().Truncate(time.Microsecond)
	}
	return s.clock
}

// phase returns the outcome of a claim at a time by the campaign's window alone.
func phase(s stock, at time.Time) firstcome.Outcome {
	c := s.seen()
	return firstcome.Decide(firstcome.Campaign{Terms: firstcome.Terms{
		OpensAt: c.OpensAt, ClosesAt: c.ClosesAt, Quantity: math.MaxInt64,
	}}, at, 0, false, false)
}
