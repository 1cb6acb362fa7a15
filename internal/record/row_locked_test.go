package record_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// A holding ledger has the row of the campaign "held" locked. Another campaign gets a batch after "held" was tried a number of times.
type holding struct {
	*stage.Ledger
	journal *stage.Journal
	tries   int
	locked  func() error // how a try of the held campaign ends
}

func (h *holding) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	if b.Campaign != "held" {
		return h.Ledger.Record(ctx, b)
	}
	if h.tries--; h.tries == 0 {
		h.journal.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", 1, 100)})
	}
	return record.Result{}, h.locked()
}

// newHolding returns a holding, and a journal with a batch of the campaign "held".
func newHolding(tries int, locked func() error) *holding {
	h := &holding{stage.NewLedger("c", "held"), &stage.Journal{}, tries, locked}
	h.journal.Add(record.Batch{Campaign: "held", Coupons: stage.Coupons("held", 1, 100)})
	return h
}

func TestACampaignThatIsHeldTakesNobodysTurnUnderALimitOfRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, took := time.Now(), time.Duration(0)
		h := newHolding(50, func() error { return record.ErrRowLocked })
		h.After = func(record.Batch) error {
			took = time.Since(start)
			return nil
		}
		runFor(t, record.NewRecorder(h.journal, h, record.Options{Rows: 100, Wait: time.Millisecond}), time.Minute)
		stage.Same(t, "recorded", stage.Numbers(1, 100), h.Order)
		stage.Same(t, "when", time.Second, took.Round(time.Millisecond)) // the limit lets a second's worth through at once
	})
}

func TestAHeldCampaignThatIsTheProbeOfAnOpenBreakerClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := false
		h := newHolding(2, func() error {
			if !failed {
				failed = true
				return errors.New("the ledger is down")
			}
			time.Sleep(5 * time.Second) // as long as a lock is waited for
			return record.ErrRowLocked
		})
		r := record.NewRecorder(h.journal, h, record.Options{Failures: 1})
		runFor(t, r, 10*time.Second)
		stage.Same(t, "recorded", stage.Numbers(1, 100), h.Order)
		stage.Same(t, "breaker", "closed", r.Stats().Breaker)
	})
}
