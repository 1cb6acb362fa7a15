//go:build linux && soak && !race

package e2e_test

import (
	"testing"
	"time"
)

// longestAnswer is the time that docs/limits.md gives every answer while a server hangs.
const longestAnswer = 15 * time.Second

// TestF09F53WhileAServerHangsNoAnswerTakesLongerThanTheLimit freezes each server of every set-up.
func TestF09F53WhileAServerHangsNoAnswerTakesLongerThanTheLimit(t *testing.T) {
	for _, which := range []string{theLedger, theGate} {
		for _, s := range setups {
			if which == theGate && !s.redis {
				continue
			}
			t.Run(s.name+", "+which+" hangs", func(t *testing.T) {
				t.Parallel()
				aServerHangs(t, s, which, longestAnswer)
			})
		}
	}
}
