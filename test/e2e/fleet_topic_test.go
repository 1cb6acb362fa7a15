//go:build linux && !check

package e2e_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// relayed returns how many coupons the topic has taken from those who record.
func (f *fleet) relayed() (coupons int) {
	f.t.Helper()
	for _, p := range f.recorders {
		coupons += int(p.metric("firstcome_relayed_coupons_total"))
	}
	return coupons
}

// holders returns how many holders of a campaign a Redis has.
func holders(t *testing.T, at, campaign string) int64 {
	t.Helper()
	keys, err := tellRedis(t, at, "KEYS", "firstcome:{"+campaign+":*}:holders").AsStrSlice()
	stage.Must(t, err)
	if len(keys) != 1 {
		t.Fatalf("the holders of %s are in %v", campaign, keys)
	}
	count, err := tellRedis(t, at, "HLEN", keys[0]).AsInt64()
	stage.Must(t, err)
	return count
}

// TestF02NothingIsLostOfWhatATopicHasThoughReplicasTakeOverThatDoNotKnowIt issues coupons that pass Redis and wait in a topic, since the
// recorders are slow. Twice a replica is promoted that knows none of those that were issued last. All of them were answered as decided, and
// each is in the ledger in the end, under a number that nobody else has.
func TestF02NothingIsLostOfWhatATopicHasThoughReplicasTakeOverThatDoNotKnowIt(t *testing.T) {
	t.Parallel()
	const few, each, most = 5, 2000, 1000 // coupons that a replica knows, and does not know; of a direct issue
	o := byHand(t)
	topic := waits(t, services.Kafka.Database(t), services.Unique("waits-of-takeovers"))
	o.fleet = newFleet(t, services.MariaDB.Database(t), o.gate, "--journal", topic, "--record-rate", "5")
	o.own = o.own[:len(o.own)-2] // of recorders that start later
	c := o.gather("spring", firstcome.Decided)
	o.issue(c, few)
	o.drained("spring")
	p := o.of("spring")
	for turn := 1; turn <= 2; turn++ {
		stage.Must(t, p.Settle(t.Context()))
		stage.Must(t, p.Lag(t.Context()))
		known, before := holders(t, p.Replica.URL(), "spring"), o.relayed()
		for range each / most {
			o.issue(c, most)
		}
		waitFor(t, "all of them in the topic", func() bool { return o.relayed() >= before+each })
		if now := o.node(0).counted("spring"); *now.Issued-now.Recorded < each/2 {
			t.Fatalf("only %d of %d coupons are not recorded, so the topic has too few", *now.Issued-now.Recorded, each)
		}
		if now := holders(t, p.Replica.URL(), "spring"); now != known {
			t.Fatalf("the replica knows %d coupons, and knew %d", now, known)
		}
		o.promote(p)
		t.Logf("a coupon is issued %v after promotion %d", o.issuesAgain(c), turn)
		at, now := o.ledgerState("spring"), o.node(0).campaign("spring")
		if at.Epoch != int64(1+turn) || now.Recorded < int64(few+turn*each) {
			t.Errorf("behind promotion %d the campaign is in epoch %d, and the ledger has %d coupons", turn, at.Epoch, now.Recorded)
		}
		stage.Must(t, p.Rejoin(t.Context()))
	}
	for n := range o.recorders {
		o.kill(o.recorders, n, "--role", "recorder")
	}
	o.drained("spring")
	o.verdict(c)
}

// TestF18F41ARelayThatIsFrozenWhileTheGateIsRebuiltAddsNothing has a process stop itself before it appends to the topic, and when the topic
// has what it relayed and the journal has it, too. An operator has the gate rebuilt, twice, others go on, and then it does what it was about to do.
func TestF18F41ARelayThatIsFrozenWhileTheGateIsRebuiltAddsNothing(t *testing.T) {
	for _, at := range []point.Point{point.Taken, point.Relayed} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			r := &pointRound{fleet: withTopics[0].single(t), fault: "stop", passes: 1, answer: firstcome.Decided}
			h, id := r.reach(at), string(at)
			for epoch := int64(2); epoch <= 3; epoch++ {
				stage.Must(t, r.insist(func() error { return rebuild(t.Context(), r.node(0).calls, id, 0) }))
				stop := r.claimUntil(h.crowd, 4)
				h.crowd.awaitAnswers(t, 20)
				stop()
				if at := r.ledgerState(id); at.Epoch != epoch {
					t.Fatalf("the campaign is in epoch %d, want %d", at.Epoch, epoch)
				}
			}
			r.hits = []*hit{h}
			r.thaw()
			stop := r.claimUntil(h.crowd, 4)
			h.crowd.awaitAnswers(t, 20)
			stop()
			r.verdict()
		})
	}
}
