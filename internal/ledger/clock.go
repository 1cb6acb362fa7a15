package ledger

import (
	"math"
	"time"

	"github.com/firstcome/firstcome"
)

// decidesAt returns the gate's time for a campaign: the clock, in whole
// microseconds, unless the campaign has seen a later instant.
func (r *rows) decidesAt(s stock) time.Time { return s.at(r.clockOf(s)) }

// at returns the gate's time for a campaign by an instant of the clock.
func (s *stock) at(clock time.Time) time.Time {
	if clock.After(s.decidedAt) {
		return clock
	}
	return s.decidedAt
}

// clockOf returns the clock as it was read for a campaign.
func (r *rows) clockOf(s stock) time.Time {
	if s.clock.IsZero() {
		return r.db.Clock().UTC().Truncate(time.Microsecond)
	}
	return s.clock
}

// phase returns what the window alone answers at an instant.
func phase(s stock, at time.Time) firstcome.Outcome {
	c := s.seen()
	return firstcome.Decide(firstcome.Campaign{Terms: firstcome.Terms{
		OpensAt: c.OpensAt, ClosesAt: c.ClosesAt, Quantity: math.MaxInt64,
	}}, at, 0, false, false)
}
