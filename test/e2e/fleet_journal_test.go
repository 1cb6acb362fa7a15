//go:build linux

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// waits makes a topic that coupons pass, at a broker.
func waits(t *testing.T, broker *services.Server) string {
	t.Helper()
	at, err := services.MakeTopic(t.Context(), broker.URL(), "waits", 3, map[string]string{"retention.ms": "-1"})
	stage.Must(t, err)
	return at
}

// TestF41F46F47EachCouponIsRecordedOnceThoughItPassesATopicWhoeverIsKilled kills the broker, those who relay and record, nodes, and the
// database, in turn, while coupons are issued. A kill counts if a coupon was answered within the 50 ms before it.
func TestF41F46F47EachCouponIsRecordedOnceThoughItPassesATopicWhoeverIsKilled(t *testing.T) {
	for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
		t.Run(string(answer), func(t *testing.T) {
			t.Parallel()
			const fresh = 50 * time.Millisecond
			broker := services.Kafka.Server(t)
			s := setup{ledger: services.MariaDB, redis: true}
			d := s.deploy(t, "--journal", waits(t, broker))
			d.create("spring", 10_000_000, answer)
			crowd, random := newCrowd("spring"), seed.Rand(t)
			stop := d.claimUntil(crowd, 8)
			defer stop()
			counted, kills := 0, rounds(map[firstcome.AnswerWhen]int{firstcome.Recorded: 8, firstcome.Decided: 14}[answer], 100)
			for tried := 0; counted < kills && tried < 3*kills; tried++ {
				crowd.awaitAnswers(t, 50+random.IntN(100))
				if _, last, _ := crowd.answered(); time.Since(last) < fresh {
					counted++
				}
				switch tried % 4 {
				case 0:
					d.restart(broker, 0)
				case 1, 3:
					d.kill(d.recorders, random.IntN(len(d.recorders)), "--role", "recorder")
				default:
					d.killOne(tried/4, random)
				}
			}
			stop()
			if counted < kills {
				t.Errorf("only %d kills came while coupons were issued, want %d", counted, kills)
			}
			t.Logf("%d kills counted; drained in %v", counted, d.drained("spring"))
			d.verdict(crowd)
		})
	}
}

// TestF47NodesStartWhileKafkaIsAwayAndRelayOnceItIsThere has nodes decide while the broker of the topic does not run, and restarts one of them. All
// that they answered waits at the gate, and is in the ledger once the broker runs.
func TestF47NodesStartWhileKafkaIsAwayAndRelayOnceItIsThere(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	topic := waits(t, broker)
	stage.Must(t, broker.Stop())
	f := setup{ledger: services.MariaDB, redis: true}.fleet(t, "--journal", topic)
	c := f.gather("spring", firstcome.Decided)
	stop := f.claimUntil(c, 4)
	defer stop()
	c.awaitAnswers(t, 50)
	f.kill(f.nodes, 0)
	c.awaitAnswers(t, 50)
	if log := f.node(0).text(); !strings.Contains(log, "the journal needs a look") || !strings.Contains(log, "check hosts and ports") {
		t.Errorf("the log does not say that Kafka is away: %s", log)
	}
	if now := f.node(0).campaign("spring"); now.Recorded != 0 {
		t.Errorf("%d coupons are recorded, though they cannot pass the topic", now.Recorded)
	}
	stage.Must(t, broker.Restart(t.Context()))
	c.awaitAnswers(t, 50)
	stop()
	f.drained("spring")
	f.verdict(c)
}
