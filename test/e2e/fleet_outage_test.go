//go:build linux

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// TestF49F53ADatabaseThatIsDownInMidSpikeLosesNothing has the ledger's database
// down for four seconds, in a soak for a minute, while users claim. With a gate of its own a campaign that is
// answered when decided goes on; one that is answered when recorded is unknown
// meanwhile. Afterwards the backlog drains.
func TestF49F53ADatabaseThatIsDownInMidSpikeLosesNothing(t *testing.T) {
	down := time.Duration(rounds(4, 60)) * time.Second
	for _, s := range setups {
		for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
			if !s.redis && answer == firstcome.Decided {
				continue // decided is recorded
			}
			t.Run(s.name+", answered when "+string(answer), func(t *testing.T) {
				t.Parallel()
				d := s.deploy(t, "--answer-wait", "1s") // who waits for the ledger is told before it is back
				d.create("spring", 10_000_000, answer)
				crowd := newCrowd("spring")
				stop := d.claimUntil(crowd, 8)
				defer stop()
				crowd.awaitAnswers(t, 200)
				before, _, _ := crowd.answered()
				d.restart(d.ledger, down)
				during, _, _ := crowd.answered()
				caught := d.catchesUp("spring")
				crowd.awaitAnswers(t, 200)
				stop()
				t.Logf("down for %v: %d answers meanwhile; what was issued by then was recorded %v later, under way; all drained within %v",
					down, during-before, caught, d.drained("spring"))
				if answer == firstcome.Decided && during-before < 100 {
					t.Errorf("only %d answers came while the database was down", during-before)
				}
				d.verdict(crowd)
			})
		}
	}
}

// catchesUp waits until the ledger has what is issued now, while more is, and returns how long that took.
func (f *fleet) catchesUp(id string) time.Duration {
	f.t.Helper()
	started, issued := time.Now(), int64(0)
	waitFor(f.t, "the campaign's counters", func() bool {
		c, err := f.node(0).calls.Campaign(f.t.Context(), id)
		issued = c.Issued
		return err == nil
	})
	f.recorded(id, issued)
	return time.Since(started)
}
