//go:build !check

package kafka_test

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// limited creates a topic that takes batches of a number of bytes. It keeps them uncompressed, so that their size does not depend on what is in them.
func limited(t *testing.T, bytes int) string {
	t.Helper()
	at, err := services.MakeTopic(t.Context(), services.Kafka.Database(t), services.Unique("limited"), 1,
		map[string]string{"max.message.bytes": strconv.Itoa(bytes), "compression.type": "uncompressed", "retention.ms": "-1"})
	stage.Must(t, err)
	return at
}

// limit changes the number of bytes that a topic takes, and waits until the brokers say so.
func limit(t *testing.T, at string, bytes int) {
	t.Helper()
	u, err := url.Parse(at)
	stage.Must(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...))
	stage.Must(t, err)
	defer client.Close()
	admin, want := kadm.NewClient(client), strconv.Itoa(bytes)
	answers, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &want}}, u.Path[1:])
	stage.Must(t, err)
	stage.Must(t, answers[0].Err)
	stage.Await(t, "the topic's limit", want, func() (is string) {
		all, err := admin.DescribeTopicConfigs(context.Background(), u.Path[1:])
		stage.Must(t, err)
		for _, c := range all[0].Configs {
			if c.Key == "max.message.bytes" {
				is = c.MaybeValue()
			}
		}
		return is
	})
}

// TestF70FactsAreAllPublishedInOrderToATopicWithASmallMessageLimit lowers the limit while a node publishes, until one fact is too large alone.
func TestF70FactsAreAllPublishedInOrderToATopicWithASmallMessageLimit(t *testing.T) {
	t.Parallel()
	at, b := limited(t, 102_400), newBook()
	b.issue("c", 3000, "u")
	b.issue("d", 500, "u")
	node := publish(t, at, b)
	r := read(t, at)
	r.has("c", 3000)
	r.has("d", 500)
	limit(t, at, 10_240)
	b.issue("c", 500, "u")
	r.has("c", 3500)
	limit(t, at, 1000)
	b.issue("d", 3, "u")
	b.issue("d", 1, strings.Repeat("<", 120)) // which JSON writes with six letters each
	b.issue("d", 1, "u")
	b.issue("c", 100, "u")
	r.has("c", 3600)
	r.has("d", 503)
	wantSaid(t, node, "the fact 504 of d is too large", "max.message.bytes")
	if large := node.Stats().TooLarge; !maps.Equal(large, map[firstcome.CampaignID]int64{"d": 504}) || r.of("d") != 503 {
		t.Errorf("the facts that are too large are %v, and the topic has %d of d", large, r.of("d"))
	}
	limit(t, at, 102_400)
	r.has("d", 505)
	stage.Await(t, "facts that are too large", 0, func() int { return len(node.Stats().TooLarge) })
	if n := node.Stats().Failures; n > 0 || r.of("c") != 3600 || r.of("d") != 505 {
		t.Errorf("it failed %d times, and the topic has %d and %d events", n, r.of("c"), r.of("d"))
	}
}

// TestF70ALimitThatIsLoweredBeforeAPassKeepsTheOrder lowers the limit when the node does not know that yet, so that it appends more than the topic takes.
func TestF70ALimitThatIsLoweredBeforeAPassKeepsTheOrder(t *testing.T) {
	t.Parallel()
	at, b := limited(t, 1_048_588), newBook()
	node := publish(t, at, b)
	r := read(t, at)
	for round := range 3 {
		limit(t, at, 1_048_588)
		stage.Await(t, "what the node knows", 1_000_012, node.Limit)
		b.before(func() {
			limit(t, at, 20_480)
			b.issue("c", 5000, "u")
		})
		r.has("c", 5000*(round+1))
	}
	if n := node.Stats().Failures; n > 0 || r.of("c") != len(r.events) {
		t.Errorf("it failed %d times, and the topic has %d events", n, len(r.events))
	}
}

// TestF70CouponsAreAllRecordedThroughATopicWithASmallMessageLimit lowers the limit while a relay appends, until one record is too large alone.
func TestF70CouponsAreAllRecordedThroughATopicWithASmallMessageLimit(t *testing.T) {
	t.Parallel()
	at, g, p := limited(t, 102_400), newRelayed(), stage.NewLedger("c", "d")
	j := stream{open(t, at, g, patient), t, at, g}
	g.record(t, open(t, at, g, patient), p)
	coupons := g.issue("c", 8000)
	for n := range coupons {
		coupons[n].User += firstcome.UserID(strings.Repeat("x", 100))
	}
	stage.Must(t, j.append(t.Context(), record.Batch{Campaign: "c", Coupons: coupons}))
	p.WaitFor(t, 8000)
	limit(t, at, 1000)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 500)))
	garbage := record.Batch{Campaign: "d", Garbage: []record.Garbage{{Source: "redis/d/1-0", Payload: strings.Repeat("x", 5000), Cause: "it is garbage"}}}
	err := j.append(t.Context(), garbage)
	for _, part := range []string{"of d", "MESSAGE_TOO_LARGE", "--add-config max.message.bytes="} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("a record that is too large: %v, which does not say %q", err, part)
		}
	}
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 500)))
	stage.Await(t, "what is recorded", 9000, func() int { return len(p.Coupons("c")) })
	limit(t, at, 102_400)
	stage.Must(t, j.append(t.Context(), garbage))
	stage.Await(t, "what the gate heard", 9000, g.heardThrough("c"))
	stage.Await(t, "dead letters", 1, func() int { return len(p.Letters()) })
	if p.Refused != nil {
		t.Error(p.Refused)
	}
}

// TestF70PlacesAreAllLoggedInATopicWithASmallMessageLimit lowers the limit while places are appended.
func TestF70PlacesAreAllLoggedInATopicWithASmallMessageLimit(t *testing.T) {
	t.Parallel()
	at := limited(t, 10_240)
	s := openLog(t, at)
	log := s.place("c")
	all := places(log, 1, 4000)
	for n := range all {
		all[n].Logged.At = all[0].At // so that they are one record
	}
	s.append("c", all[:3000])
	s.has("c", log, all[:3000])
	limit(t, at, 1000)
	s.append("c", all[3000:])
	s.has("c", log, all)
	limit(t, at, 100)
	if err := s.Append(t.Context(), "c", places(log, 4001, 4001)); !errors.Is(err, firstcome.ErrLineLogAway) || !strings.Contains(err.Error(), "--add-config max.message.bytes=") {
		t.Errorf("a place that is too large: %v", err)
	}
	limit(t, at, 10_240)
	s.append("c", places(log, 4001, 4001))
	s.has("c", log, append(all, places(log, 4001, 4001)...))
}
