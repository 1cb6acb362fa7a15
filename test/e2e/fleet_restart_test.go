//go:build linux

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A brittle is a fleet whose gate is killed, and starts again with what its file has.
type brittle struct {
	*fleet
	gate *services.Server
}

func newBrittle(t *testing.T, sync string) *brittle {
	t.Helper()
	gate := services.Redis.Server(t, "--appendfsync", sync)
	return &brittle{newFleet(t, services.MariaDB.Database(t), gate.URL()), gate}
}

// crash kills the gate, waits until somebody was told so, starts it again, and waits until the crowd is issued coupons. It tells whether
// coupons were issued just before.
func (b *brittle) crash(c *crowd) (counts bool) {
	b.t.Helper()
	const fresh = 50 * time.Millisecond
	before := len(c.unknown())
	_, last, _ := c.answered()
	counts = time.Since(last) < fresh
	stage.Must(b.t, b.gate.Kill())
	waitFor(b.t, "claims that are not decided", func() bool { return len(c.unknown()) > before+4 })
	stage.Must(b.t, b.gate.Restart(b.t.Context()))
	loaded := time.Now()
	c.awaitAnswers(b.t, 1)
	b.t.Logf("%v after Redis has read its file there is the next coupon", time.Since(loaded))
	c.awaitAnswers(b.t, 20)
	return counts
}

// TestF01ARedisThatIsKilledUnderLoadLosesNothingThatItKept kills the Redis of a fleet while coupons are issued, and starts it again on its file. One
// that syncs before it answers is verified: the epoch goes on, and everybody finds their coupon. Of one that syncs once a second nobody
// knows what it lost, so each time a new epoch begins: whoever was answered as recorded finds their coupon, and the others either do, or their
// number is among those that are reported as lost.
func TestF01ARedisThatIsKilledUnderLoadLosesNothingThatItKept(t *testing.T) {
	for _, sync := range []string{"always", "everysec"} {
		for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
			t.Run(sync+", answered when "+string(answer), func(t *testing.T) {
				t.Parallel()
				b, kills, random := newBrittle(t, sync), rounds(3, 30), seed.Rand(t)
				c := b.gather("spring", answer)
				stop := b.claimUntil(c, 6)
				defer stop()
				counted, tried := 0, 0
				for ; counted < kills && tried < 3*kills; tried++ {
					c.awaitAnswers(t, 50+random.IntN(150))
					<-time.After(time.Duration(random.IntN(5000)) * time.Microsecond)
					if b.crash(c) {
						counted++
					}
				}
				stop()
				if counted < kills {
					t.Errorf("of %d kills only %d came while coupons were issued, want %d", tried, counted, kills)
				}
				unavailable(t, c.unknown())
				b.drained("spring")
				at := b.ledgerState("spring")
				switch {
				case sync == "always" && (at.Epoch != 1 || len(at.Lost) > 0):
					t.Errorf("Redis had synced all that it answered, and the ledger has %+v", at)
				case sync != "always" && (at.Epoch != int64(1+tried) || len(at.Lost) == 0):
					t.Errorf("Redis was killed %d times, and the ledger has %+v", tried, at)
				}
				if sync == "always" || answer == firstcome.Recorded {
					c.findAgain(b.node(0)) // with the same number: wereTrue compares
				}
				if left := remaining(t, b.node(0), "spring"); left == 0 {
					t.Error("no stock is left, so the kills do not count")
				}
				b.audit()
				c.forget(b.node(1), answer)
				c.wereTrue(b.node(1))
			})
		}
	}
}
