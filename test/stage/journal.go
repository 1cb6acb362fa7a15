package stage

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A Journal is a fake of one: it gives batches of campaigns from memory, each until the sink takes it.
// conform.Journal holds it to what the real one does. The zero value is empty.
type Journal struct {
	mu      sync.Mutex // guards what follows
	batches map[firstcome.CampaignID][]*record.Batch
	issued  map[firstcome.CampaignID]int64
	added   chan struct{} // closed when something is added; nil: nobody watches
	// Took, if set, is told what the sink returned, before the batch is done; its error leaves the batch.
	Took func(record.Result) error
}

// Add adds a batch.
func (j *Journal) Add(b record.Batch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.batches == nil {
		j.batches, j.issued = map[firstcome.CampaignID][]*record.Batch{}, map[firstcome.CampaignID]int64{}
	}
	j.batches[b.Campaign] = append(j.batches[b.Campaign], &b)
	j.issued[b.Campaign] += int64(len(b.Coupons))
	if j.added != nil {
		close(j.added)
		j.added = nil
	}
}

// Issue adds a batch of coupons to new users of a campaign.
func (j *Journal) Issue(_ context.Context, id firstcome.CampaignID, users int) ([]firstcome.Coupon, error) {
	j.mu.Lock()
	before := j.issued[id]
	j.mu.Unlock()
	coupons := Coupons(id, before+1, before+int64(users))
	j.Add(record.Batch{Campaign: id, Epoch: 1, Coupons: coupons})
	return coupons, nil
}

// Batches returns how many batches of a campaign are left.
func (j *Journal) Batches(id firstcome.CampaignID) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.batches[id])
}

// Watch implements record.Source.
func (j *Journal) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	for ctx.Err() == nil {
		j.mu.Lock()
		if j.added == nil {
			j.added = make(chan struct{})
		}
		added, ids := j.added, slices.Sorted(maps.Keys(j.batches))
		j.mu.Unlock()
		for _, id := range ids {
			ready(id)
		}
		select {
		case <-added:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// Next implements record.Source.
func (j *Journal) Next(_ context.Context, id firstcome.CampaignID) (b record.Batch, receipt any, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.batches[id]) == 0 {
		return b, nil, nil
	}
	first := j.batches[id][0]
	return *first, first, nil
}

// Ack implements record.Source.
func (j *Journal) Ack(_ context.Context, receipt any, drained record.Result) (before int64, err error) {
	if j.Took != nil {
		err = j.Took(drained)
	}
	if err == nil {
		j.done(receipt.(*record.Batch))
	}
	return 0, err
}

// Lag implements record.Source.
func (j *Journal) Lag(context.Context, []gate.Revision) ([]record.Lag, error) { return nil, nil }

// done is done with a batch, unless somebody else was.
func (j *Journal) done(b *record.Batch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if all := j.batches[b.Campaign]; len(all) > 0 && all[0] == b {
		j.batches[b.Campaign] = all[1:]
	}
}

// Drain drains a source into a sink until stop is called or the test ends, as a recorder does.
func Drain(t testing.TB, of record.Source, to record.Sink, edit ...func(*record.Options)) (stop func()) {
	limits := record.Options{Wait: 50 * time.Millisecond, Failures: math.MaxInt}
	for _, e := range edit {
		e(&limits)
	}
	return Run(t, record.NewRecorder(of, keeping(to), limits).Run)
}

// A keeping sink is a ledger that says nothing of what it buries.
type keeping record.Sink

func (k keeping) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	return k(ctx, b)
}

func (k keeping) Bury(ctx context.Context, b record.Batch, _ string) (record.Result, error) {
	return k(ctx, b)
}

// DrainOnce drains a source into a sink until the test ends. The source as a whole may not fail.
func DrainOnce(t testing.TB, of record.Source, to record.Sink, edit ...func(*record.Options)) {
	Drain(t, &once{Source: of, t: t}, to, edit...)
}

// once is a source that may be watched once only.
type once struct {
	record.Source
	t       testing.TB
	watched atomic.Bool
}

func (o *once) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	if o.watched.Swap(true) {
		o.t.Error("the source as a whole failed")
	}
	return o.Source.Watch(ctx, ready)
}
