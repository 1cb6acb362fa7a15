//go:build linux && soak && !race

package e2e_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF41F46F47EachCouponIsRecordedOnceThoughItPassesATopicWhoeverIsKilledAtRandom kills the broker, those who relay and record, nodes, and the
// database, in turn, while coupons are issued.
func TestF41F46F47EachCouponIsRecordedOnceThoughItPassesATopicWhoeverIsKilledAtRandom(t *testing.T) {
	for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
		t.Run(string(answer), func(t *testing.T) {
			t.Parallel()
			broker := services.Kafka.Server(t)
			d := setup{ledger: services.MariaDB, redis: true}.deploy(t, "--journal", waits(t, broker.URL(), "waits"))
			crowd, random := d.gather("spring", answer), seed.Rand(t)
			stop := d.claimUntil(crowd, 8)
			defer stop()
			crowd.killWhileIssuing(t, rounds(10, 100), random, func(turn int) {
				switch turn % 4 {
				case 0:
					stage.Must(t, broker.Restart(t.Context()))
				case 1, 3:
					d.kill(d.recorders, random.IntN(len(d.recorders)), "--role", "recorder")
				default:
					d.killOne(turn/4, random)
				}
			})
			stop()
			d.survives(crowd)
		})
	}
}
