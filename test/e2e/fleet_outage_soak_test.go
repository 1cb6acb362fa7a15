//go:build linux && soak && !race

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// TestF49F53ADatabaseThatIsDownForAMinuteLosesNothing has the database down for a minute on every set-up, with both answers.
func TestF49F53ADatabaseThatIsDownForAMinuteLosesNothing(t *testing.T) {
	down := time.Duration(rounds(4, 60)) * time.Second
	for _, s := range setups {
		for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
			if !s.redis && answer == firstcome.Decided {
				continue // decided is recorded
			}
			t.Run(s.name+", answered when "+string(answer), func(t *testing.T) {
				t.Parallel()
				aDatabaseThatIsDown(t, trial{s, answer}, func() { <-time.After(down) })
			})
		}
	}
}
