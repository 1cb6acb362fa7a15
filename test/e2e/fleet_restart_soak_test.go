//go:build linux && soak && !race

package e2e_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF01ARedisThatIsKilledAtRandomLosesNothingThatItKept kills the Redis of a fleet while coupons are issued, thirty times.
func TestF01ARedisThatIsKilledAtRandomLosesNothingThatItKept(t *testing.T) {
	for _, k := range keepings {
		t.Run(k.sync+", answered when "+string(k.answer), func(t *testing.T) {
			t.Parallel()
			b := newBrittle(t, k.sync)
			c := b.gather("spring", k.answer)
			stop := b.claimUntil(c, 6)
			defer stop()
			kills := c.killWhileIssuing(t, rounds(3, 30), seed.Rand(t), func(int) {
				told := len(c.unknown())
				stage.Must(t, b.gate.Kill())
				b.recovers(c, told)
			})
			stop()
			b.kept(c, k, kills)
		})
	}
}
