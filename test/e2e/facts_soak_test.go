//go:build linux && soak && !race

package e2e_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF47FactsAreAllInTheTopicWhoeverIsKilledAtRandom kills the broker, the process that publishes, and other nodes and recorders, while coupons
// are issued.
func TestF47FactsAreAllInTheTopicWhoeverIsKilledAtRandom(t *testing.T) {
	for name, redis := range map[string]bool{"MariaDB is ledger and gate": false, "Redis is the gate of PostgreSQL": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := services.Kafka.Server(t)
			topic, err := broker.Database(t.Context())
			stage.Must(t, err)
			f, random := newPublishing(t, topic, redis), seed.Rand(t)
			stop := f.claimUntil(f.crowd, 8)
			defer stop()
			f.crowd.killWhileIssuing(t, rounds(10, 100), random, func(turn int) {
				switch all, n := f.publisher(); {
				case turn%5 == 0:
					stage.Must(t, broker.Kill())
					f.crowd.awaitAnswers(t, 50) // nobody who claims waits for Kafka
					stage.Must(t, broker.Restart(t.Context()))
				case turn%5 == 1 && len(f.recorders) > 0:
					f.kill(f.recorders, random.IntN(len(f.recorders)), "--role", "recorder")
				case n < 0 || turn%5 == 2:
					f.kill(f.nodes, random.IntN(len(f.nodes)), f.role...)
				default:
					f.replace(all[n])
				}
			})
			stop()
			f.complete()
		})
	}
}
