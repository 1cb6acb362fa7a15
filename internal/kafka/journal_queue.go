package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
)

// A partition has the records of a partition that a recorder has read and not committed, in the order of offsets. A record may be done while an
// earlier record of another campaign is not. The journal's mutex guards it.
type partition struct {
	pending []*pending
	done    *kgo.Record // the record up to which all are done, if that is not committed yet
}

// A pending is a record that must be recorded.
type pending struct {
	record *kgo.Record
	over   bool // it is recorded, or another recorder has its partition
}

// A queue has the records of one campaign that must be recorded. The journal's mutex guards records, tell and gone. Only the worker that has the
// campaign uses the other fields.
type queue struct {
	id      firstcome.CampaignID
	records []*pending
	tell    bool // the gate must be told how far the campaign is drained
	gone    bool // the gate has issued numbers that neither its journal nor the topic has

	campaignUID string    // the campaign's UID by the ledger; empty if the ledger does not have the campaign
	asked       time.Time // when the ledger was asked for it
	unreported  time.Time // when a report to the gate last failed
}

// queue returns the queue of a campaign.
func (j *Journal) queue(id firstcome.CampaignID) *queue {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queueOf(id)
}

// queueOf returns the queue of a campaign. mu is held.
func (j *Journal) queueOf(id firstcome.CampaignID) *queue {
	q := j.queues[id]
	if q == nil {
		q = &queue{id: id}
		j.queues[id] = q
	}
	return q
}

// add puts new records into the queues of their campaigns. A record without a campaign is done at once.
func (c *consumer) add(records []*kgo.Record) {
	j := c.Journal
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range records {
		p := j.partitions[r.Partition]
		if p == nil {
			p = &partition{}
			j.partitions[r.Partition] = p
		}
		one := &pending{record: r}
		p.pending = append(p.pending, one)
		j.bytes += len(r.Value)
		id, err := firstcome.ParseCampaignID(string(r.Key))
		if err != nil {
			one.over = true
			continue
		}
		q := j.queueOf(id)
		q.records = append(q.records, one)
		c.ready(id)
	}
}

// done notes that records are recorded, or are not for this recorder.
func (j *Journal) done(records []*pending) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range records {
		one.over = true
	}
}

// drop forgets the records of partitions that another recorder gets now.
func (j *Journal) drop(numbers []int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, number := range numbers {
		if p := j.partitions[number]; p != nil {
			for _, one := range p.pending {
				j.bytes -= len(one.record.Value)
				one.over = true
			}
			delete(j.partitions, number)
		}
	}
}

// commits returns, for each partition, the last record up to which all are done, if that is not committed yet.
func (j *Journal) commits() (due []*kgo.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.partitions {
		for len(p.pending) > 0 && p.pending[0].over {
			p.done = p.pending[0].record
			j.bytes -= len(p.done.Value)
			p.pending[0], p.pending = nil, p.pending[1:]
		}
		if p.done != nil {
			due = append(due, p.done)
		}
	}
	return due
}

// noted notes that offsets are committed.
func (j *Journal) noted(records []*kgo.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range records {
		if p := j.partitions[r.Partition]; p != nil && p.done == r {
			p.done = nil
		}
	}
}

// full reports whether the records in hand exceed inHand, so that no more may be read.
func (j *Journal) full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes > inHand
}

// notes sets a flag of a queue.
func (j *Journal) notes(flag *bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	*flag = true
}

// takes returns whether a flag of a queue was set, and clears it.
func (j *Journal) takes(flag *bool) (was bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	was, *flag = *flag, false
	return was
}

// A share is a batch and its records. A pointer to it is the batch's receipt.
type share struct {
	record.Batch
	records []*pending
}

// recordsAtOnce is the most records of one batch, which is enough for two thousand coupons in records of one coupon each.
const recordsAtOnce = 2000

// first returns a campaign's first records.
func (j *Journal) first(q *queue) []*pending {
	j.mu.Lock()
	defer j.mu.Unlock()
	q.records = slices.DeleteFunc(q.records, func(p *pending) bool { return p.over })
	return slices.Clone(q.records[:min(len(q.records), recordsAtOnce)])
}

// share returns a campaign's first records as a batch of one epoch, with about as many coupons as are recorded at once. Without records the share is
// empty.
func (j *Journal) share(ctx context.Context, q *queue) (*share, error) {
	all := &share{Batch: record.Batch{Campaign: q.id}}
	for records := j.first(q); len(records) > 0 && len(all.records) == 0; records = j.first(q) {
		for _, one := range records {
			b, err := j.read(ctx, q, one.record)
			switch {
			case errors.Is(err, errForeign):
				j.done([]*pending{one})
				continue
			case err != nil && len(all.records) == 0:
				return all, err
			case err != nil, len(all.records) > 0 && (len(all.Coupons)+len(b.Coupons) > j.options.Coupons || !all.joins(b)):
				return all, nil // this record comes in the next batch
			}
			all.CampaignUID, all.Epoch = b.CampaignUID, max(all.Epoch, b.Epoch)
			all.Coupons = append(all.Coupons, b.Coupons...)
			slices.SortStableFunc(all.Coupons, byNumber)
			all.Coupons = slices.Compact(all.Coupons) // a relay may have appended them twice
			all.Garbage = append(all.Garbage, b.Garbage...)
			all.Line.Add(b.Line)
			all.records = append(all.records, one)
		}
	}
	return all, nil
}

// joins reports whether a batch may be recorded together with p. A batch without an epoch has no coupons.
func (p *share) joins(b record.Batch) bool {
	return p.CampaignUID == b.CampaignUID && (p.Epoch == b.Epoch || p.Epoch == 0 || b.Epoch == 0)
}

func byNumber(a, b firstcome.Coupon) int { return int(min(max(a.Number-b.Number, -1), 1)) }

// errForeign means that a record belongs to another ledger or secret, whose recorders are another group.
var errForeign = errors.New("it belongs to another ledger or secret")

// read returns the batch of a record. A record that cannot be read becomes garbage. So does a record whose UID belongs to this ledger although the
// ledger does not have the campaign: a dead letter then keeps the record.
func (j *Journal) read(ctx context.Context, q *queue, r *kgo.Record) (record.Batch, error) {
	b, err := readBatch(j.options.Secret, r)
	newer := errors.Is(err, errNewer)
	says := err == nil || newer // the record has a UID
	if says && b.CampaignUID != q.campaignUID || !says && q.campaignUID == "" {
		if err := j.ask(ctx, q); err != nil {
			return b, err
		}
	}
	switch {
	case says && b.CampaignUID != q.campaignUID && !j.options.Owns(b.CampaignUID):
		return b, errForeign
	case newer, err == nil && b.CampaignUID == q.campaignUID:
		return b, err
	case err == nil:
		err = fmt.Errorf("the ledger does not know the campaign with the UID %q: it is older than it was", b.CampaignUID)
		j.alarms.Raise(q.id, err)
	}
	_, id := j.Topic()
	return record.Batch{Campaign: q.id, CampaignUID: q.campaignUID, Garbage: []record.Garbage{garbageOf(id, r, err)}}, nil
}

// ask asks the ledger for a campaign's UID, about once a second.
func (j *Journal) ask(ctx context.Context, q *queue) error {
	if time.Since(q.asked) < j.options.Sweep {
		return nil
	}
	uid, err := j.options.Ledger.Whose(ctx, q.id)
	if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
		return err
	}
	q.campaignUID, q.asked = uid, time.Now()
	return nil
}
