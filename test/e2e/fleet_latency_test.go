//go:build linux && !check

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// TestF12WhereRepliesAreLateClaimsAreUnknownAndWhoAsksAgainIsToldTheTruth delays all data between the nodes and the server that
// decides for longer than they wait, and then no more. fleet_latency_soak_test.go measures how fast claims are afterwards.
func TestF12WhereRepliesAreLateClaimsAreUnknownAndWhoAsksAgainIsToldTheTruth(t *testing.T) {
	on(t, lateReplies, mariaDB, redisOfPostgreSQL)
}

func lateReplies(t *testing.T, s setup) {
	const late = 3 * time.Second
	d := s.deploy(t, "--answer-wait", "1s")
	d.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	stop := d.claimUntil(crowd, 12)
	defer stop()
	crowd.awaitAnswers(t, 50)
	_, proxy := d.decider()
	proxy.Delay(late)
	waitFor(t, "claims with an unknown outcome", func() bool { return len(crowd.unknown()) >= 24 })
	proxy.Heal()
	crowd.awaitAnswers(t, 100)
	stop()
	unavailable(t, crowd.unknown())
	crowd.askAgain(d.fleet)
	d.drained("spring")
	d.verdict(crowd)
}

// askAgain has each user with an unknown outcome claim until there is an answer, and wants a coupon for each.
func (c *crowd) askAgain(f *fleet) {
	f.t.Helper()
	unknown := map[string]bool{}
	for _, claim := range c.claims {
		if claim.Outcome == 0 {
			unknown[string(claim.User)] = true
		}
	}
	for user := range unknown {
		waitFor(f.t, user+" to be told", func() bool {
			answer, err := c.claim(f.t.Context(), f.node(len(c.claims)).calls, user)
			if err == nil && answer.Coupon == nil {
				f.t.Fatalf("%s asks again and is told %s", user, answer.Outcome)
			}
			return err == nil
		})
	}
}
