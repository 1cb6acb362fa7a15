//go:build linux

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
	for name, at := range publishing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, gate := at(t)
			broker := services.Kafka.Server(t)
			topic, err := broker.Database(t.Context())
			stage.Must(t, err)
			f := newFleet(t, ledger, gate, "--facts", topic, withPoints(t))
			crowd := f.gather("spring", firstcome.Recorded)
			stop := f.claimUntil(crowd, 8)
			defer stop()
			f.suffers(crowd, blow{point.Published, nil}, blow{point.Decided, nil})
			if gate != "" {
				f.suffers(crowd, blow{point.Committed, nil})
			}
			f.during(point.Published, func() { stage.Must(t, broker.Kill()) })
			crowd.awaitAnswers(t, 50) // nobody who claims waits for Kafka
			stage.Must(t, broker.Restart(t.Context()))
			f.suffers(crowd, blow{point.Published, nil})
			stop()
			f.published(crowd, ledger, topic)
		})
	}
}

// publishing are ledgers and gates of fleets that publish facts.
var publishing = map[string]func(t *testing.T) (ledger, gate string){
	"MariaDB is ledger and gate": func(t *testing.T) (string, string) { return services.MariaDB.Database(t), "" },
	"Redis is the gate of PostgreSQL": func(t *testing.T) (string, string) {
		return services.PostgreSQL.Database(t), services.Redis.Server(t, "--appendfsync", "always").URL()
	},
}

// published waits until all facts are published, and wants that the topic has each.
func (f *fleet) published(c *crowd, ledger, topic string) {
	f.t.Helper()
	f.drained("spring")
	waitFor(f.t, "all facts to be published", func() bool {
		_, n := f.publisher()
		return n >= 0 && sum(f.node(0).series("firstcome_facts_lag")) == 0 && f.node(0).series("firstcome_facts_up")[""] == 1
	})
	f.verdict(c)
	status, out := f.execute("audit", "--ledger", ledger, "--facts", topic)
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
