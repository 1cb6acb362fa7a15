//go:build linux && !check

package e2e_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// waits makes a topic that coupons pass, at the broker of a URL.
func waits(t *testing.T, at, name string) string {
	t.Helper()
	at, err := services.MakeTopic(t.Context(), at, name, 3, map[string]string{"retention.ms": "-1"})
	stage.Must(t, err)
	awaitGroups(t, at)
	return at
}

// awaitGroups waits until a broker knows consumers' groups: it makes a topic for them when it is first asked. A node that starts before gives up
// after seconds.
func awaitGroups(t *testing.T, at string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...))
	stage.Must(t, err)
	defer client.Close()
	waitFor(t, "the groups of Kafka", func() bool {
		return kadm.NewClient(client).FindGroupCoordinators(t.Context(), "nobody").Error() == nil
	})
}

// TestF41F46F47EachCouponIsRecordedOnceThoughItPassesATopicWhoeverIsKilled has those who relay and record die at points, and nodes, and the broker
// or the database while one stands at a point, while coupons are issued.
func TestF41F46F47EachCouponIsRecordedOnceThoughItPassesATopicWhoeverIsKilled(t *testing.T) {
	behind := setup{ledger: services.MariaDB, redis: true}
	t.Run("the broker, too, answered when recorded", func(t *testing.T) {
		t.Parallel()
		broker := services.Kafka.Server(t)
		d := behind.deploy(t, withPoints(t), "--journal", waits(t, broker.URL(), "waits"))
		d.outlives(firstcome.Recorded, blow{point.Relayed, broker}, blow{point.Relayed, nil}, blow{point.Committed, nil})
	})
	t.Run("the ledger, too, answered when decided", func(t *testing.T) {
		t.Parallel()
		d := behind.deploy(t, withPoints(t), "--journal", waits(t, services.Kafka.Database(t), services.Unique("waits-of-the-killed")))
		d.outlives(firstcome.Decided, blow{point.Taken, nil}, blow{point.Given, d.ledger}, blow{point.Settled, nil}, blow{point.Decided, nil})
	})
}

// TestF47NodesStartWhileKafkaIsAwayAndRelayOnceItIsThere has nodes decide while the broker of the topic does not run, and restarts one of them. All
// that they answered waits at the gate, and is in the ledger once the broker runs.
func TestF47NodesStartWhileKafkaIsAwayAndRelayOnceItIsThere(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	topic := waits(t, broker.URL(), "waits")
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
