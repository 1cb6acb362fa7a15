package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// An echo keeps the steps of a rebuild that reach the gate, so that they can come again.
type echo struct {
	flow.RebuiltGate
	freeze, change func() error
}

func (e *echo) Freeze(ctx context.Context, r flow.Rebuild) (flow.Frozen, error) {
	ctx = context.WithoutCancel(ctx)
	e.freeze = func() error {
		_, err := e.RebuiltGate.Freeze(ctx, r)
		return err
	}
	return e.RebuiltGate.Freeze(ctx, r)
}

func (e *echo) Switch(ctx context.Context, r flow.Rebuild, f flow.Frozen, loaded flow.Loaded, fill flow.Refill) error {
	ctx = context.WithoutCancel(ctx)
	e.change = func() error { return e.RebuiltGate.Switch(ctx, r, f, loaded, fill) }
	return e.change()
}

// TestF18StepsOfARebuildThatComeAgainChangeNothing has a rebuild of a campaign without coupons freeze and switch once more when numbers were
// given since: both find as much as they did before, so nothing but the attempt tells them from the first ones.
func TestF18StepsOfARebuildThatComeAgainChangeNothing(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	e := &echo{RebuiltGate: d.remote.gate}
	d.rebuilt(flow.NewRebuilder(d.ledger, e, flow.RebuilderEvents{}))
	stage.Same(t, "the first claim", []string{"issued:101"}, d.claims("a"))
	if err := e.freeze(); !errors.Is(err, flow.ErrOutdone) {
		t.Errorf("the freeze comes again: %v, want %v", err, flow.ErrOutdone)
	}
	if err := e.change(); !errors.Is(err, flow.ErrOutdone) {
		t.Errorf("the switch comes again: %v, want %v", err, flow.ErrOutdone)
	}
	stage.Same(t, "claims", []string{"already_issued:101", "issued:102"}, d.claims("a", "b"))
}

func TestF18DoctorSaysWhatIsBeingRebuilt(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c", "sound")
	attempt, err := d.ledger.BeginRebuild(t.Context(), "op", "c", 0)
	stage.Must(t, err)
	says := func() (warns string) {
		all, err := d.ledger.Campaigns(t.Context(), "", 10)
		stage.Must(t, err)
		for _, f := range gateCampaigns(t.Context(), d.url, d.ledger, all) {
			if f.Grade != doctor.OK {
				warns += fmt.Sprintf("%s %s: %s\n", f.Grade, f.Found, f.Fix)
			}
		}
		return warns
	}
	want := "WARN 1 campaigns are being rebuilt, and nothing of them is decided meanwhile: c (out of epoch 1): nothing, if a node is at it. If none is: firstcome gate rebuild CAMPAIGN, beside a node\n"
	stage.Same(t, "while it is rebuilt", want, says())
	stage.Must(t, d.ledger.GiveUpRebuild(t.Context(), attempt))
	stage.Same(t, "behind it", "", says())
}
