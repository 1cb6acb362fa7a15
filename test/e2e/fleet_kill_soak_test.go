//go:build linux && soak && !race

package e2e_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
)

// A kill at a random moment counts if a coupon was issued so shortly before it.
const fresh = 50 * time.Millisecond

// killWhileIssuing kills at random moments until so many kills counted. It fails if they do not within ten times as many.
func (c *crowd) killWhileIssuing(t *testing.T, kills int, random *rand.Rand, kill func(turn int)) (turns int) {
	t.Helper()
	counted := 0
	for ; counted < kills && turns < 10*kills; turns++ {
		c.awaitAnswers(t, 50+random.IntN(150))
		<-time.After(time.Duration(random.IntN(5000)) * time.Microsecond)
		if _, last, _ := c.answered(); time.Since(last) < fresh {
			counted++
		}
		kill(turns)
	}
	if counted < kills {
		t.Errorf("of %d kills only %d came while coupons were issued, want %d", turns, counted, kills)
	}
	return turns
}

// killOne kills a node, the database, one who records, or the gate where that may be, in turn.
func (d *deployment) killOne(turn int, random *rand.Rand) {
	switch {
	case d.killable && turn%4 == 3:
		d.restart(d.gate, 0)
	case d.ledger != nil && turn%3 == 1:
		d.restart(d.ledger, 0)
	case len(d.recorders) > 0 && turn%3 == 2:
		d.kill(d.recorders, random.IntN(len(d.recorders)), "--role", "recorder")
	default:
		d.kill(d.nodes, random.IntN(len(d.nodes)), d.role...)
	}
}

// TestF21F41F52F53F55AFleetWhoseProcessesAreKilledAtRandomKeepsEveryPromise kills nodes, recorders and the database while every user asks
// twice, through different nodes: twenty of each kind, and a single server on SQLite two hundred times.
func TestF21F41F52F53F55AFleetWhoseProcessesAreKilledAtRandomKeepsEveryPromise(t *testing.T) {
	for _, s := range append(trials(), trial{alone, firstcome.Recorded}) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			random, kills := seed.Rand(t), rounds(6, 60)
			if s.setup == alone {
				kills = rounds(20, 200)
			}
			d := s.deploy(t)
			crowd := d.gather("spring", s.answer)
			stop := d.claimUntil(crowd, 12)
			defer stop()
			crowd.killWhileIssuing(t, kills, random, func(turn int) { d.killOne(turn, random) })
			crowd.awaitAnswers(t, 50)
			stop()
			d.survives(crowd)
		})
	}
}

// TestF11F12F17F52AFleetWhoseRepliesAreLostAtRandomKeepsEveryPromise cuts, delays and loses replies as its namesake does, for random times.
func TestF11F12F17F52AFleetWhoseRepliesAreLostAtRandomKeepsEveryPromise(t *testing.T) {
	for _, s := range trials() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := s.deploy(t)
			crowd := d.gather("spring", s.answer)
			proxies := append(d.proxies(), d.proxied()[0])
			stop := d.claimUntil(crowd, 12)
			defer stop()
			random := seed.Rand(t)
			for turn := range rounds(3*len(proxies), 200) {
				crowd.awaitAnswers(t, 20)
				harm(proxies[turn%len(proxies)], turn/len(proxies), random)
			}
			crowd.awaitAnswers(t, 20)
			stop()
			t.Logf("drained in %v", d.drained("spring"))
			d.verdict(crowd)
		})
	}
}

// harm injects one kind of fault, and heals it.
func harm(p *services.Proxy, kind int, random *rand.Rand) {
	switch kind % 3 {
	case 0:
		select {
		case <-p.DropReply(1 + random.IntN(10)):
		case <-time.After(time.Second):
		}
	case 1:
		p.Cut()
		<-time.After(200 * time.Millisecond)
	case 2:
		p.Delay(100 * time.Millisecond)
		<-time.After(time.Second)
	}
	p.Heal()
}
