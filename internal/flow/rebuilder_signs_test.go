package flow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/stage"
)

// A lateBook ends an epoch at once, and answers later than the next heartbeat.
type lateBook struct {
	plainBook
	ended bool
}

// answerTime is longer than a rebuild goes without a heartbeat.
const answerTime = 3 * time.Second

func (b *lateBook) GoesOn(context.Context, flow.Rebuild) error {
	if b.ended {
		return flow.ErrOutdone
	}
	return nil
}

func (b *lateBook) Refills(context.Context, firstcome.CampaignID, func(firstcome.Coupon) error) (flow.Mark, error) {
	return flow.Mark{}, nil
}

func (b *lateBook) FinishRebuild(ctx context.Context, _ flow.Rebuild, _ flow.Loaded, _ flow.Frozen) (flow.Refill, error) {
	b.ended = true
	return flow.Refill{Epoch: 2}, lasts(ctx)
}

// A slowSwitch is an empty gate that is switched later than the next heartbeat.
type slowSwitch struct{ fragileGate }

func (g *slowSwitch) Room(context.Context, flow.Rebuild) error { return nil }

func (g *slowSwitch) Freeze(context.Context, flow.Rebuild) (flow.Frozen, error) {
	return flow.Frozen{}, nil
}

func (g *slowSwitch) Empty(context.Context, flow.Rebuild, flow.Sink) error { return nil }

func (g *slowSwitch) Loading(context.Context, flow.Rebuild) (func(firstcome.Coupon) error, func() error, error) {
	return nil, func() error { return nil }, nil
}

func (g *slowSwitch) Switch(ctx context.Context, _ flow.Rebuild, _ flow.Frozen, _ flow.Loaded, _ flow.Refill) error {
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

// TestF18AHeartbeatCutsOffNoRebuildThatHasEndedTheEpoch lets heartbeats come due while the ledger ends the epoch, and while the gate is
// switched. A rebuild that is cut off there ends one more epoch.
func TestF18AHeartbeatCutsOffNoRebuildThatHasEndedTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lateBook{plainBook: plainBook{slowBook{active: []flow.Revision{{Campaign: "c", Epoch: 1}}}}}
		r := flow.NewRebuilder(b, &slowSwitch{}, flow.RebuilderEvents{})
		done, err := r.Rebuild(t.Context(), "op", "c", false)
		stage.Must(t, err)
		stage.Same(t, "the epoch that began", int64(2), done.Epoch)
		stage.Same(t, "attempts", flow.RebuilderStats{Begun: 1, Finished: 1}, r.Stats())
	})
}
