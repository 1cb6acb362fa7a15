//go:build linux

package e2e_test

import (
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// TestF24ACrowdBeforeTheOpening has a crowd ask all nodes without pause until the campaign opens by the
// gate's clock. Everybody is told when to come, and nobody is issued a coupon early. The gate gets few calls, because
// nodes repeat its answer for 200 ms.
func TestF24ACrowdBeforeTheOpening(t *testing.T) {
	const clients, quantity, before = 24, 2000, 3 * time.Second
	for _, s := range withSQLite() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			f := s.fleet(t)
			opens := time.Now().Add(before).Truncate(time.Microsecond).UTC()
			f.node(0).openAt("spring", quantity, opens)
			crowd := newCrowd("spring")
			told, calls, most := crowd.comeEarly(t, f.nodes, opens, clients)
			if calls > most || float64(told.refused) < 5*most {
				t.Errorf("the gate was called %v times for %d refusals, want at most %v", calls, told.refused, most)
			}
			t.Logf("%d refusals, %v calls of the gate, Retry-After %v", told.refused, calls, told.waits)
			f.drained("spring")
			if left := remaining(t, f.node(0), "spring"); s == alone && left != quantity-clients {
				t.Errorf("%d coupons are left, want all of %d but one for each client", left, quantity)
			}
			f.verdict(crowd)
		})
	}
}

// TestF26RetriesWithoutPauseDoNotCollapse has every client ask five times more without pause or patience, at
// one node after the other. That is six times the requests, so a sixth of the users a second would be fair; half
// of that is the bound, against one attempt in the same rounds.
func TestF26RetriesWithoutPauseDoNotCollapse(t *testing.T) {
	for _, s := range []setup{alone, setups[1], setups[2]} { // a gate of each kind
		t.Run(s.name, func(t *testing.T) {
			f := s.fleet(t)
			f.create("calm", 10_000_000, firstcome.Recorded)
			f.create("storm", 10_000_000, firstcome.Recorded)
			calm, storm := newCrowd("calm"), newCrowd("storm")
			notCollapsing(t, f.nodes, calm, storm, rounds(100, 200))
			f.verdict(calm)
			f.verdict(storm)
		})
	}
}

// TestF25OneUserWhoClaimsAHundredTimesAtOnceAtAllNodesIsIssuedOneCoupon repeats that with one user
// after the other.
func TestF25OneUserWhoClaimsAHundredTimesAtOnceAtAllNodesIsIssuedOneCoupon(t *testing.T) {
	const users, claims = 5, 100
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			f := s.fleet(t)
			f.create("spring", users, firstcome.Recorded)
			crowd := newCrowd("spring")
			for number := range int64(users) {
				for _, answer := range f.claimAtOnce(crowd, claims) {
					if answer.Coupon == nil || answer.Coupon.Number != number+1 {
						t.Errorf("the answer is %+v, want number %d", answer, number+1)
					}
				}
			}
			issued := 0
			for _, claim := range crowd.claims {
				if claim.Outcome == firstcome.Issued {
					issued++
				}
			}
			if len(crowd.errs) > 0 || issued != users || len(crowd.claims) != users*claims {
				t.Errorf("of %d claims %d were issued, and %d unknown", len(crowd.claims), issued, len(crowd.errs))
			}
			f.verdict(crowd)
		})
	}
}

// claimAtOnce has a new user claim so often at once, at one node after the other.
func (f *fleet) claimAtOnce(c *crowd, claims int) (answers []client.Answer) {
	user, answers := c.user(), make([]client.Answer, claims)
	start := make(chan struct{})
	var all sync.WaitGroup
	for n := range claims {
		all.Go(func() {
			<-start
			answers[n], _ = c.claim(f.t.Context(), f.node(n).calls, user) // the crowd keeps errors
		})
	}
	close(start)
	all.Wait()
	return answers
}
