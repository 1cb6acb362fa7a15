package conform

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// checkLease returns what is wrong with the lease of a decision that was made just now. For as
// long as a refusal is repeated it has to be what the rule says, too.
func (m *model) checkLease(d firstcome.Decision) error {
	switch {
	case d.Lease < 0:
		return errors.New("it ends before it begins")
	case d.Lease == 0:
		return nil
	case m.isQuarantined():
		return errors.New("stock that came back is quarantined")
	case d.Outcome == firstcome.Waiting || d.Outcome == firstcome.NotOpen && len(m.queue) > 0:
		return errors.New("a node cannot tell who is in line")
	case d.Outcome == firstcome.Paused:
		return errors.New("an operator may end a pause at any time")
	case d.Outcome.HasCoupon() && m.quarantineFor > 0:
		return errors.New("another node may void the coupon")
	case d.Outcome.HasCoupon():
		return nil
	}
	if then := firstcome.Decide(m.Campaign, d.At.Add(d.Lease-1), int64(len(m.holds)), false, false); then != d.Outcome {
		return fmt.Errorf("before its end the answer is %s", then)
	}
	return nil
}

// endings claims just before what the window answers changes: a node that repeated the refusal for
// longer would refuse a user who is in time, or call sold out what is closed.
func endings(t *testing.T, s Subject) {
	const soon, longest = 30 * time.Millisecond, 200 * time.Millisecond // adr 3
	first, last := time.UnixMicro(0).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	s.SetClock(Epoch)
	for id, c := range map[firstcome.CampaignID]struct {
		terms   firstcome.Terms
		outcome firstcome.Outcome
		lease   time.Duration
	}{
		"opens-soon":  {firstcome.Terms{Quantity: 1, OpensAt: Epoch.Add(soon)}, firstcome.NotOpen, soon},
		"opens-later": {firstcome.Terms{Quantity: 1, OpensAt: Epoch.Add(time.Hour)}, firstcome.NotOpen, longest},
		"closes-soon": {firstcome.Terms{Quantity: 0, ClosesAt: Epoch.Add(soon)}, firstcome.SoldOut, soon},
		"sold-out":    {firstcome.Terms{Quantity: 0}, firstcome.SoldOut, longest},
		"closed":      {firstcome.Terms{Quantity: 1, ClosesAt: Epoch}, firstcome.Closed, longest},

		// A time.Duration has room for 292 years, and the numbers of Lua are exact until the year 2255.
		"opens-last":   {firstcome.Terms{Quantity: 1, OpensAt: last}, firstcome.NotOpen, longest},
		"closes-last":  {firstcome.Terms{Quantity: 0, ClosesAt: last}, firstcome.SoldOut, longest},
		"closes-2318":  {firstcome.Terms{Quantity: 0, ClosesAt: Epoch.Add(math.MaxInt64).Add(time.Hour)}, firstcome.SoldOut, longest},
		"closes-2900":  {firstcome.Terms{Quantity: 0, ClosesAt: Epoch.AddDate(877, 0, 0)}, firstcome.SoldOut, longest},
		"closed-first": {firstcome.Terms{Quantity: 1, ClosesAt: first.Add(time.Microsecond)}, firstcome.Closed, longest},
		"always":       {firstcome.Terms{Quantity: 0, OpensAt: first, ClosesAt: last}, firstcome.SoldOut, longest},
	} {
		c.terms.Name, c.terms.Answer, c.terms.Benefit = "lease", firstcome.Recorded, []byte(`{}`)
		stage.Must(t, s.Create(t.Context(), id, c.terms))
		d, err := s.Claim(t.Context(), id, []firstcome.UserID{"u"})
		if err != nil || d[0].Outcome != c.outcome || d[0].Lease != c.lease {
			t.Errorf("%s: %v, %v; want %s under a lease of %v", id, d, err, c.outcome, c.lease)
		}
	}
}
