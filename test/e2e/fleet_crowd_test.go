//go:build linux && !check

package e2e_test

import (
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// TestF24ACrowdBeforeTheOpening has a crowd ask all nodes without pause before a campaign opens, and until it does by the gate's clock,
// to which an operator has moved the opening. Everybody is told when to come, and nobody is issued a coupon early. The gate gets few
// calls, because nodes repeat its answer for 200 ms.
func TestF24ACrowdBeforeTheOpening(t *testing.T) {
	on(t, aCrowdBeforeTheOpening, alone, mariaDB, redisOfPostgreSQL)
}

func aCrowdBeforeTheOpening(t *testing.T, s setup) {
	const clients, quantity, refusals = 24, 2000, 2000
	f := s.fleet(t, patient...)
	crowd := newCrowd("spring")
	far := time.Now().Add(4 * time.Minute).Truncate(time.Microsecond).UTC() // near enough for a Retry-After
	f.node(0).openAt("spring", quantity, far)
	told := crowd.comeEarly(t, f.nodes, far, clients, refusals)
	soon := time.Now().Add(500 * time.Millisecond).Truncate(time.Microsecond).UTC()
	_, err := f.node(0).calls.UpdateCampaign(t.Context(), "spring", 0, map[string]any{"opens_at": soon})
	if err != nil {
		t.Fatal(err)
	}
	crowd.awaitOpening(t, f.nodes, soon, far, clients)
	t.Logf("%d refusals, %v calls of the gate, Retry-After %v", told.refused, told.calls, told.waits)
	f.drained("spring")
	if left := remaining(t, f.node(0), "spring"); left != quantity-clients {
		t.Errorf("%d coupons are left, want all of %d but one for each client", left, quantity)
	}
	f.verdict(crowd)
}

// TestF26WhoRetriesWithoutPauseIsAnsweredAndNobodyIsHeldUp has many users claim six times at once, at one node after the other. Each of
// these claims has an answer, one of a user's is issued, and all have the same coupon. In a soak the answers are counted by time.
func TestF26WhoRetriesWithoutPauseIsAnsweredAndNobodyIsHeldUp(t *testing.T) {
	on(t, retriesWithoutPause, alone, postgreSQL, redisOfMariaDB) // a gate of each kind
}

func retriesWithoutPause(t *testing.T, s setup) {
	const users, attempts = 100, 6
	f := s.fleet(t, patient...)
	f.create("storm", 10_000_000, firstcome.Recorded)
	storm := newCrowd("storm")
	storm.rush(t, f.nodes, users, attempts)
	if issued := storm.outcomes(firstcome.Issued); issued != users || storm.outcomes(firstcome.AlreadyIssued) != users*(attempts-1) {
		t.Errorf("of %d claims of %d users %d were issued", len(storm.claims), users, issued)
	}
	f.verdict(storm)
}

// outcomes returns how many claims had an outcome.
func (c *crowd) outcomes(of firstcome.Outcome) (count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range c.claims {
		if claim.Outcome == of {
			count++
		}
	}
	return count
}

// TestF25OneUserWhoClaimsAHundredTimesAtOnceAtAllNodesIsIssuedOneCoupon repeats that with one user
// after the other.
func TestF25OneUserWhoClaimsAHundredTimesAtOnceAtAllNodesIsIssuedOneCoupon(t *testing.T) {
	on(t, aHundredClaimsAtOnce, mariaDB, redisOfPostgreSQL)
}

func aHundredClaimsAtOnce(t *testing.T, s setup) {
	const users, claims = 5, 100
	f := s.fleet(t, patient...)
	f.create("spring", users, firstcome.Recorded)
	crowd := newCrowd("spring")
	for number := range int64(users) {
		for _, answer := range f.claimAtOnce(crowd, claims) {
			if answer.Coupon == nil || answer.Coupon.Number != number+1 {
				t.Errorf("the answer is %+v, want number %d", answer, number+1)
			}
		}
	}
	if issued := crowd.outcomes(firstcome.Issued); len(crowd.errs) > 0 || issued != users || len(crowd.claims) != users*claims {
		t.Errorf("of %d claims %d were issued, and %d unknown", len(crowd.claims), issued, len(crowd.errs))
	}
	f.verdict(crowd)
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
