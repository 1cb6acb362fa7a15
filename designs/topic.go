package designs

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A Topic is the coupon's topic of one partition. Any goroutine may call its methods.
type Topic struct {
	options  []kgo.Opt
	name     string
	producer *kgo.Client
}

const (
	topicBatch   = 500             // values a poll, as Kafka's Java client has it
	topicTries   = 10              // of a value, as Spring's Kafka has it without settings
	topicSession = 6 * time.Second // after which a dead consumer's partition is another's: the shortest that brokers take
)

// OpenTopic opens the topic of a URL, kafka://HOST:PORT,.../TOPIC. It dials nothing before the first use.
func OpenTopic(at string) (*Topic, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	t := &Topic{name: strings.TrimPrefix(u.Path, "/")}
	// A broker that comes back is found soon.
	t.options = []kgo.Opt{
		kgo.SeedBrokers(strings.Split(u.Host, ",")...), kgo.MetadataMinAge(100 * time.Millisecond), kgo.DialTimeout(500 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 200 * time.Millisecond }),
	}
	t.producer, err = kgo.NewClient(slices.Concat(t.options, []kgo.Opt{kgo.DefaultProduceTopic(t.name), kgo.ProducerLinger(0)})...)
	return t, err
}

// Close ends the producer. A consumer ends with its context.
func (t *Topic) Close() { t.producer.Close() }

// produce appends values in their order, and waits until the broker has them.
func (t *Topic) produce(ctx context.Context, values ...string) error {
	records := make([]*kgo.Record, len(values))
	for n, value := range values {
		records[n] = kgo.StringRecord(value)
	}
	return t.producer.ProduceSync(ctx, records...).FirstErr()
}

// consume handles one value after the other, as the one member of the group that has the partition, until ctx ends. It commits after the values of each
// poll. A value that cannot be handled is skipped after the last try.
func (t *Topic) consume(ctx context.Context, handle func(ctx context.Context, value string) error) error {
	client, err := kgo.NewClient(slices.Concat(t.options, []kgo.Opt{
		kgo.ConsumerGroup(t.name), kgo.ConsumeTopics(t.name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(topicSession), kgo.HeartbeatInterval(topicSession / 6),
	})...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for {
		records := client.PollRecords(ctx, topicBatch).Records() // an error of a fetch: the client asks again
		for _, record := range records {
			for try := 0; try < topicTries && handle(ctx, string(record.Value)) != nil; try++ {
			}
			if ctx.Err() != nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if len(records) > 0 {
			_ = client.CommitRecords(ctx, records...) // otherwise they are handled again after the next rebalance
		}
		client.AllowRebalance()
	}
}
