//go:build linux && !check

package e2e_test

import (
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF47FactsAreAllInTheTopicWhoeverIsKilled has the process that publishes die with facts in the topic that the ledger does not know of, and
// the broker, and others, while coupons are issued. Then the audit reads the topic whole.
func TestF47FactsAreAllInTheTopicWhoeverIsKilled(t *testing.T) {
	t.Run("the broker, too, where MariaDB is ledger and gate", func(t *testing.T) {
		t.Parallel()
		broker := services.Kafka.Server(t)
		topic, err := broker.Database(t.Context())
		stage.Must(t, err)
		p := newPublishing(t, topic, false, withPoints(t))
		stop := p.claimUntil(p.crowd, 8)
		defer stop()
		p.suffers(p.crowd, blow{point.Published, nil})
		p.during(point.Published, func() { stage.Must(t, broker.Kill()) })
		p.crowd.awaitAnswers(t, 50) // nobody who claims waits for Kafka
		stage.Must(t, broker.Restart(t.Context()))
		p.suffers(p.crowd, blow{point.Decided, nil})
		stop()
		p.complete()
	})
	t.Run("where Redis is the gate of PostgreSQL", func(t *testing.T) {
		t.Parallel()
		p := newPublishing(t, services.Kafka.Database(t), true, withPoints(t))
		stop := p.claimUntil(p.crowd, 8)
		defer stop()
		p.suffers(p.crowd, blow{point.Published, nil}, blow{point.Committed, nil}, blow{point.Published, nil}, blow{point.Decided, nil})
		stop()
		p.complete()
	})
}

// A publishing is a fleet that publishes facts to a topic, and who claims there.
type publishing struct {
	*fleet
	ledger, topic string
	crowd         *crowd
}

// newPublishing starts a fleet on MariaDB, or on PostgreSQL behind Redis, with more arguments.
func newPublishing(t *testing.T, topic string, redis bool, more ...string) *publishing {
	t.Helper()
	p := &publishing{topic: topic}
	more = append(more, "--facts", topic)
	if redis {
		p.ledger = services.PostgreSQL.Database(t)
		p.fleet = newFleet(t, p.ledger, services.Redis.Server(t, "--appendfsync", "always").URL(), more...)
	} else {
		p.ledger = services.MariaDB.Database(t)
		p.fleet = newFleet(t, p.ledger, "", more...)
	}
	p.crowd = p.gather("spring", firstcome.Recorded)
	return p
}

// complete waits until all facts are published, and wants that the topic has each.
func (f *publishing) complete() {
	f.t.Helper()
	f.drained("spring")
	waitFor(f.t, "all facts to be published", func() bool {
		_, n := f.publisher()
		return n >= 0 && sum(f.node(0).series("firstcome_facts_lag")) == 0 && f.node(0).series("firstcome_facts_up")[""] == 1
	})
	f.verdict(f.crowd)
	status, out := f.execute("audit", "--ledger", f.ledger, "--facts", f.topic)
	if status != 0 || !strings.Contains(out, "spring in the topic: ") {
		f.t.Errorf("the audit of the topic ends with %d:\n%s", status, out)
	}
	f.t.Log(lastLine(out))
}

// publisher returns the process that publishes facts, as its place among the nodes or among the recorders; -1: none.
func (f *fleet) publisher() (all []*process, n int) {
	for _, all := range [][]*process{f.nodes, f.recorders} {
		for n, p := range all {
			if p.series("firstcome_facts_leader")[""] == 1 {
				return all, n
			}
		}
	}
	return nil, -1
}

func sum(series map[string]float64) (total float64) {
	for _, value := range series {
		total += value
	}
	return total
}
