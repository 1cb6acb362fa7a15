package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// A partition is what a recorder has read of one and not recorded, in the order of offsets. A record may be done before an earlier one of
// another campaign. The journal's mutex guards it.
type partition struct {
	pending []*pending
	done    *kgo.Record // the last one behind which nothing earlier is pending, if the brokers do not know that
}

// A pending record is one that is to be recorded.
type pending struct {
	record *kgo.Record
	over   bool // it is recorded, or another recorder has its partition
}

// A queue has the records of one campaign that are to be recorded. The journal's mutex guards records, tell and gone; the worker that
// has the campaign guards the rest.
type queue struct {
	id      firstcome.CampaignID
	records []*pending
	tell    bool // the gate has to be told how far the campaign is drained
	gone    bool // the gate has numbers that neither its journal nor the topic has

	marker string    // the campaign's, by the ledger; empty: the ledger does not have it
	asked  time.Time // when the ledger said so
	untold time.Time // when the gate last did not answer
}

// queue returns a campaign's.
func (j *Journal) queue(id firstcome.CampaignID) *queue {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queueOf(id)
}

// queueOf is queue. mu is held.
func (j *Journal) queueOf(id firstcome.CampaignID) *queue {
	q := j.queues[id]
	if q == nil {
		q = &queue{id: id}
		j.queues[id] = q
	}
	return q
}

// add puts records that were read into the queues of their campaigns. A record without a campaign is nobody's.
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

// done notes that records are recorded, or nobody's here.
func (j *Journal) done(records []*pending) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range records {
		one.over = true
	}
}

// drop forgets what was read of partitions that another recorder has from now on.
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

// commits returns, of each partition, the last record up to which all are done, where the brokers do not know that.
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

// noted notes that the brokers know of records.
func (j *Journal) noted(records []*kgo.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range records {
		if p := j.partitions[r.Partition]; p != nil && p.done == r {
			p.done = nil
		}
	}
}

// full tells whether so much is in hand that nothing more is read.
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

// takes returns whether a flag of a queue was set, and unsets it.
func (j *Journal) takes(flag *bool) (was bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	was, *flag = *flag, false
	return was
}

// A share is a batch, and its records. Its receipt is a pointer to it.
type share struct {
	flow.Batch
	records []*pending
}

// recordsAtOnce is how many records are looked at for one batch: those of single coupons are two thousand of them.
const recordsAtOnce = 2000

// first returns a campaign's first records.
func (j *Journal) first(q *queue) []*pending {
	j.mu.Lock()
	defer j.mu.Unlock()
	q.records = slices.DeleteFunc(q.records, func(p *pending) bool { return p.over })
	return slices.Clone(q.records[:min(len(q.records), recordsAtOnce)])
}

// share returns what a campaign's first records say, as a batch of one epoch and of about as many coupons as are recorded at once. Without
// records there is none.
func (j *Journal) share(ctx context.Context, q *queue) (*share, error) {
	all := &share{Batch: flow.Batch{Campaign: q.id}}
	for records := j.first(q); len(records) > 0 && len(all.records) == 0; records = j.first(q) {
		for _, one := range records {
			b, err := j.read(ctx, q, one.record)
			switch {
			case errors.Is(err, errNobodys):
				j.done([]*pending{one})
				continue
			case err != nil && len(all.records) == 0:
				return all, err
			case err != nil, len(all.records) > 0 && (len(all.Coupons)+len(b.Coupons) > j.options.Coupons || !all.joins(b)):
				return all, nil // it comes with the next ones
			}
			all.Marker = b.Marker
			all.join(b)
			all.records = append(all.records, one)
		}
	}
	return all, nil
}

// joins tells whether a batch may be recorded together with an earlier one. Batches without an epoch say nothing of coupons.
func (p *share) joins(b flow.Batch) bool {
	return p.Marker == b.Marker && (p.Epoch == b.Epoch || p.Epoch == 0 || b.Epoch == 0)
}

// join adds a batch to an earlier one.
func (p *share) join(b flow.Batch) {
	p.Epoch = max(p.Epoch, b.Epoch)
	p.Coupons = append(p.Coupons, b.Coupons...)
	slices.SortStableFunc(p.Coupons, byNumber)
	p.Coupons = slices.Compact(p.Coupons) // a relay may have appended them twice
	p.Garbage = append(p.Garbage, b.Garbage...)
	p.Line.Add(b.Line)
}

func byNumber(a, b firstcome.Coupon) int { return int(min(max(a.Number-b.Number, -1), 1)) }

// errNobodys says that a record is not for this recorder: it is of another ledger, or of another secret, whose recorders are another group.
var errNobodys = errors.New("it is another ledger's")

// read returns what a record says. What cannot be read is garbage. So is what the ledger does not know and says to be its own: a dead letter
// keeps it.
func (j *Journal) read(ctx context.Context, q *queue, r *kgo.Record) (flow.Batch, error) {
	b, err := readBatch(j.options.Secret, r)
	newer := errors.Is(err, errNewer)
	says := err == nil || newer // whose it is
	if says && b.Marker != q.marker || !says && q.marker == "" {
		if err := j.ask(ctx, q); err != nil {
			return b, err
		}
	}
	switch {
	case says && b.Marker != q.marker && !j.options.Owns(b.Marker):
		return b, errNobodys
	case newer, err == nil && b.Marker == q.marker:
		return b, err
	case err == nil:
		err = fmt.Errorf("the ledger does not know the campaign with the marker %q: it is older than it was", b.Marker)
		j.alarms.Tell(q.id, err)
	}
	_, id := j.Topic()
	return flow.Batch{Campaign: q.id, Marker: q.marker, Garbage: []flow.Garbage{garbageOf(id, r, err)}}, nil
}

// ask asks the ledger for a campaign's marker, about once a second.
func (j *Journal) ask(ctx context.Context, q *queue) error {
	if time.Since(q.asked) < j.options.Sweep {
		return nil
	}
	marker, err := j.options.Ledger.Whose(ctx, q.id)
	if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
		return err
	}
	q.marker, q.asked = marker, time.Now()
	return nil
}
