package conform

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// checkLease returns what is wrong with the lease of a decision that was made just now. For as
// long as a refusal is repeated it has to be what the rule says, too.
func (m *model) checkLease(d firstcome.Decision) error {
	switch {
	case d.Lease < 0:
		return errors.New("it ends before it begins")
	case d.Lease == 0:
		return nil
	case m.isHeld():
		return errors.New("stock that came back is held")
	case d.Outcome == firstcome.Paused:
		return errors.New("an operator may end a pause at any time")
	case d.Outcome.HasCoupon() && m.holdsFor > 0:
		return errors.New("another node may void the coupon")
	case d.Outcome.HasCoupon():
		return nil
	}
	if then := firstcome.Decide(m.Campaign, d.At.Add(d.Lease-1), int64(len(m.holds)), false); then != d.Outcome {
		return fmt.Errorf("before its end the answer is %s", then)
	}
	return nil
}

// endings claims just before what the window answers changes: whoever repeated the refusal for
// longer would refuse who is in time, or call sold out what is closed.
func endings(t *testing.T, s Subject) {
	const soon, longest = 30 * time.Millisecond, 200 * time.Millisecond // adr 3
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
	} {
		c.terms.Name, c.terms.Answer, c.terms.Benefit = "lease", firstcome.Recorded, []byte(`{}`)
		if err := s.Create(t.Context(), id, c.terms); err != nil {
			t.Fatal(err)
		}
		d, err := s.Claim(t.Context(), id, []firstcome.UserID{"u"})
		if err != nil || d[0].Outcome != c.outcome || d[0].Lease != c.lease {
			t.Errorf("%s: %v, %v; want %s under a lease of %v", id, d, err, c.outcome, c.lease)
		}
	}
}
