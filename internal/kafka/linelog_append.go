package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
)

// joinTime is how long the topic may take to append the places of a batch of claims. If it takes longer, the callers of that batch wait no longer
// than this, and for joinRest the next batches do not wait at all.
const joinTime, joinRest = 2 * time.Second, time.Second

// An appendRest makes appends fail at once while a partition takes no records.
type appendRest struct {
	until time.Time
	why   error
}

// Append appends records of a campaign: see line.Log. It takes no longer than joinTime. After a partition took no records, appends to it fail at
// once for joinRest, with the same error.
func (l *LineLog) Append(ctx context.Context, id firstcome.CampaignID, records []line.Record) error {
	if len(records) == 0 {
		return nil
	}
	log := records[0].LineLog
	client, err := l.takes(id, log)
	if err != nil {
		return err
	}
	all, err := l.append(ctx, client, id, records)
	if err != nil {
		err = away(l.topic.explain(fmt.Errorf("append %d places of %s to the topic %s: %w", len(records), id, l.topic.name, err)))
		if ctx.Err() == nil { // otherwise the caller's time ran out, which need not be the topic's fault
			if !isTooLarge(err) {
				l.fails(log.Partition, err)
			}
			l.alarms.Raise(id, err)
		}
		return err
	}
	for _, r := range all {
		if first := log.First; r.Offset < first {
			err := lostLog(id, "a place was appended at offset %d of the partition %d of the topic %s, and the epoch's records begin at %d: Kafka has lost records, or the topic was recreated",
				r.Offset, log.Partition, l.topic.name, first)
			l.alarms.Raise(id, err)
			return err
		}
	}
	return nil
}

// append appends places, and returns the records that the topic has. It gives up after joinTime: then some of them may be in the topic, or may still be
// appended.
func (l *LineLog) append(ctx context.Context, client *kgo.Client, id firstcome.CampaignID, places []line.Record) ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	type result struct {
		all []*kgo.Record
		err error
	}
	done := make(chan result, 1)
	go func() {
		all, err := l.topic.produceSplit(ctx, client, func(limit int) ([]*kgo.Record, error) { return lineRecordsOf(id, places, limit), nil })
		done <- result{all, err}
	}()
	select {
	case is := <-done:
		return is.all, is.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// takes returns the client that appends to a log, or why nothing may be appended now.
func (l *LineLog) takes(id firstcome.CampaignID, log firstcome.LineLog) (*kgo.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch rest := l.rests[log.Partition]; {
	case l.client == nil:
		return nil, away(fmt.Errorf("the topic %s is not found yet", l.topic.name))
	case log.Topic != l.id:
		return nil, l.topic.another(l.id, id, log)
	case l.gone[id] != nil:
		return nil, l.gone[id]
	case time.Now().Before(rest.until):
		return nil, rest.why
	}
	return l.client, nil
}

// fails makes appends to a partition fail for joinRest.
func (l *LineLog) fails(partition int32, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rests[partition] = appendRest{time.Now().Add(joinRest), why}
}
