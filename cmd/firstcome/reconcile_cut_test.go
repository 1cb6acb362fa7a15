//go:build !check

package main

import (
	"context"
	"errors"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF54AReconcileThatWasCutOffIsDoneAgain cuts a reconcile off before each of its steps. Until it is done again, no node decides a claim or rebuilds the
// gate by itself, unless the ledger has everything.
func TestF54AReconcileThatWasCutOffIsDoneAgain(t *testing.T) {
	for _, step := range []string{"freeze", "adopt", "record", "empty", "load", "finish", "switch"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			d := behind(t, services.Ledgers[services.SQLite](t))
			cut := &cutOff{d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, step}
			if _, err := recovery.New(cut, cut, cut, recovery.NewWatch(nil), nil).Reconcile(t.Context(), "op", "c"); !errors.Is(err, errCutOff) {
				t.Fatalf("it ends with %v", err)
			}
			r := d.rebuilder()
			r.LookBack(t.Context())
			if older := errors.Is(r.Refusal("c"), gate.ErrLedgerRolledBack); older == (step == "switch") {
				t.Errorf("the campaign is refused: %v", r.Refusal("c"))
			}
			done, err := r.Reconcile(t.Context(), "op", "c")
			stage.Must(t, err)
			d.isWhole(done)
		})
	}
}

// TestF54AReconcileThatWasCutOffIsEndedByNoRebuild cuts a reconcile off after the ledger has adopted the gate's version, so that the gate is no longer
// ahead.
func TestF54AReconcileThatWasCutOffIsEndedByNoRebuild(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.kept(people("user-", 3)...)
	b := d.backup()
	d.turn(firstcome.ChangePause)
	d = b.restore()
	cut := &cutOff{d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, "load"}
	if _, err := recovery.New(cut, cut, cut, recovery.NewWatch(nil), nil).Reconcile(t.Context(), "op", "c"); !errors.Is(err, errCutOff) {
		t.Fatalf("it ends with %v", err)
	}
	if done, err := d.rebuilder().Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: true}); !errors.Is(err, gate.ErrLedgerRolledBack) {
		t.Fatalf("a rebuild of what is lost ends with %+v, %v", done, err)
	}
	r := d.watch()
	r.Suspect("c", gate.ErrUnverified)
	stage.Await(t, "a campaign that is refused, and of which nothing is done", recovery.Stats{RolledBack: 1}, r.Stats)
	stage.Must(t, stage.Err(d.rebuilder().Reconcile(t.Context(), "op", "c")))
	stage.Await(t, "a campaign that is well", recovery.Stats{}, r.Stats)
	stage.Same(t, "the campaign", true, d.status().Paused)
	d.sound()
}

var errCutOff = errors.New("the process ended")

// A cutOff is the ledger and the gate of a node that dies before a step.
type cutOff struct {
	recovery.Records
	recovery.Ledger
	recovery.Gate
	step string
}

func (c *cutOff) at(step string) error {
	if step == c.step {
		return errCutOff
	}
	return nil
}

func (c *cutOff) Freeze(ctx context.Context, r recovery.Rebuild) (f recovery.Frozen, err error) {
	if err := c.at("freeze"); err != nil {
		return f, err
	}
	return c.Gate.Freeze(ctx, r)
}

func (c *cutOff) Adopt(ctx context.Context, r recovery.Rebuild, g recovery.GateState, absent []firstcome.Coupon, complete bool) (a recovery.Adopted, err error) {
	if err := c.at("adopt"); err != nil {
		return a, err
	}
	return c.Ledger.Adopt(ctx, r, g, absent, complete)
}

func (c *cutOff) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	if err := c.at("record"); err != nil {
		return record.Result{}, err
	}
	return c.Records.Record(ctx, b)
}

func (c *cutOff) Empty(ctx context.Context, r recovery.Rebuild, to record.Sink) error {
	if err := c.at("empty"); err != nil {
		return err
	}
	return c.Gate.Empty(ctx, r, to)
}

func (c *cutOff) Loading(ctx context.Context, r recovery.Rebuild) (func(firstcome.Coupon) error, func() error, error) {
	if err := c.at("load"); err != nil {
		return nil, nil, err
	}
	return c.Gate.Loading(ctx, r)
}

func (c *cutOff) FinishRebuild(ctx context.Context, r recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (fill recovery.Refill, err error) {
	if err := c.at("finish"); err != nil {
		return fill, err
	}
	return c.Ledger.FinishRebuild(ctx, r, loaded, frozen)
}

func (c *cutOff) Replace(ctx context.Context, r recovery.Rebuild, f recovery.Frozen, loaded recovery.Loaded, fill recovery.Refill) error {
	if err := c.at("switch"); err != nil {
		return err
	}
	return c.Gate.Replace(ctx, r, f, loaded, fill)
}
