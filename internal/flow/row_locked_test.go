package flow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/stage"
)

// An insistence is a source that gives one batch of a held campaign again and again, and
// then one of another.
type insistence struct{ times int }

func (s insistence) Drain(ctx context.Context, to flow.Sink, _ *flow.Retries) error {
	for range s.times {
		if _, err := to(ctx, flow.Batch{Campaign: "held", Coupons: stage.Coupons("held", 1, 100)}); err == nil {
			return errors.New("it was taken")
		}
	}
	if _, err := to(ctx, flow.Batch{Campaign: "c", Coupons: stage.Coupons("c", 1, 100)}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func TestACampaignThatIsHeldTakesNobodysTurnUnderALimitOfRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := stage.NewLedger("c", "held"), time.Now()
		var took time.Duration
		p.After = func(flow.Batch) error {
			took = time.Since(start)
			return nil
		}
		runFor(t, flow.NewRecorder(insistence{50}, mismatched{p}, flow.RecorderLimits{Rows: 100}), time.Hour)
		stage.Same(t, "recorded", stage.Numbers(1, 100), p.Order)
		stage.Same(t, "when", time.Second, took) // the limit lets a second's worth through at once
	})
}

// A recovering ledger fails once. From then on the row of the campaign "held" is locked.
type recovering struct {
	*stage.Ledger
	failed bool
}

func (r *recovering) Record(ctx context.Context, b flow.Batch) (flow.Drained, error) {
	switch {
	case b.Campaign != "held":
		return r.Ledger.Record(ctx, b)
	case !r.failed:
		r.failed = true
		return flow.Drained{}, errors.New("the ledger is down")
	}
	time.Sleep(5 * time.Second) // as long as a lock is waited for
	return flow.Drained{}, flow.ErrRowLocked
}

func TestAHeldCampaignThatIsTheProbeOfAnOpenBreakerClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewLedger("c", "held")
		r := flow.NewRecorder(insistence{2}, &recovering{Ledger: p}, flow.RecorderLimits{Failures: 1})
		runFor(t, r, 10*time.Second)
		stage.Same(t, "recorded", stage.Numbers(1, 100), p.Order)
		stage.Same(t, "breaker", "closed", r.Stats().Breaker)
	})
}
