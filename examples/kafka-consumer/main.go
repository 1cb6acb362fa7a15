// Kafka-consumer keeps a shop's own table of coupons, from the facts in a topic of Kafka. It is a sample: copy it.
//
//	firstcome serve --facts kafka://127.0.0.1:9092/coupons &
//	go run ./examples/kafka-consumer
//
// docs/events.md has the contents of the topic, and what a consumer must do.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	host, _ := os.Hostname()
	var g group
	flag.StringVar(&g.brokers, "brokers", "127.0.0.1:9092", "brokers, HOST:PORT,HOST:PORT")
	flag.StringVar(&g.topic, "topic", "coupons", "the topic of facts")
	flag.StringVar(&g.name, "group", "shop-coupons", "the consumer group: one for each database")
	flag.StringVar(&g.instance, "instance", host, "the name of this process in the group")
	file := flag.String("db", "shop.db", "the shop's database, a file of SQLite")
	flag.Parse()
	shop, err := open(ctx, *file)
	if err != nil {
		return fmt.Errorf("open %s: %w", *file, err)
	}
	defer shop.close()
	client, err := g.join(ctx, shop)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	return consume(ctx, client, shop.take)
}

// A group is who reads a topic, together.
type group struct{ brokers, topic, name, instance string }

// join returns a client that reads on where the shop's database says. Brokers that want TLS or a login need kgo.DialTLSConfig and kgo.SASL
// as well.
func (g group) join(ctx context.Context, s *shop) (*kgo.Client, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(g.brokers, ",")...), kgo.ConsumeTopics(g.topic), kgo.ConsumerGroup(g.name),
		kgo.InstanceID(g.instance),                        // so that a process that was killed is back at once, and not when Kafka misses it
		kgo.AdjustFetchOffsetsFn(s.offsets),               // the database has the offsets, not Kafka
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // an offset that is no longer in the topic: read from the start
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), // a partition goes to another process when its records are taken, not before
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	topics, err := kadm.NewClient(client).ListTopics(ctx, g.topic)
	if err == nil {
		err = topics[g.topic].Err // without this, a missing topic is waited for in silence
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("look for the topic %s at %s: %w", g.topic, g.brokers, err)
	}
	return client, nil
}

// atOnce bounds the records of a transaction. With more, a record is hardly cheaper.
const atOnce = 500

// consume passes records to take until ctx ends, and commits the offsets of each batch to Kafka after take has kept it. An error of take ends it. It
// skips nothing: the next start gets the same records.
func consume(ctx context.Context, client *kgo.Client, take func(context.Context, []*kgo.Record) error) error {
	for {
		fetches := client.PollRecords(ctx, atOnce)
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			log.Printf("read %s/%d: %v", topic, partition, err) // the client goes on by itself, and passes nothing over
		})
		if records := fetches.Records(); len(records) > 0 {
			if err := take(context.WithoutCancel(ctx), records); err != nil {
				return err
			}
			if err := client.CommitRecords(ctx, records...); err != nil { // it is for those who watch the group's lag
				log.Printf("tell Kafka how far this has come: %v", err)
			}
		}
		client.AllowRebalance()
	}
}
