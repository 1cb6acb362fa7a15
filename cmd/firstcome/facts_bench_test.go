//go:build !check

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// factsLedger serves a SQLite ledger with the campaign c for b.
func factsLedger(b *testing.B) *ledger.Ledger {
	b.Helper()
	l, err := ledger.Open(b.Context(), filepath.Join(b.TempDir(), "firstcome.db"), ledger.Options{Owner: "a benchmark", Secret: stage.Secret()})
	stage.Must(b, err)
	stage.Serve(b, l)
	stage.Must(b, l.Campaigns.Create(b.Context(), "test", "c", firstcome.Terms{Name: "c", Quantity: 10_000_000, Answer: firstcome.Recorded}))
	return l
}

// issueFacts issues a coupon to each of a number of users, from a first user on.
func issueFacts(b *testing.B, l *ledger.Ledger, from, count int) {
	b.Helper()
	users := make([]firstcome.UserID, 0, count)
	for n := range count {
		users = append(users, firstcome.UserID(fmt.Sprint("u", from+n)))
	}
	for part := range slices.Chunk(users, 500) {
		stage.Must(b, stage.Err(l.Gate.Claim(b.Context(), "c", part)))
	}
}

// publishFacts publishes the facts of a ledger until b ends.
func publishFacts(b *testing.B, l *ledger.Ledger, at string) {
	b.Helper()
	p, err := kafka.NewPublisher(at, kafka.Options{Cursors: l.Followers, Facts: l.Reads.Facts, Terms: l.Reads.Terms, Ledger: l.Identity(), OnFail: func(err error) { b.Log(err) }})
	stage.Must(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
	})
}

// BenchmarkFacts publishes facts from a SQLite ledger to a Kafka of one broker on this machine. It measures how many facts a second of a backlog are
// published, and how late they are at 5,000 a second. Both need an otherwise idle machine.
func BenchmarkFacts(b *testing.B) {
	b.Run("backlog", func(b *testing.B) {
		const facts = 200_000
		for b.Loop() {
			b.StopTimer()
			l, at := factsLedger(b), services.Kafka.Database(b)
			issueFacts(b, l, 0, facts)
			b.StartTimer()
			started := time.Now()
			publishFacts(b, l, at)
			readFacts(b, at, facts, func(kafka.Event) {})
			b.ReportMetric(facts/time.Since(started).Seconds(), "facts/s")
		}
	})
	b.Run("lag", func(b *testing.B) {
		const each, facts = 50, 50_000
		for b.Loop() {
			l, at := factsLedger(b), services.Kafka.Database(b)
			publishFacts(b, l, at)
			go func() {
				tick := time.NewTicker(10 * time.Millisecond)
				defer tick.Stop()
				for n := 0; n < facts; n += each {
					<-tick.C
					issueFacts(b, l, n, each)
				}
			}()
			var lags []time.Duration
			readFacts(b, at, facts, func(e kafka.Event) { lags = append(lags, time.Since(e.Time.Time)) })
			slices.Sort(lags)
			b.ReportMetric(float64(lags[len(lags)/2].Milliseconds()), "p50-ms")
			b.ReportMetric(float64(lags[len(lags)*95/100].Milliseconds()), "p95-ms")
		}
	})
}

// readFacts reads a topic until it has had so many events.
func readFacts(b *testing.B, at string, count int, each func(kafka.Event)) {
	b.Helper()
	u, err := url.Parse(at)
	stage.Must(b, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(u.Host), kgo.ConsumeTopics(u.Path[1:]), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	stage.Must(b, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	for seen := 0; seen < count; {
		fetches := client.PollFetches(ctx)
		stage.Must(b, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			var e kafka.Event
			stage.Must(b, json.Unmarshal(r.Value, &e))
			each(e)
			seen++
		})
	}
}
