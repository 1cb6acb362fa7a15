package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A load is a gate that issues coupons of the campaign c, and a relay that appends them until the topic takes them; and a ledger with as many
// facts.
type load struct {
	stream
	book *book

	mu     sync.Mutex
	issued int
	said   []string // why the topic did not take them
}

// run issues until stop is called, which waits until the topic has what was issued.
func (l *load) run() (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			coupons := l.issue("c", 5)
			l.book.issue("c", 5, "u")
			for l.t.Context().Err() == nil {
				err := l.append(l.t.Context(), flow.Batch{Campaign: "c", Coupons: coupons})
				l.mu.Lock()
				if err == nil {
					l.issued += 5
				} else {
					l.said = append(l.said, err.Error())
				}
				l.mu.Unlock()
				if err == nil {
					break
				}
			}
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-done })
}

// counted returns how many coupons the topic has.
func (l *load) counted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.issued
}

// TestF47ALeaderThatIsLostAndTooFewReplicasLoseNothing has three brokers, and coupons and facts on their way to topics with a replica at each.
// The brokers that lead are killed. Then a broker is missing that has to have each record: the topics take nothing until it is back.
func TestF47ALeaderThatIsLostAndTooFewReplicasLoseNothing(t *testing.T) {
	t.Parallel()
	c := services.NewKafkaCluster(t)
	var topics []string
	for _, name := range []string{"waits", "facts"} {
		at, err := c.MakeTopic(t.Context(), name, 1, map[string]string{"retention.ms": "-1", "min.insync.replicas": "2"})
		stage.Must(t, err)
		topics = append(topics, at)
	}
	g, p := newRelayed(), stage.NewLedger("c")
	l := &load{stream: stream{open(t, topics[0], g, patient), t, topics[0], g}, book: newBook()}
	publisher := publish(t, topics[1], l.book)
	g.record(t, open(t, topics[0], g, patient), p)
	stop := l.run()
	defer stop()
	began := time.Now()
	step := func(what string) {
		fmt.Fprintln(os.Stderr, time.Since(began).Round(time.Millisecond), what, l.counted(), len(p.Coupons("c")), publisher.Stats().Published, publisher.last())
	}
	moves := func(what string) {
		t.Helper()
		step("before " + what)
		defer step("after " + what)
		taken, recorded, published := l.counted(), len(p.Coupons("c")), publisher.Stats().Published
		stage.Await(t, "coupons and facts "+what, true, func() bool {
			return l.counted() > taken+50 && len(p.Coupons("c")) > recorded+50 && publisher.Stats().Published > published+50
		})
	}
	moves("at the beginning")
	for _, at := range topics {
		leads, err := c.Leader(t.Context(), at, 0)
		stage.Must(t, err)
		stage.Must(t, c.Brokers[leads].Kill())
		moves("without the broker that led " + at)
		step("restart")
		stage.Must(t, c.Brokers[leads].Restart(t.Context()))
		step("restarted")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(topics[0])...))
	stage.Must(t, err)
	defer client.Close()
	needs := func(replicas string) {
		t.Helper()
		stage.Await(t, "topics that need "+replicas, true, func() bool {
			answers, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "min.insync.replicas", Value: kadm.StringPtr(replicas)}}, "waits", "facts")
			return err == nil && !slices.ContainsFunc(answers, func(a kadm.AlterConfigsResponse) bool { return a.Err != nil })
		})
	}
	step("needs")
	needs("3")
	step("needs")
	leads, err := c.Leader(t.Context(), topics[0], 0)
	stage.Must(t, err)
	stage.Must(t, c.Brokers[(leads+1)%3].Kill())
	stage.Await(t, "what is said of the topic", true, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.said) > 0 && strings.Contains(publisher.last(), "replicas")
	})
	l.mu.Lock()
	t.Log(l.said, publisher.last())
	l.mu.Unlock()
	stage.Must(t, c.Brokers[(leads+1)%3].Restart(t.Context()))
	moves("with all brokers again")
	stop()
	stage.Await(t, "what is recorded", l.counted(), func() int { return len(p.Coupons("c")) })
	if p.Refused != nil {
		t.Error(p.Refused)
	}
	r := read(t, topics[1])
	r.until("all facts are published", func() bool { return r.of("c") >= l.counted() })
	_ = time.Second
	_ = errors.New
}
