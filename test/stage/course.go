package stage

import (
	"time"

	"github.com/firstcome/firstcome"
)

// A Course is a campaign as far as its changes came to the gate.
type Course struct {
	firstcome.Campaign
	TermsVersion  int64
	Last, Drained int64
	Gone          bool // the gate has lost it, or was told to forget it
	Holders       map[firstcome.UserID]firstcome.Coupon
	Journal       []firstcome.Coupon
	Line          firstcome.Line
	Tickets       map[firstcome.UserID]int64 // of those in line
	joined        []firstcome.UserID         // by ticket, from 1
	joinedAt      []time.Time                // the same
	Past          []firstcome.PastLine       // newest first
	left          map[firstcome.UserID]bool  // who left the line or was sent away
	Applied       []int64                    // versions, as they took effect
	epoch         int64
	refused       map[int64]bool // versions
	seen          time.Time      // the latest instant that a later one may not be before
}

func (c *Course) apply(change firstcome.Change) {
	switch change.Kind {
	case firstcome.ChangeTerms:
		c.Terms, c.TermsVersion = change.Terms, change.Version
	case firstcome.ChangePause, firstcome.ChangeResume:
		c.Paused = change.Kind == firstcome.ChangePause
	case firstcome.ChangeClose:
		c.Closed, c.ClosedAt = true, c.seen
	case firstcome.ChangeVoid:
		if c.Holders[change.User].Number == change.Number {
			delete(c.Holders, change.User)
		}
	}
}

// window returns what the window alone answers at an instant.
func (c *Course) window(at time.Time) firstcome.Outcome {
	terms := firstcome.Terms{OpensAt: c.OpensAt, ClosesAt: c.ClosesAt, Quantity: firstcome.Unlimited}
	return firstcome.Decide(firstcome.Campaign{Terms: terms}, at, 0, false, false)
}

// told returns a coupon with whether it is recorded, as far as the gate knows.
func (c *Course) told(held firstcome.Coupon) firstcome.Coupon {
	held.Recorded = held.Number <= c.Drained && !held.Buried
	return held
}

// lease returns how long a decision may be repeated: until the window answers otherwise.
func (c *Course) lease(d firstcome.Decision, longest time.Duration) time.Duration {
	ends := time.Time{}
	switch {
	case d.Outcome == firstcome.Paused, d.Outcome == firstcome.Waiting, d.Outcome == firstcome.NotOpen && c.Line.Waiting > 0, d.Outcome.HasCoupon() && !d.Coupon.Recorded:
		return 0
	case d.Outcome == firstcome.NotOpen:
		ends = c.OpensAt
	case d.Outcome == firstcome.SoldOut:
		ends = c.ClosesAt
	}
	if ends.IsZero() {
		return longest
	}
	return min(longest, ends.Sub(d.At))
}
