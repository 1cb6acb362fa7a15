package record_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// recordAll runs a recorder of a journal until it has nothing left to do.
func recordAll(t *testing.T, j *stage.Journal, p record.Keeper, limits record.Options) *record.Recorder {
	t.Helper()
	r := record.NewRecorder(j, p, limits)
	runFor(t, r, time.Hour)
	for _, id := range []firstcome.CampaignID{"c", "d", "unknown"} {
		if left := j.Batches(id); left > 0 {
			t.Errorf("%d batches of %s are left: %+v", left, id, r.Stats())
		}
	}
	return r
}

func runFor(t *testing.T, r *record.Recorder, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Error(err)
	}
}

var errKilled = errors.New("killed")

func TestF41ABatchThatWasRecordedButNotDoneComesAgainAndIsOne(t *testing.T) {
	for name, hook := range map[string]func(p *stage.Ledger, stop func()){
		"killed before the commit": func(p *stage.Ledger, stop func()) {
			p.Before = func(record.Batch) error { stop(); return errKilled }
		},
		"killed after the commit": func(p *stage.Ledger, stop func()) {
			p.After = func(record.Batch) error { stop(); return errKilled }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, p := &stage.Journal{}, stage.NewLedger("c", "d", "unknown")
				j.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", 1, 3)})
				j.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", 4, 6)})
				ctx, kill := context.WithCancel(t.Context())
				hook(p, kill)
				stage.Must(t, record.NewRecorder(j, p, record.Options{}).Run(ctx))
				if left := j.Batches("c"); left != 2 {
					t.Errorf("%d batches are left", left)
				}
				p.Before, p.After = nil, nil
				recordAll(t, j, p, record.Options{})
				stage.Same(t, "recorded, in order", stage.Numbers(1, 6), p.Order)
			})
		})
	}
}

func TestTheOneCouponThatTheLedgerRefusesIsBuried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &stage.Journal{}, stage.NewLedger("c", "d", "unknown")
		j.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", 1, 512)})
		p.Refuses = func(c firstcome.Coupon) bool { return c.Number == 300 }
		var told record.Result
		j.Took = func(d record.Result) error { told = d; return nil }
		var heard []int64
		r := recordAll(t, j, p, record.Options{OnRecorded: func(_ firstcome.CampaignID, coupons []firstcome.Coupon) {
			for _, c := range coupons {
				heard = append(heard, c.Number)
			}
		}})
		for _, n := range heard {
			if n == 300 {
				t.Error("the dead letter is told to be recorded")
			}
		}
		if len(heard) < 299 {
			t.Errorf("only %d coupons are told to be recorded", len(heard))
		}
		stage.Same(t, "recorded, in order", append(stage.Numbers(1, 299), stage.Numbers(301, 512)...), p.Order)
		stage.Same(t, "told", record.Result{Through: 512, Letters: stage.Coupons("c", 300, 300)}, told)
		if p.Letters()["c/300"] == "" || len(p.Letters()) != 1 {
			t.Errorf("the dead letters are %v", p.Letters())
		}
		// Two halves at each of nine steps, the whole batch, and the burial.
		stage.Same(t, "calls", 20, p.Calls)
		stage.Same(t, "stats", record.Stats{Coupons: 511, Batches: 1, Letters: 1, Breaker: "closed"}, r.Stats())
	})
}

// A keeping is a Keeper that gives each batch the same answer.
type keeping record.Result

func (k keeping) Record(context.Context, record.Batch) (record.Result, error) {
	return record.Result(k), nil
}

func (k keeping) Bury(context.Context, record.Batch, string) (record.Result, error) {
	return record.Result(k), nil
}

// TestOnlyABatchThatIsAllInTheLedgerIsToldToBeRecorded covers ledgers that took a batch with lost numbers, or with dead letters.
func TestOnlyABatchThatIsAllInTheLedgerIsToldToBeRecorded(t *testing.T) {
	for what, test := range map[string]struct {
		says record.Result
		told int
	}{
		"all":          {record.Result{Through: 3}, 3},
		"a lost one":   {record.Result{Through: 3, Lost: 1}, 0},
		"a dead one":   {record.Result{Through: 3, Letters: stage.Coupons("c", 2, 2)}, 0},
		"not yet told": {record.Result{}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			j, told := &stage.Journal{}, 0
			j.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", 1, 3)})
			recordAll(t, j, keeping(test.says), record.Options{OnRecorded: func(id firstcome.CampaignID, coupons []firstcome.Coupon) { told += len(coupons) }})
			stage.Same(t, what, test.told, told)
		})
	}
}

func TestAManyTimesRefusedBatchDoesNotOpenTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &stage.Journal{}, stage.NewLedger("c", "d", "unknown")
		j.Add(record.Batch{Campaign: "unknown", Coupons: stage.Coupons("unknown", 1, 64)})
		p.Refuses = func(firstcome.Coupon) bool { return true }
		start := time.Now()
		r := recordAll(t, j, p, record.Options{})
		stage.Same(t, "stats", record.Stats{Batches: 1, Letters: 64, Breaker: "closed"}, r.Stats())
		if took := time.Since(start); took != time.Hour {
			t.Errorf("it waited: %v", took)
		}
	})
}

func TestF44GarbageIsBuriedAndTheRestFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &stage.Journal{}, stage.NewLedger("c", "d", "unknown")
		garbage := record.Garbage{Source: "journal/7-0", Payload: "\x00", Cause: "unknown version"}
		j.Add(record.Batch{Campaign: "c", Garbage: []record.Garbage{garbage}, Coupons: stage.Coupons("c", 1, 3)})
		j.Add(record.Batch{Campaign: "c", Garbage: []record.Garbage{garbage}})
		var drained []int64
		j.Took = func(s record.Result) error { drained = append(drained, s.Through); return nil }
		recordAll(t, j, p, record.Options{})
		stage.Same(t, "recorded", stage.Numbers(1, 3), p.Order)
		stage.Same(t, "dead letters", map[string]string{"journal/7-0": "unknown version"}, p.Letters())
		stage.Same(t, "drained", []int64{3, 3}, drained)
	})
}

// TestF45DuplicatedDelayedAndReorderedBatchesLeaveTheSameBooks lets three recorders drain journals that hold overlapping parts of the same coupons in
// any order. The ledger fails at random, before and after its commit.
func TestF45DuplicatedDelayedAndReorderedBatchesLeaveTheSameBooks(t *testing.T) {
	for from := range seed.Each(t, 20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(from, 45))
			p := stage.NewLedger("c", "d", "unknown")
			luck := rand.New(rand.NewPCG(from, 53))
			var one sync.Mutex
			fails := func(record.Batch) error {
				one.Lock()
				defer one.Unlock()
				if luck.IntN(4) == 0 {
					return errors.New("bad connection")
				}
				return nil
			}
			p.Before, p.After = fails, fails
			var wait sync.WaitGroup
			for range 3 {
				j := &stage.Journal{}
				var batches []record.Batch
				for first := int64(1); first <= 200; first += 10 {
					batches = append(batches, record.Batch{Campaign: "c", Coupons: stage.Coupons("c", first, min(200, first+9+random.Int64N(10)))})
				}
				random.Shuffle(len(batches), func(a, b int) { batches[a], batches[b] = batches[b], batches[a] })
				for _, b := range append(batches, batches[0]) {
					j.Add(b)
				}
				wait.Go(func() { recordAll(t, j, p, record.Options{}) })
			}
			wait.Wait()
			slices.Sort(p.Order)
			stage.Same(t, fmt.Sprint("recorded once each, with seed ", from), stage.Numbers(1, 200), p.Order)
		})
	}
}

// A flood is a source of many batches, which it makes on demand.
type flood struct {
	batches, width int64
	given          int64
}

func (f *flood) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	ready("c")
	<-ctx.Done()
	return ctx.Err()
}

func (f *flood) Next(context.Context, firstcome.CampaignID) (b record.Batch, receipt any, err error) {
	if f.given == f.batches {
		return b, nil, nil
	}
	first := f.given*f.width + 1
	return record.Batch{Campaign: "c", Coupons: stage.Coupons("c", first, first+f.width-1)}, f.given, nil
}

func (f *flood) Ack(context.Context, any, record.Result) (before int64, err error) {
	f.given++
	return 0, nil
}

func (f *flood) Lag(context.Context, []gate.Revision) ([]record.Lag, error) { return nil, nil }

// counting is a Keeper that only counts, slowly, and sometimes fails.
type counting struct {
	calls, last, widest int64
	outOfOrder          bool
}

func (c *counting) Record(_ context.Context, b record.Batch) (record.Result, error) {
	c.calls++
	time.Sleep(20 * time.Millisecond)
	if c.calls%10 == 0 {
		return record.Result{}, errors.New("too slow")
	}
	c.widest = max(c.widest, int64(len(b.Coupons)))
	c.outOfOrder = c.outOfOrder || b.Coupons[0].Number != c.last+1
	c.last = b.Coupons[len(b.Coupons)-1].Number
	return record.Result{Through: c.last}, nil
}

func (c *counting) Bury(context.Context, record.Batch, string) (record.Result, error) {
	return record.Result{}, errors.New("there is nothing to bury")
}

func TestF49ABacklogOfAMillionDrainsOneBatchAtATimeWithoutLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := &flood{batches: 1000, width: 1000}, &counting{}
		r := record.NewRecorder(f, c, record.Options{Rows: 20_000})
		start := time.Now()
		runFor(t, r, 49*time.Second)
		if done := r.Stats().Coupons; done < 900_000 || done > 1_000_000 {
			t.Errorf("%d coupons after %v at 20,000 a second", done, time.Since(start))
		}
		runFor(t, r, time.Minute)
		if c.last != 1_000_000 || c.widest != 1000 || c.outOfOrder {
			t.Errorf("the ledger was given %+v", *c)
		}
	})
}
