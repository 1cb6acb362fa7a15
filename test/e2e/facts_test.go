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

// TestF47FactsAreAllInTheTopicWhoeverIsKilled kills the broker, the node that publishes, and other nodes and recorders, while coupons are
// issued. A kill counts if a coupon was answered within the 50 ms before it. Then the audit reads the topic whole.
func TestF47FactsAreAllInTheTopicWhoeverIsKilled(t *testing.T) {
	for name, servers := range map[string]func() (ledger, gate string){
		"MariaDB is ledger and gate": func() (string, string) { return services.MariaDB.Database(t), "" },
		"Redis is the gate of PostgreSQL": func() (string, string) {
			return services.PostgreSQL.Database(t), services.Redis.Server(t, "--appendfsync", "always").URL()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const fresh = 50 * time.Millisecond
			ledger, gate := servers()
			broker := services.Kafka.Server(t)
			topic, err := broker.Database(t.Context())
			stage.Must(t, err)
			f := newFleet(t, ledger, gate, "--facts", topic)
			f.create("spring", 10_000_000, firstcome.Recorded)
			crowd, random := newCrowd("spring"), seed.Rand(t)
			stop := f.claimUntil(crowd, 8)
			defer stop()
			counted, kills := 0, rounds(10, 100)
			for tried := 0; counted < kills && tried < 3*kills; tried++ {
				crowd.awaitAnswers(t, 50+random.IntN(100))
				if _, last, _ := crowd.answered(); time.Since(last) < fresh {
					counted++
				}
				switch all, n := f.publisher(); {
				case tried%5 == 0:
					stage.Must(t, broker.Kill())
					crowd.awaitAnswers(t, 50) // nobody who claims waits for Kafka
					stage.Must(t, broker.Restart(t.Context()))
				case tried%5 == 1 && len(f.recorders) > 0:
					f.kill(f.recorders, random.IntN(len(f.recorders)), "--role", "recorder")
				case n < 0 || tried%5 == 2:
					f.kill(f.nodes, random.IntN(len(f.nodes)), f.role...)
				case &all[0] == &f.nodes[0]:
					f.kill(all, n, f.role...)
				default:
					f.kill(all, n, "--role", "recorder")
				}
			}
			stop()
			if counted < kills {
				t.Errorf("only %d kills came while coupons were issued, want %d", counted, kills)
			}
			f.drained("spring")
			waitFor(t, "all facts to be published", func() bool {
				_, n := f.publisher()
				return n >= 0 && sum(f.node(0).series("firstcome_facts_lag")) == 0 && f.node(0).series("firstcome_facts_up")[""] == 1
			})
			f.verdict(crowd)
			status, out := f.execute("audit", "--ledger", ledger, "--facts", topic)
			if status != 0 || !strings.Contains(out, "spring in the topic: ") {
				t.Errorf("the audit of the topic ends with %d:\n%s", status, out)
			}
			t.Logf("%d kills counted; %s", counted, out)
		})
	}
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
