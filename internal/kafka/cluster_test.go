//go:build !check && (!race || soak)

package kafka_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A load is a gate that issues coupons of the campaign c, a relay that appends each until the topic takes it, and a ledger with as many facts.
type load struct {
	stream
	book *book

	mu      sync.Mutex
	issued  int
	refused int // how often the topic did not take them
}

// run issues until stop is called. stop waits until the topic has all issued coupons.
func (l *load) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			coupons := l.issue("c", 5)
			l.book.issue("c", 5, "u")
			for l.append(context.Background(), record.Batch{Campaign: "c", Coupons: coupons}) != nil {
				l.mu.Lock()
				l.refused++
				l.mu.Unlock()
			}
			l.mu.Lock()
			l.issued += 5
			l.mu.Unlock()
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-done })
}

// counted returns how many coupons the topic has, and how many appends failed.
func (l *load) counted() (issued, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.issued, l.refused
}

// TestF47ALeaderThatIsLostAndTooFewReplicasLoseNothing has three brokers, and coupons and facts on their way to topics with a replica on each. It
// kills the leaders. Then a broker is down whose copy is required, and the topics take nothing until it is back.
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
	t.Cleanup(stop)
	moves := func(what string) {
		t.Helper()
		taken, _ := l.counted()
		recorded, published := len(p.Coupons("c")), publisher.Stats().Published
		stage.Await(t, "coupons and facts "+what, true, func() bool {
			now, _ := l.counted()
			return now > taken+50 && len(p.Coupons("c")) > recorded+50 && publisher.Stats().Published > published+50
		})
	}
	moves("at the beginning")
	for _, at := range topics {
		leads, err := c.Leader(t.Context(), at, 0)
		stage.Must(t, err)
		stage.Must(t, c.Brokers[leads].Kill())
		moves("without the broker that led " + at)
		stage.Must(t, c.Brokers[leads].Restart(t.Context()))
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(topics[0])...))
	stage.Must(t, err)
	defer client.Close()
	stage.Await(t, "topics that need three replicas", true, func() bool {
		answers, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "min.insync.replicas", Value: kadm.StringPtr("3")}}, "waits", "facts")
		return err == nil && !slices.ContainsFunc(answers, func(a kadm.AlterConfigsResponse) bool { return a.Err != nil })
	})
	leads, err := c.Leader(t.Context(), topics[0], 0)
	stage.Must(t, err)
	missing := c.Brokers[(leads+1)%3]
	stage.Must(t, missing.Kill())
	_, before := l.counted()
	failures := publisher.Stats().Failures
	stage.Await(t, "topics that take nothing", true, func() bool {
		_, refused := l.counted()
		return refused > before && publisher.Stats().Failures > failures
	})
	stage.Must(t, missing.Restart(t.Context()))
	moves("with all brokers again")
	stop()
	issued, _ := l.counted()
	stage.Await(t, "what is recorded", issued, func() int { return len(p.Coupons("c")) })
	if p.Refused != nil {
		t.Error(p.Refused)
	}
	r := read(t, topics[1])
	r.until("all facts are published", func() bool { return r.of("c") >= issued })
}
