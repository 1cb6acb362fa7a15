package services_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome/test/services"
)

// TestAKilledKafkaComesBackWithItsTopic puts a record into a topic, ends the broker in both ways, and reads the record.
func TestAKilledKafkaComesBackWithItsTopic(t *testing.T) {
	server := services.Kafka.Server(t)
	at, err := server.Database(t.Context())
	must(t, err)
	u, err := url.Parse(at)
	must(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(u.Host), kgo.ConsumeTopics(u.Path[1:]), kgo.DefaultProduceTopic(u.Path[1:]))
	must(t, err)
	defer client.Close()
	must(t, client.ProduceSync(t.Context(), kgo.StringRecord("kept")).FirstErr())
	must(t, server.Kill())
	must(t, server.Restart(t.Context()))
	must(t, server.Stop())
	must(t, server.Restart(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fetches := client.PollFetches(ctx)
	must(t, fetches.Err())
	if got := string(fetches.Records()[0].Value); got != "kept" {
		t.Fatalf("the topic has %q", got)
	}
	must(t, services.DropTopic(t.Context(), at))
}

// TestTestsShareABroker makes topics of two tests at one broker.
func TestTestsShareABroker(t *testing.T) {
	first, second := services.Kafka.Database(t), services.Kafka.Database(t)
	a, err := url.Parse(first)
	must(t, err)
	b, err := url.Parse(second)
	must(t, err)
	if a.Host != b.Host || a.Path == b.Path {
		t.Fatalf("%s and %s", first, second)
	}
}
