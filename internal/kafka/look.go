package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// dialTimeout is the time-out of a new connection.
	dialTimeout = 3 * time.Second
	// askTimeout is the time-out of one request, including the search for a broker that answers.
	askTimeout = 5 * time.Second
)

// A found is the state of a topic by the brokers.
type found struct {
	id           string
	starts, ends []int64 // by partition
	replicas     int     // of the partition with the fewest
	rights       []kadm.ACLOperation
}

// connect returns a client of the topic's brokers that has reached one of them and logged in.
func (t *topic) connect(ctx context.Context, options ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append(append(t.options(), kgo.MetadataMinAge(metadataAge)), options...)...)
	if err != nil {
		return nil, err
	}
	// A client with the usual retries would hide why it cannot connect.
	probe, err := kgo.NewClient(append(t.options(), kgo.RetryTimeout(500*time.Millisecond), kgo.RequestRetries(1))...)
	if err != nil {
		client.Close()
		return nil, err
	}
	defer probe.Close()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := probe.Ping(ctx); err != nil {
		client.Close()
		if t.advice(err) == "" {
			err = fmt.Errorf("%w: name in the URL what the port speaks, kafka:// or, with TLS, kafkas://", err)
		}
		return nil, t.explain(fmt.Errorf("reach Kafka: %w", err))
	}
	return client, nil
}

// look asks the brokers for the topic's state, and for the size of batches that it takes.
func (t *topic) look(ctx context.Context, client *kgo.Client) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	f, err := t.ask(ctx, kadm.NewClient(client))
	if err != nil {
		return f, t.explain(fmt.Errorf("look at the topic %s: %w", t.name, err))
	}
	t.learn(ctx, client)
	return f, nil
}

func (t *topic) ask(ctx context.Context, admin *kadm.Client) (f found, err error) {
	topics, err := admin.ListTopics(kadm.WithAuthorizedOps(ctx), t.name)
	if err != nil {
		return f, err
	}
	detail := topics[t.name]
	if detail.Err != nil {
		return f, detail.Err
	}
	f.id, f.rights = detail.ID.String(), detail.AuthorizedOperations
	f.starts, f.ends = make([]int64, len(detail.Partitions)), make([]int64, len(detail.Partitions))
	for _, p := range detail.Partitions {
		if f.replicas == 0 || len(p.Replicas) < f.replicas {
			f.replicas = len(p.Replicas)
		}
	}
	for into, list := range map[*[]int64]func(context.Context, ...string) (kadm.ListedOffsets, error){&f.starts: admin.ListStartOffsets, &f.ends: admin.ListEndOffsets} {
		listed, err := list(ctx, t.name)
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return f, err
		}
		for partition := range *into {
			offset, ok := listed.Lookup(t.name, int32(partition))
			if !ok {
				return f, fmt.Errorf("its partition %d has no offsets", partition)
			}
			(*into)[partition] = offset.Offset
		}
	}
	return f, nil
}

// readAll calls each with the records of the topic from begin to before end, which have an offset for each partition. The records of a partition come
// in order. If the topic no longer has a begin, that partition is read from its first offset. keep is called after each fetch.
func (t *topic) readAll(ctx context.Context, begin, end []int64, each func(*kgo.Record) error, keep func() error, options ...kgo.Opt) error {
	at, offsets := make([]int64, len(end)), map[int32]kgo.Offset{}
	for p := range end {
		if at[p] = begin[p]; begin[p] < end[p] {
			offsets[int32(p)] = kgo.NewOffset().At(begin[p])
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	options = append(append(t.options(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.name: offsets})), options...)
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for left := len(offsets); left > 0; {
		polling, cancel := context.WithTimeout(ctx, askTimeout)
		fetches := client.PollFetches(polling)
		cancel()
		if err := fetches.Err(); err != nil {
			return t.explain(fmt.Errorf("read the topic %s: %w", t.name, err))
		}
		var failed error
		fetches.EachRecord(func(r *kgo.Record) {
			if p := r.Partition; failed == nil && at[p] < end[p] {
				failed = each(r)
				if at[p] = r.Offset + 1; at[p] >= end[p] {
					left--
				}
			}
		})
		if failed == nil {
			failed = keep()
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// metadataAge is how soon a client asks again where a partition is after it lost a broker.
const metadataAge = 100 * time.Millisecond

// retryAfter is how long a client waits before it repeats a request. franz-go's default grows after each failure, and a member of a group never
// resets it.
func retryAfter(int) time.Duration { return metadataAge }
