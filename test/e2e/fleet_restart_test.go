//go:build linux && !check

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A brittle is a fleet whose gate is killed, and starts again with what its file has.
type brittle struct {
	*fleet
	gate *services.Server
}

func newBrittle(t *testing.T, sync string, more ...string) *brittle {
	t.Helper()
	gate := services.Redis.Server(t, "--appendfsync", sync)
	return &brittle{newFleet(t, services.MariaDB.Database(t), gate.URL(), more...), gate}
}

// recovers waits until somebody was told that the gate is gone, starts it again, and waits until the crowd is issued coupons.
func (b *brittle) recovers(c *crowd, told int) {
	b.t.Helper()
	waitFor(b.t, "claims that are not decided", func() bool { return len(c.unknown()) > told+4 })
	stage.Must(b.t, b.gate.Restart(b.t.Context()))
	loaded := time.Now()
	c.awaitAnswers(b.t, 1)
	b.t.Logf("%v after Redis has read its file there is the next coupon", time.Since(loaded))
	c.awaitAnswers(b.t, 20)
}

// A keeping is how a Redis syncs its file, and when the coupons that it issues are answered.
type keeping struct {
	sync   string
	answer firstcome.AnswerWhen
}

var keepings = []keeping{{"always", firstcome.Decided}, {"everysec", firstcome.Recorded}, {"everysec", firstcome.Decided}, {"always", firstcome.Recorded}}

// TestF01ARedisThatIsKilledUnderLoadLosesNothingThatItKept kills the Redis of a fleet while coupons are decided that nobody was told of yet, and
// starts it again on its file. One that syncs before it answers is verified: the epoch goes on, and everybody finds their coupon. If a
// Redis syncs once a second, its losses are unknown, so each restart begins a new epoch: users who were answered as recorded find their coupon,
// and the others either do, or their number is reported as lost.
func TestF01ARedisThatIsKilledUnderLoadLosesNothingThatItKept(t *testing.T) {
	for _, k := range keepings[:3] { // the last has less to lose than the first
		t.Run(k.sync+", answered when "+string(k.answer), func(t *testing.T) {
			t.Parallel()
			b := newBrittle(t, k.sync, withPoints(t))
			c := b.gather("spring", k.answer)
			stop := b.claimUntil(c, 6)
			defer stop()
			const kills = 2
			for range kills {
				c.awaitAnswers(t, 50)
				told := 0
				b.during(point.Decided, func() {
					told = len(c.unknown())
					stage.Must(t, b.gate.Kill())
				})
				b.recovers(c, told)
			}
			stop()
			b.kept(c, k, kills)
		})
	}
}

// kept wants that a gate that was killed so often kept what it must, and that no promise was broken.
func (b *brittle) kept(c *crowd, k keeping, kills int) {
	b.t.Helper()
	unavailable(b.t, c.unknown())
	b.drained("spring")
	at := b.ledgerState("spring")
	switch {
	case k.sync == "always" && (at.Epoch != 1 || len(at.Lost) > 0):
		b.t.Errorf("Redis had synced all that it answered, and the ledger has %+v", at)
	case k.sync != "always" && (at.Epoch != int64(1+kills) || len(at.Lost) == 0):
		b.t.Errorf("Redis was killed %d times, and the ledger has %+v", kills, at)
	}
	if k.sync == "always" || k.answer == firstcome.Recorded {
		c.findAgain(b.node(0)) // with the same number: wereTrue compares
	}
	if left := remaining(b.t, b.node(0), "spring"); left == 0 {
		b.t.Error("no stock is left, so the kills do not count")
	}
	b.audit()
	c.forget(b.node(1), k.answer)
	c.wereTrue(b.node(1))
}
