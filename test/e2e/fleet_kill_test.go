//go:build linux

package e2e_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
)

// TestF21F41F52F53F55AFleetWhoseProcessesAreKilledInTurnKeepsEveryPromise kills nodes,
// recorders and the database with SIGKILL while every user asks twice, through
// different nodes. A kill counts if a coupon was answered within the 50 ms before it
// and stock was left after it. There are two of each kind, in a soak twenty; a single server on SQLite is killed
// twenty times.
func TestF21F41F52F53F55AFleetWhoseProcessesAreKilledInTurnKeepsEveryPromise(t *testing.T) {
	const clients, fresh = 12, 50 * time.Millisecond
	for _, s := range append(trials(), trial{alone, firstcome.Recorded}) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()                                 // it waits for what starts again
			kills, random := rounds(6, 60), seed.Rand(t) // each kind of process twice
			if s.setup == alone {
				kills = rounds(20, 200)
			}
			d := s.deploy(t)
			d.create("spring", 10_000_000, s.answer)
			crowd := newCrowd("spring")
			stop := d.claimUntil(crowd, clients)
			defer stop()
			counted, tried := 0, 0
			for ; counted < kills && tried < 3*kills; tried++ {
				crowd.awaitAnswers(t, 50+random.IntN(200))
				<-time.After(time.Duration(random.IntN(5000)) * time.Microsecond)
				if _, last, _ := crowd.answered(); time.Since(last) < fresh {
					counted++
				}
				d.killOne(tried, random)
			}
			crowd.awaitAnswers(t, 50)
			stop()
			if counted < kills {
				t.Errorf("of %d kills only %d came while coupons were issued, want %d", tried, counted, kills)
			}
			t.Logf("%d kills counted; drained in %v", counted, d.drained("spring"))
			if left := remaining(t, d.node(0), "spring"); left == 0 {
				t.Error("no stock is left, so the kills do not count")
			}
			if s.setup == alone {
				crowd.findAgain(d.node(0))
			}
			d.verdict(crowd)
		})
	}
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

// TestF11F12F17F52AFleetWhoseRepliesAreLostKeepsEveryPromise cuts and delays the
// connections of nodes and recorders to the gate and to the ledger, and those of clients to nodes. It also
// loses single replies, all while coupons are issued.
func TestF11F12F17F52AFleetWhoseRepliesAreLostKeepsEveryPromise(t *testing.T) {
	for _, s := range trials() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := s.deploy(t)
			d.create("spring", 10_000_000, s.answer)
			proxies := append(d.proxies(), d.proxied()[0])
			crowd := newCrowd("spring")
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
