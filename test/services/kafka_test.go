//go:build !check

package services_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

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

// TestAKafkaClusterTakesRecordsWhileTwoOfThreeRun puts records into a topic of three replicas: as its leader is killed, and when one broker
// is left, which must not take any.
func TestAKafkaClusterTakesRecordsWhileTwoOfThreeRun(t *testing.T) {
	c := services.NewKafkaCluster(t)
	at, err := c.MakeTopic(t.Context(), "kept", 1, nil)
	must(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...), kgo.DefaultProduceTopic("kept"), kgo.MetadataMinAge(100*time.Millisecond), kgo.AllowIdempotentProduceCancellation())
	must(t, err)
	defer client.Close()
	put := func() error { return client.ProduceSync(t.Context(), kgo.StringRecord("kept")).FirstErr() }
	must(t, put())
	first, err := c.Leader(t.Context(), at, 0)
	must(t, err)
	must(t, c.Brokers[first].Kill())
	must(t, put())
	second, err := c.Leader(t.Context(), at, 0)
	must(t, err)
	must(t, c.Brokers[second].Kill())
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := client.ProduceSync(short, kgo.StringRecord("kept")).FirstErr(); err == nil {
		t.Error("one broker of three takes a record")
	}
	must(t, c.Brokers[second].Restart(t.Context()))
	must(t, put())
}

// TestASecuredKafkaLetsUsersDoWhatTheyMay writes as a user who may, as one who may not, and as nobody.
func TestASecuredKafkaLetsUsersDoWhatTheyMay(t *testing.T) {
	b := services.SecuredKafka(t)
	_, err := services.MakeTopic(t.Context(), b.Server.URL(), "kept", 1, nil)
	must(t, err)
	must(t, b.User(t.Context(), "writer"))
	must(t, b.User(t.Context(), "other"))
	must(t, b.Let(t.Context(), "writer", "kept", "", kadm.OpDescribe, kadm.OpWrite))
	for user, want := range map[string]bool{"writer": true, "other": false} {
		u, err := url.Parse(b.URL(user, "kept"))
		must(t, err)
		pem, err := os.ReadFile(b.Root)
		must(t, err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		password, _ := u.User.Password()
		client, err := kgo.NewClient(kgo.SeedBrokers(u.Host), kgo.DefaultProduceTopic("kept"), kgo.UnknownTopicRetries(0), kgo.RecordDeliveryTimeout(time.Minute),
			kgo.DialTLSConfig(&tls.Config{RootCAs: roots}), kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
		must(t, err)
		if err := client.ProduceSync(t.Context(), kgo.StringRecord("kept")).FirstErr(); (err == nil) != want {
			t.Errorf("%s: %v", user, err)
		}
		client.Close()
	}
}
