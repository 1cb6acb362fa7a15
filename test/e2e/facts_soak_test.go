//go:build linux && soak

package e2e_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF47FactsAreAllInTheTopicWhoeverIsKilledAtRandom kills the broker, the process that publishes, and other nodes and recorders, while coupons
// are issued.
func TestF47FactsAreAllInTheTopicWhoeverIsKilledAtRandom(t *testing.T) {
	for name, at := range publishing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, gate := at(t)
			broker := services.Kafka.Server(t)
			topic, err := broker.Database(t.Context())
			stage.Must(t, err)
			f := newFleet(t, ledger, gate, "--facts", topic)
			crowd, random := f.gather("spring", firstcome.Recorded), seed.Rand(t)
			stop := f.claimUntil(crowd, 8)
			defer stop()
			crowd.killWhileIssuing(t, rounds(10, 100), random, func(turn int) {
				switch all, n := f.publisher(); {
				case turn%5 == 0:
					stage.Must(t, broker.Kill())
					crowd.awaitAnswers(t, 50) // nobody who claims waits for Kafka
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
			f.published(crowd, ledger, topic)
		})
	}
}
