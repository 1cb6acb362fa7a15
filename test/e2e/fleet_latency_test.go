//go:build linux

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// TestF12WhereEveryReplyTakesFiveSecondsClaimsAreUnknownAndThenAsFastAsBefore delays what passes between the nodes and
// the server that decides by five seconds, and then no more. What is decided meanwhile is told by the deadline, as
// unknown or with its outcome, and is the truth later.
func TestF12WhereEveryReplyTakesFiveSecondsClaimsAreUnknownAndThenAsFastAsBefore(t *testing.T) {
	const (
		late   = 5 * time.Second
		slower = 3  // times what 99 of 100 claims took before, in a soak
		busy   = 10 // times what half of them took, where other tests run beside it
	)
	answers := rounds(400, 10_000)
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			if rounds(1, 0) > 0 { // in a soak they would slow each other
				t.Parallel()
			}
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
			waitFor(t, "claims that nobody can tell the outcome of", func() bool { return len(crowd.unknown()) > 0 })
			<-time.After(time.Duration(rounds(2, 30)) * time.Second)
			proxy.Heal()
			crowd.awaitAnswers(t, answers/2) // what was late comes first
			after := crowd.during(t, answers)
			stop()
			unavailable(t, crowd.unknown())
			if longest := crowd.longestIn(span{from, after.from}); longest > longestAnswer {
				t.Errorf("a claim was answered after %v", longest)
			}
			median := [2]time.Duration{crowd.quantile(before, 0.5), crowd.quantile(after, 0.5)}
			if median[0] == 0 || median[1] > busy*median[0] {
				t.Errorf("half of the claims took at most %v before replies were late, and %v after", median[0], median[1])
			}
			p99 := [2]time.Duration{crowd.quantile(before, 0.99), crowd.quantile(after, 0.99)}
			bound := late // else it is still as late as its cause
			if rounds(0, 1) > 0 {
				bound = slower * p99[0]
			}
			if p99[1] >= bound {
				t.Errorf("99 of 100 claims took at most %v before replies were late, and %v after", p99[0], p99[1])
			}
			t.Logf("half within %v before and %v after, p99 %v and %v; %d claims unknown; drained in %v",
				median[0], median[1], p99[0], p99[1], len(crowd.unknown()), d.drained("spring"))
			d.verdict(crowd)
		})
	}
}

// longestIn returns how long the slowest claim took of those sent in a time span, whatever its answer.
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
