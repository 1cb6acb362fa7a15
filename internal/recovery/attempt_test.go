package recovery_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// A lateBook ends an epoch at once, but answers only after the next heartbeat is due.
type lateBook struct {
	plainBook
	ended bool
}

// answerTime is longer than a rebuild may go without a heartbeat.
const answerTime = 3 * time.Second

func (b *lateBook) Heartbeat(context.Context, recovery.Rebuild) error {
	if b.ended {
		return recovery.ErrSuperseded
	}
	return nil
}

func (b *lateBook) Refills(context.Context, firstcome.CampaignID, func(firstcome.Coupon) error) (recovery.Mark, error) {
	return recovery.Mark{}, nil
}

func (b *lateBook) FinishRebuild(ctx context.Context, _ recovery.Rebuild, _ recovery.Loaded, _ recovery.Frozen) (recovery.Refill, error) {
	b.ended = true
	return recovery.Refill{Epoch: 2}, lasts(ctx)
}

// A slowSwitch is an empty gate whose switch takes longer than the interval of heartbeats.
type slowSwitch struct{ fragileGate }

func (g *slowSwitch) Room(context.Context, recovery.Rebuild) error { return nil }

func (g *slowSwitch) Freeze(context.Context, recovery.Rebuild) (recovery.Frozen, error) {
	return recovery.Frozen{}, nil
}

func (g *slowSwitch) Empty(context.Context, recovery.Rebuild, record.Sink) error { return nil }

func (g *slowSwitch) Loading(context.Context, recovery.Rebuild) (func(firstcome.Coupon) error, func() error, error) {
	return nil, func() error { return nil }, nil
}

func (g *slowSwitch) Replace(ctx context.Context, _ recovery.Rebuild, _ recovery.Frozen, _ recovery.Loaded, _ recovery.Refill) error {
	return lasts(ctx)
}

// lasts returns after answerTime, or when ctx ends.
func lasts(ctx context.Context) error {
	select {
	case <-time.After(answerTime):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestF18AHeartbeatCutsOffNoRebuildThatHasEndedTheEpoch makes heartbeats due while the ledger ends the epoch, and while the gate is switched. If a
// heartbeat stopped the rebuild there, another epoch would have to end.
func TestF18AHeartbeatCutsOffNoRebuildThatHasEndedTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lateBook{plainBook: plainBook{slowBook{active: []gate.Revision{{Campaign: "c", Epoch: 1}}}}}
		r := recovery.New(b, b, &slowSwitch{}, recovery.NewWatch(nil), nil)
		done, err := r.Rebuild(t.Context(), "op", "c", recovery.Order{})
		stage.Must(t, err)
		stage.Same(t, "the epoch that began", int64(2), done.Epoch)
		stage.Same(t, "attempts", recovery.Stats{Begun: 1, Finished: 1}, r.Stats())
	})
}

// A termsBook is a ledger whose campaign gets new terms.
type termsBook struct {
	slowBook
	version atomic.Int64
}

func (b *termsBook) Active(context.Context) ([]gate.Revision, error) {
	return []gate.Revision{{Campaign: "c", Epoch: 1, Version: 9, TermsVersion: b.version.Load()}}, nil
}

// TestANodeReadsNewTermsAsSoonAsItNoticesThem changes the terms, as a rebuild by another node does. A claim that is decided by them later needs no ledger.
func TestANodeReadsNewTermsAsSoonAsItNoticesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &termsBook{}
		b.version.Store(7)
		r := recovery.New(b, b, &fragileGate{}, recovery.NewWatch(nil), nil)
		var mu sync.Mutex
		var read []int64
		r.Terms = func(_ context.Context, _ firstcome.CampaignID, version int64) (firstcome.Terms, error) {
			mu.Lock()
			defer mu.Unlock()
			read = append(read, version)
			return firstcome.Terms{}, errors.New("the ledger is away, which matters to nobody here")
		}
		within := func(d time.Duration) []int64 {
			time.Sleep(d)
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(read)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		stage.Same(t, "what a node reads whose campaigns' terms are the same", []int64(nil), within(10*time.Second))
		b.version.Store(9)
		stage.Same(t, "what it has read a second later", []int64{9}, within(1100*time.Millisecond))
		stage.Same(t, "what it has read in the end", []int64{9}, within(10*time.Second))
		end()
		stage.Must(t, <-ended)
	})
}
