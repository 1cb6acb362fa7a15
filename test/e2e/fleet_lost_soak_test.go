//go:build linux && soak && !race

package e2e_test

import (
	"testing"

	"github.com/firstcome/firstcome"
)

// TestF05F07AGateLosesWhatItHasAgainAndAgain runs these stories with both answers, many times.
func TestF05F07AGateLosesWhatItHasAgainAndAgain(t *testing.T) {
	for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
		for _, h := range hollowings {
			for range rounds(1, 10) {
				t.Run(h.name+", answered when "+string(answer), func(t *testing.T) {
					t.Parallel()
					h.issuesNothing(t, answer)
				})
			}
		}
		t.Run("keys, answered when "+string(answer), func(t *testing.T) {
			t.Parallel()
			losesKeys(t, answer, rounds(3, 60))
		})
	}
}
