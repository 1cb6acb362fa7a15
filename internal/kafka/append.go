package kafka

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// mostBytes is the most bytes of records that a client puts into one batch. Brokers accept it by default.
	mostBytes = 1_000_012
	// batchBytes and recordBytes are the most that a batch and each of its records take beside keys, values and headers.
	batchBytes, recordBytes = 100, 40
)

// producing returns the options of a client that appends to the topic. The broker acknowledges a record when all in-sync replicas have it. A record
// on its way is given up after deliveryTime, and when a node stops, although the broker may still take it. A duplicate does no harm here.
func producing(t *topic) []kgo.Opt {
	options := []kgo.Opt{
		kgo.DefaultProduceTopic(t.name), kgo.ProducerLinger(0), kgo.UnknownTopicRetries(0), kgo.RecordDeliveryTimeout(deliveryTime), kgo.AllowIdempotentProduceCancellation(),
		kgo.RetryBackoffFn(retryAfter), kgo.ProducerBatchMaxBytes(mostBytes),
	}
	if t.inOrder {
		options = append(options, kgo.ManualFlushing())
	}
	return options
}

// isTooLarge reports whether a broker refused a batch because of its size, by the topic's max.message.bytes or segment.bytes.
func isTooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// limit returns the most bytes of a batch that the topic takes, as far as known.
func (t *topic) limit() int {
	if most := t.most.Load(); most > 0 {
		return int(most)
	}
	return mostBytes
}

// limits takes the limit from the topic's settings.
func (t *topic) limits(settings map[string]string) {
	most := int64(mostBytes)
	for _, name := range []string{"max.message.bytes", "segment.bytes"} {
		if is, err := strconv.ParseInt(settings[name], 10, 64); err == nil {
			most = min(most, is)
		}
	}
	t.most.Store(max(most, 1))
}

// learn reads the limit from the brokers. The limit stays as it is if they do not tell it, for example because the user lacks the right.
func (t *topic) learn(ctx context.Context, client *kgo.Client) {
	if settings, err := t.settings(ctx, client); err == nil {
		t.limits(settings)
	}
}

// sizeOf returns the most bytes of a batch with these records.
func sizeOf(records []*kgo.Record) int {
	size := batchBytes
	for _, r := range records {
		size += recordBytes + len(r.Key) + len(r.Value)
		for _, h := range r.Headers {
			size += recordBytes + len(h.Key) + len(h.Value)
		}
	}
	return size
}

// fitting returns how many of the first records may be on their way at once: as many as fit into a batch that the topic takes, one at least. If the
// topic takes the client's largest batches, all may.
func (t *topic) fitting(records []*kgo.Record) (count int) {
	limit := t.limit()
	if limit >= mostBytes {
		return len(records)
	}
	size := batchBytes
	for count = range records {
		if size += sizeOf(records[count:count+1]) - batchBytes; size > limit && count > 0 {
			return count
		}
	}
	return len(records)
}

// produce appends records in their order, in batches that the topic takes, and returns the errors of those that were not appended. If a record is too
// large alone, later records of its key are not appended, either. After any other error nothing more is appended.
func (t *topic) produce(ctx context.Context, client *kgo.Client, records []*kgo.Record) (failed map[*kgo.Record]error) {
	failed = map[*kgo.Record]error{}
	for len(records) > 0 {
		group := records[:t.fitting(records)]
		left, why := t.send(ctx, client, group)
		records = slices.Concat(left, records[len(group):])
		if isTooLarge(why) { // the limit becomes smaller than the group: the brokers' setting, or half of the refused size
			t.learn(ctx, client)
			if size := min(sizeOf(group), mostBytes); t.limit() >= size {
				t.most.Store(int64(size / 2))
			}
		}
		if why == nil || isTooLarge(why) && len(group) > 1 {
			continue // what is left comes again, in smaller batches
		}
		records = slices.DeleteFunc(records, func(r *kgo.Record) bool {
			fails := !isTooLarge(why) || string(r.Key) == string(group[0].Key)
			if fails {
				failed[r] = why
			}
			return fails
		})
	}
	return failed
}

// send appends records, and returns those that were not appended, in their order. why is an error of one of them: one that is too large only if the
// others have no other error.
func (t *topic) send(ctx context.Context, client *kgo.Client, records []*kgo.Record) (left []*kgo.Record, why error) {
	errs := make([]error, len(records))
	var done sync.WaitGroup
	done.Add(len(records))
	for n, r := range records {
		client.Produce(ctx, r, func(_ *kgo.Record, err error) { errs[n] = err; done.Done() })
	}
	if t.inOrder {
		_ = client.Flush(context.WithoutCancel(ctx)) // each record has its own error
	}
	done.Wait()
	for n, err := range errs {
		if err != nil {
			left = append(left, records[n])
			if why == nil || isTooLarge(why) {
				why = err
			}
		}
	}
	return left, why
}

// produceSplit appends the records that split returns for a limit of their size. If the topic takes less than that limit, the records are split again,
// and some are appended twice. It returns the records that the topic has.
func (t *topic) produceSplit(ctx context.Context, client *kgo.Client, split func(limit int) ([]*kgo.Record, error)) ([]*kgo.Record, error) {
	records, err := split(t.limit())
	for err == nil {
		failed := t.produce(ctx, client, records)
		first := slices.IndexFunc(records, func(r *kgo.Record) bool { return failed[r] != nil })
		if first < 0 {
			return records, nil
		}
		why, count := failed[records[first]], len(records)
		if records, err = split(t.limit()); err == nil && (!isTooLarge(why) || len(records) == count) {
			err = why
		}
	}
	return nil, err
}
