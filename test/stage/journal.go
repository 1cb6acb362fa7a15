package stage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// A Journal is a fake of one: it gives batches of campaigns from memory, each until the sink takes it.
// conform.Journal holds it to what the real one does. The zero value is empty.
type Journal struct {
	mu      sync.Mutex // guards what follows
	batches map[firstcome.CampaignID][]*flow.Batch
	issued  map[firstcome.CampaignID]int64
	added   chan struct{} // closed when something is added; nil: nobody waits
	// Took, if set, is told what the sink returned, before the batch is done; its error ends the drain there.
	Took func(flow.Drained) error
}

// Add adds a batch.
func (j *Journal) Add(b flow.Batch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.batches == nil {
		j.batches, j.issued = map[firstcome.CampaignID][]*flow.Batch{}, map[firstcome.CampaignID]int64{}
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
	j.Add(flow.Batch{Campaign: id, Epoch: 1, Coupons: coupons})
	return coupons, nil
}

// Batches returns how many batches of a campaign are left.
func (j *Journal) Batches(id firstcome.CampaignID) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.batches[id])
}

// Drain is flow.Source's.
func (j *Journal) Drain(ctx context.Context, to flow.Sink, again *flow.Retries) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	begun := map[firstcome.CampaignID]bool{}
	for ctx.Err() == nil {
		j.mu.Lock()
		for id := range j.batches {
			if !begun[id] {
				begun[id] = true
				all.Go(func() { j.drain(ctx, id, to, again, cancel) })
			}
		}
		added := j.waits()
		j.mu.Unlock()
		wait(ctx, added)
	}
	return context.Cause(ctx)
}

// drain drains a campaign until ctx ends, which it does at an error of Took.
func (j *Journal) drain(ctx context.Context, id firstcome.CampaignID, to flow.Sink, again *flow.Retries, fail context.CancelCauseFunc) {
	for ctx.Err() == nil {
		j.mu.Lock()
		added := j.waits()
		var b *flow.Batch
		if len(j.batches[id]) > 0 {
			b = j.batches[id][0]
		}
		j.mu.Unlock()
		if b == nil {
			wait(ctx, added)
			continue
		}
		drained, err := to(ctx, *b)
		if err != nil {
			wait(ctx, time.After(again.Failed(id, err)))
			continue
		}
		again.Drained(id)
		if j.Took != nil {
			err = j.Took(drained)
		}
		if err != nil {
			fail(err)
			return
		}
		j.done(b)
	}
}

// waits returns what is closed when something is added. mu is held.
func (j *Journal) waits() <-chan struct{} {
	if j.added == nil {
		j.added = make(chan struct{})
	}
	return j.added
}

func wait[T any](ctx context.Context, until <-chan T) {
	select {
	case <-until:
	case <-ctx.Done():
	}
}

// done is done with a batch, unless somebody else was.
func (j *Journal) done(b *flow.Batch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if all := j.batches[b.Campaign]; len(all) > 0 && all[0] == b {
		j.batches[b.Campaign] = all[1:]
	}
}

// Drain drains a source into a sink until stop is called or the test ends, again after each error, as a recorder does.
func Drain(t testing.TB, of flow.Source, to flow.Sink) (stop func()) {
	return Run(t, func(ctx context.Context) error {
		for again := flow.NewRetries(50 * time.Millisecond); ctx.Err() == nil; {
			if err := of.Drain(ctx, to, again); err == nil && ctx.Err() == nil {
				return errors.New("the drain ended by itself")
			}
		}
		return nil
	})
}

// DrainOnce drains a source into a sink until the test ends. The source may not fail.
func DrainOnce(t testing.TB, of flow.Source, to flow.Sink) {
	Run(t, func(ctx context.Context) error { return of.Drain(ctx, to, flow.NewRetries(50*time.Millisecond)) })
}
