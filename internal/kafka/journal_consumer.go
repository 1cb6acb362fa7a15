package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/wait"
)

// silence is how long a recorder may send no heartbeat before other recorders get its partitions: the shortest time that brokers accept by default.
const silence = 6 * time.Second

// A consumer is one Watch's member of the recorders' group.
type consumer struct {
	*Journal
	ready  func(firstcome.CampaignID)
	client *kgo.Client
	cut    func() // cancels all requests of the client
	id     string // of the topic
}

// consume joins the consumer group of the current topic. A partition without a committed offset is read from its first record. So is a partition
// whose records the brokers have lost, which also raises an alarm. Nothing is ever skipped.
func (j *Journal) consume(ctx context.Context, ready func(firstcome.CampaignID)) (*consumer, error) {
	if err := j.refresh(ctx); err != nil {
		return nil, err
	}
	if _, _, err := j.uncommitted(ctx); err != nil { // the client itself does not report lost records
		return nil, err
	}
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	c := &consumer{Journal: j, ready: ready, cut: cut}
	_, c.id = j.Topic()
	client, err := kgo.NewClient(append(j.topic.options(), kgo.WithContext(life), kgo.MetadataMinAge(metadataAge), kgo.RetryBackoffFn(retryAfter),
		kgo.ConsumerGroup(groupOf(j.options.Name, c.id)), kgo.ConsumeTopics(j.topic.name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.FetchMaxBytes(inHand/8), kgo.FetchMaxWait(pollTime),
		kgo.SessionTimeout(silence), kgo.HeartbeatInterval(silence/6), kgo.RebalanceTimeout(silence),
		kgo.OnPartitionsRevoked(c.revoked), kgo.OnPartitionsLost(c.lost))...)
	if err != nil {
		cut()
		return nil, err
	}
	c.client = client
	return c, nil
}

// revoked commits finished records of partitions that another recorder gets now.
func (c *consumer) revoked(ctx context.Context, _ *kgo.Client, revoked map[string][]int32) {
	_ = c.commit(ctx) // otherwise the next recorder repeats them
	c.drop(revoked[c.topic.name])
}

// lost forgets records of partitions that another recorder may have had for some time.
func (c *consumer) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	c.drop(lost[c.topic.name])
}

// leave commits finished records and leaves the group, so that other recorders get the partitions at once.
func (c *consumer) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	_ = c.commit(ctx)
	c.client.AllowRebalance()
	_ = c.client.LeaveGroupContext(ctx)
	c.cut() // Close would wait for a broker that hangs
	c.client.Close()
	c.mu.Lock()
	numbers := slices.Collect(maps.Keys(c.partitions))
	c.mu.Unlock()
	c.drop(numbers)
}

// commit commits the offsets of finished records.
func (c *consumer) commit(ctx context.Context) error {
	due := c.commits()
	if len(due) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := c.client.CommitRecords(ctx, due...)
	if err == nil {
		c.noted(due)
	}
	return err
}

// read reads records, and commits finished ones, until ctx ends.
func (c *consumer) read(ctx context.Context) error {
	for noted := time.Now(); ctx.Err() == nil; {
		if time.Since(noted) > commitEvery {
			noted = time.Now()
			if err := c.commit(ctx); err != nil && ctx.Err() == nil {
				c.alarms.Raise("", fmt.Errorf("offsets of recorded coupons cannot be committed in Kafka, so they are read again after the next rebalance: %w", c.topic.explain(err)))
			}
		}
		if c.full() {
			_ = wait.Sleep(ctx, pollTime)
			continue
		}
		if err := c.poll(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// poll reads records once. An error means that this client can read no more.
func (c *consumer) poll(ctx context.Context) error {
	polling, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	fetches := c.client.PollRecords(polling, recordsAtOnce)
	defer c.client.AllowRebalance()
	var failed error
	fetches.EachError(func(_ string, number int32, err error) {
		var loss *kgo.ErrDataLoss
		switch {
		case errors.As(err, &loss):
			c.alarms.Raise("", fmt.Errorf("%w: the partition %d of the topic %s is read again from offset %d on: %w", errLost, number, c.topic.name, loss.ResetTo, err))
		case errors.As(err, new(*kgo.ErrGroupSession)) || isAway(err) && !errors.Is(err, polling.Err()): // the client joins again by itself; a new client would have to wait until the old member times out
			c.alarms.Raise("", c.topic.explain(fmt.Errorf("read the topic %s: %w", c.topic.name, err)))
		case !errors.Is(err, polling.Err()):
			failed = err
		}
	})
	c.add(fetches.Records())
	return failed
}
