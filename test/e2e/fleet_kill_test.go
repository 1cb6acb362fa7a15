//go:build linux && !check

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
)

// blows are what the fleet of a trial suffers.
func (d *deployment) blows(s trial) []blow {
	switch {
	case s.setup == alone:
		return []blow{{point.Decided, nil}, {point.Decided, nil}, {point.Decided, nil}, {point.Decided, nil}}
	case !s.redis:
		return []blow{{point.Decided, nil}, {point.Decided, d.ledger}, {point.Decided, nil}, {point.Decided, d.ledger}}
	case s.ledger == services.PostgreSQL:
		return []blow{{point.Decided, nil}, {point.Given, d.ledger}, {point.Settled, nil}}
	case s.answer == firstcome.Decided:
		return []blow{{point.Decided, nil}, {point.Committed, d.ledger}, {point.Taken, nil}}
	}
	return []blow{{point.Decided, nil}, {point.Taken, d.ledger}, {point.Committed, nil}}
}

// TestF21F41F52F53F55AFleetWhoseProcessesAreKilledInTurnKeepsEveryPromise has nodes and recorders die at points, and the database while one
// stands at a point, while every user asks twice, through different nodes.
func TestF21F41F52F53F55AFleetWhoseProcessesAreKilledInTurnKeepsEveryPromise(t *testing.T) {
	for _, s := range append(trials(), trial{alone, firstcome.Recorded}) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // it waits for what starts again
			d := s.deploy(t, withPoints(t))
			d.outlives(s.answer, d.blows(s)...)
		})
	}
}

// outlives has a fleet suffer blows while it issues coupons, and keep every promise.
func (d *deployment) outlives(answer firstcome.AnswerWhen, blows ...blow) {
	d.t.Helper()
	c := d.gather("spring", answer)
	stop := d.claimUntil(c, 12)
	defer stop()
	d.suffers(c, blows...)
	stop()
	d.survives(c)
}

// survives wants that a fleet kept every promise to its crowd, and has stock left.
func (d *deployment) survives(c *crowd) {
	d.t.Helper()
	d.t.Logf("drained in %v", d.drained(c.campaign))
	if left := remaining(d.t, d.node(0), c.campaign); left == 0 {
		d.t.Error("no stock is left, so the kills do not count")
	}
	if d.ledger == nil {
		c.findAgain(d.node(0))
	}
	d.verdict(c)
}

// TestF11F12F17F52AFleetWhoseRepliesAreLostKeepsEveryPromise cuts and delays the
// connections of nodes and recorders to the gate and to the ledger, and those of clients to nodes. It also
// loses single replies, all while coupons are issued.
func TestF11F12F17F52AFleetWhoseRepliesAreLostKeepsEveryPromise(t *testing.T) {
	for _, s := range trials() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := s.deploy(t)
			crowd := d.gather("spring", s.answer)
			proxies := append(d.proxies(), d.proxied()[0])
			stop := d.claimUntil(crowd, 12)
			defer stop()
			random := seed.Rand(t)
			for _, p := range proxies {
				crowd.awaitAnswers(t, 20)
				lost := p.DropReply(1 + random.IntN(10))
				waitFor(t, "a reply that is lost", func() bool { return isClosed(lost) })
				p.Heal()

				crowd.awaitAnswers(t, 20)
				refused := p.Refused()
				p.Cut()
				waitFor(t, "a connection that is refused", func() bool { return p.Refused() > refused+3 })
				p.Heal()

				crowd.awaitAnswers(t, 20)
				p.Delay(100 * time.Millisecond)
				crowd.awaitAnswers(t, 20)
				p.Heal()
			}
			crowd.awaitAnswers(t, 20)
			stop()
			t.Logf("drained in %v", d.drained("spring"))
			d.verdict(crowd)
		})
	}
}
