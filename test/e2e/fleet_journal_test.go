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
