//go:build linux

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// TestF49F53ADatabaseThatIsDownInMidSpikeLosesNothing has the ledger's database
// down for some time while users claim. With a gate of its own a campaign that is
// answered when decided goes on; one that is answered when recorded is unknown
// meanwhile. Afterwards the backlog drains.
func TestF49F53ADatabaseThatIsDownInMidSpikeLosesNothing(t *testing.T) {
	down := time.Duration(rounds(10, 60)) * time.Second
	for _, s := range setups {
		for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
			if !s.redis && answer == firstcome.Decided {
				continue // decided is recorded
			}
			t.Run(s.name+", answered when "+string(answer), func(t *testing.T) {
				t.Parallel()
				d := s.deploy(t)
				d.create("spring", 10_000_000, answer)
				crowd := newCrowd("spring")
				stop := d.claimUntil(crowd, 8)
				defer stop()
				crowd.awaitAnswers(t, 200)
				before, _, _ := crowd.answered()
				d.restart(down)
				during, _, _ := crowd.answered()
				crowd.awaitAnswers(t, 200)
				stop()
				t.Logf("down for %v: %d answers meanwhile; the backlog drained within %v", down, during-before, d.drained("spring"))
				if answer == firstcome.Decided && during-before < 100 {
					t.Errorf("only %d answers came while the database was down", during-before)
				}
				d.verdict(crowd)
			})
		}
	}
}
