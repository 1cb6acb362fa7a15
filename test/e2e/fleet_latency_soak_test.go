//go:build linux && soak && !race

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// TestF12WhereEveryReplyTakesFiveSecondsClaimsAreUnknownAndThenAsFastAsBefore measures claims before and after replies were late.
// The set-ups run one after the other, because they would slow each other.
func TestF12WhereEveryReplyTakesFiveSecondsClaimsAreUnknownAndThenAsFastAsBefore(t *testing.T) {
	const (
		late   = 5 * time.Second
		slower = 3 // times what 99 of 100 claims took before
	)
	answers := rounds(400, 10_000)
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			d := s.deploy(t)
			d.create("spring", 10_000_000, firstcome.Recorded)
			crowd := newCrowd("spring")
			stop := d.claimUntil(crowd, 12)
			defer stop()
			crowd.awaitAnswers(t, answers/2)
			before := crowd.during(t, answers)
			_, proxy := d.decider()
			proxy.Delay(late)
			from := time.Since(crowd.start)
			waitFor(t, "claims with an unknown outcome", func() bool { return len(crowd.unknown()) > 0 })
			<-time.After(time.Duration(rounds(2, 30)) * time.Second)
			proxy.Heal()
			crowd.awaitAnswers(t, answers/2) // late replies come first
			after := crowd.during(t, answers)
			stop()
			unavailable(t, crowd.unknown())
			if longest := crowd.longestIn(span{from, after.from}); longest > longestAnswer {
				t.Errorf("a claim was answered after %v", longest)
			}
			p99 := [2]time.Duration{crowd.quantile(before, 0.99), crowd.quantile(after, 0.99)}
			if p99[0] == 0 || p99[1] > slower*p99[0] {
				t.Errorf("99 of 100 claims took at most %v before replies were late, and %v after", p99[0], p99[1])
			}
			t.Logf("p99 %v and %v; %d claims unknown; drained in %v", p99[0], p99[1], len(crowd.unknown()), d.drained("spring"))
			d.verdict(crowd)
		})
	}
}

// quantile returns the time that a part of the crowd's answered claims took at most, of those sent in a span.
func (c *crowd) quantile(of span, part float64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var took []time.Duration
	for _, claim := range c.claims {
		if claim.Sent >= of.from && claim.Received <= of.to && claim.Outcome != 0 {
			took = append(took, claim.Received-claim.Sent)
		}
	}
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[int(float64(len(took)-1)*part)]
}

// during returns the time span in which the crowd gets so many more answers.
func (c *crowd) during(t *testing.T, answers int) span {
	t.Helper()
	from := time.Since(c.start)
	c.awaitAnswers(t, answers)
	return span{from, time.Since(c.start)}
}

// longestIn returns the time that the slowest claim took of those sent in a time span, whatever its answer.
func (c *crowd) longestIn(of span) (longest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range c.claims {
		if claim.Sent >= of.from && claim.Sent <= of.to {
			longest = max(longest, claim.Received-claim.Sent)
		}
	}
	return longest
}
