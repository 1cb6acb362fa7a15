package flow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome/internal/flow"
)

func TestACampaignThatSomebodyHoldsIsGivenBackAndOpensNoBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &journal{}, newPage()
		j.add(flow.Batch{Campaign: "held", Coupons: coupons("held", 1, 5)})
		j.add(flow.Batch{Campaign: "c", Coupons: coupons("c", 1, 5)})
		r := flow.NewRecorder(j, mismatched{p}, flow.RecorderLimits{Failures: 1})
		runFor(t, r, time.Minute)
		same(t, "recorded", numbers(1, 5), p.order)
		same(t, "of the held one is left", 1, len(j.batches["held"]))
		s := r.Stats()
		s.Err = nil // which of the two was last
		same(t, "stats", flow.RecorderStats{Coupons: 5, Batches: 1, Retries: 1, Breaker: "closed"}, s)
	})
}

// An insistence is a source that gives one batch of a held campaign again and again, and
// then one of another.
type insistence struct{ times int }

func (s insistence) Drain(ctx context.Context, to flow.Sink) error {
	for range s.times {
		if _, err := to(ctx, flow.Batch{Campaign: "held", Coupons: coupons("held", 1, 100)}); !errors.Is(err, flow.ErrRowLocked) {
			return err
		}
	}
	if _, err := to(ctx, flow.Batch{Campaign: "c", Coupons: coupons("c", 1, 100)}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func TestACampaignThatIsHeldTakesNobodysTurnUnderALimitOfRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := newPage(), time.Now()
		var took time.Duration
		p.after = func() error {
			took = time.Since(start)
			return nil
		}
		runFor(t, flow.NewRecorder(insistence{50}, mismatched{p}, flow.RecorderLimits{Rows: 100}), time.Hour)
		same(t, "recorded", numbers(1, 100), p.order)
		same(t, "when", time.Second, took) // the limit lets a second's worth through at once
	})
}

// A recovering ledger fails once, and then the campaign that it was asked about is held.
type recovering struct {
	*page
	failed bool
}

func (r *recovering) Record(ctx context.Context, b flow.Batch) (flow.Drained, error) {
	switch {
	case b.Campaign != "held":
		return r.page.Record(ctx, b)
	case !r.failed:
		r.failed = true
		return flow.Drained{}, errors.New("the ledger is down")
	}
	time.Sleep(5 * time.Second) // as long as a lock is waited for
	return flow.Drained{}, flow.ErrRowLocked
}

func TestAHeldCampaignThatIsTheProbeOfAnOpenBreakerClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage()
		r := flow.NewRecorder(insistence{1}, &recovering{page: p}, flow.RecorderLimits{Failures: 1})
		runFor(t, r, 10*time.Second)
		same(t, "recorded", numbers(1, 100), p.order)
		same(t, "breaker", "closed", r.Stats().Breaker)
	})
}
