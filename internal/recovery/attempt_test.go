package recovery_test

import (
	"context"
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
