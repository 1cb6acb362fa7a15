package flow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/seed"
)

// A journal is a source in memory: batches of campaigns, each given until the
// sink takes it.
type journal struct {
	mu      sync.Mutex
	batches map[firstcome.CampaignID][]flow.Batch
	// took, if set, is told what the sink returned, before the batch is done; an
	// error of it ends the drain there.
	took func(flow.Drained) error
}

func (j *journal) add(b flow.Batch) {
	if j.batches == nil {
		j.batches = map[firstcome.CampaignID][]flow.Batch{}
	}
	j.batches[b.Campaign] = append(j.batches[b.Campaign], b)
}

func (j *journal) next(id firstcome.CampaignID) (flow.Batch, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.batches[id]) == 0 {
		return flow.Batch{}, false
	}
	return j.batches[id][0], true
}

func (j *journal) done(id firstcome.CampaignID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.batches[id]) > 0 {
		j.batches[id] = j.batches[id][1:]
	}
}

// Drain gives what there is, and then waits for the end of ctx.
func (j *journal) Drain(ctx context.Context, to flow.Sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for _, id := range slices.Collect(maps.Keys(j.batches)) {
		wait.Go(func() {
			for b, ok := j.next(id); ok; b, ok = j.next(id) {
				drained, err := to(ctx, b)
				if err == nil && j.took != nil {
					err = j.took(drained)
				}
				if errors.Is(err, firstcome.ErrGateMismatch) || errors.Is(err, flow.ErrRowLocked) {
					return
				}
				if err != nil {
					cancel(err)
					return
				}
				j.done(id)
			}
		})
	}
	wait.Wait()
	<-ctx.Done()
	return context.Cause(ctx)
}

// A page is a keeper in memory.
type page struct {
	mu      sync.Mutex
	coupons map[string]firstcome.Coupon // by campaign and number
	letters map[string]string           // causes, by the entry or the coupon
	order   []int64                     // numbers in the order in which they were recorded
	calls   int
	widest  int // coupons in one call
	// before and after, if set, are called at the beginning and the end of each call.
	before, after func() error
	refuses       func(firstcome.Coupon) bool
}

func newPage() *page {
	return &page{coupons: map[string]firstcome.Coupon{}, letters: map[string]string{}}
}

func key(c firstcome.Coupon) string { return fmt.Sprintf("%s/%d", c.Campaign, c.Number) }

func (p *page) Record(ctx context.Context, b flow.Batch) (flow.Drained, error) {
	return p.call(ctx, func() error {
		p.widest = max(p.widest, len(b.Coupons))
		for _, c := range b.Coupons {
			if known, ok := p.coupons[key(c)]; p.refuses != nil && p.refuses(c) || ok && known != c {
				return fmt.Errorf("%w: number %d", flow.ErrRefused, c.Number)
			}
		}
		for _, c := range b.Coupons {
			if _, ok := p.coupons[key(c)]; !ok {
				p.coupons[key(c)] = c
				p.order = append(p.order, c.Number)
			}
		}
		return nil
	})
}

func (p *page) Bury(ctx context.Context, b flow.Batch, cause string) (flow.Drained, error) {
	d, err := p.call(ctx, func() error {
		for _, g := range b.Garbage {
			p.letters[g.Source] = g.Cause
		}
		for _, c := range b.Coupons {
			p.letters[key(c)] = cause
		}
		return nil
	})
	d.Letters = b.Coupons
	return d, err
}

func (p *page) call(ctx context.Context, do func() error) (flow.Drained, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	for _, step := range []func() error{p.before, do, p.after} {
		if step == nil {
			continue
		}
		if err := errors.Join(ctx.Err(), step()); err != nil {
			return flow.Drained{}, err
		}
	}
	return flow.Drained{Through: int64(len(p.coupons) + len(p.letters))}, nil
}

// coupons returns those of a campaign from first to last.
func coupons(id firstcome.CampaignID, first, last int64) []firstcome.Coupon {
	var all []firstcome.Coupon
	for n := first; n <= last; n++ {
		all = append(all, firstcome.Coupon{Campaign: id, Number: n, User: firstcome.UserID(fmt.Sprint("user-", n))})
	}
	return all
}

// recordAll runs a recorder of a journal until nothing is left to do for it.
func recordAll(t *testing.T, j *journal, p *page, limits flow.RecorderLimits) *flow.Recorder {
	t.Helper()
	r := flow.NewRecorder(j, p, limits)
	runFor(t, r, time.Hour)
	for id, left := range j.batches {
		if len(left) > 0 {
			t.Errorf("%d batches of %s are left: %+v", len(left), id, r.Stats())
		}
	}
	return r
}

func runFor(t *testing.T, r *flow.Recorder, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Error(err)
	}
}

func numbers(first, last int64) []int64 {
	var all []int64
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestF53ARecorderRetriesUntilTheLedgerTakesTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &journal{}, newPage()
		for first := int64(1); first < 1000; first += 100 {
			j.add(flow.Batch{Campaign: "c", Coupons: coupons("c", first, first+99)})
		}
		j.add(flow.Batch{Campaign: "d", Coupons: coupons("d", 1, 5)})
		start, down := time.Now(), 5*time.Minute
		p.before = func() error {
			if time.Since(start) < down {
				return errors.New("connection refused")
			}
			return nil
		}
		r := flow.NewRecorder(j, p, flow.RecorderLimits{})
		runFor(t, r, down)
		s := r.Stats()
		if s.Coupons != 0 || s.Err == nil || s.Breaker == "closed" {
			t.Errorf("while the ledger is down: %+v", s)
		}
		// The run of failures that opens the breaker, and then a probe a second at most.
		if calls := p.calls; calls < 60 || calls > 310 {
			t.Errorf("the ledger was called %d times in five minutes", calls)
		}
		runFor(t, r, 4*time.Second)
		same(t, "what is left four seconds after its return", map[firstcome.CampaignID][]flow.Batch{"c": {}, "d": {}}, j.batches)
		s = r.Stats()
		same(t, "stats", flow.RecorderStats{Coupons: 1005, Batches: 11, Retries: s.Retries, Breaker: "closed"}, s)
	})
}

func TestF41ABatchThatWasRecordedButNotDoneComesAgainAndIsOne(t *testing.T) {
	for name, hook := range map[string]func(p *page, stop func()){
		"killed before the commit": func(p *page, stop func()) {
			p.before = func() error { stop(); return nil }
		},
		"killed after the commit": func(p *page, stop func()) {
			p.after = func() error { stop(); return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, p := &journal{}, newPage()
				j.add(flow.Batch{Campaign: "c", Coupons: coupons("c", 1, 3)})
				j.add(flow.Batch{Campaign: "c", Coupons: coupons("c", 4, 6)})
				ctx, kill := context.WithCancel(t.Context())
				hook(p, kill)
				if err := flow.NewRecorder(j, p, flow.RecorderLimits{}).Run(ctx); err != nil {
					t.Fatal(err)
				}
				if left := len(j.batches["c"]); name == "killed before the commit" && left != 2 {
					t.Errorf("%d batches are left", left)
				}
				p.before, p.after = nil, nil
				recordAll(t, j, p, flow.RecorderLimits{})
				same(t, "recorded, in order", numbers(1, 6), p.order)
			})
		})
	}
}

func TestTheOneCouponThatTheLedgerRefusesIsBuried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &journal{}, newPage()
		j.add(flow.Batch{Campaign: "c", Coupons: coupons("c", 1, 512)})
		p.refuses = func(c firstcome.Coupon) bool { return c.Number == 300 }
		var told flow.Drained
		j.took = func(d flow.Drained) error { told = d; return nil }
		r := recordAll(t, j, p, flow.RecorderLimits{})
		same(t, "recorded, in order", append(numbers(1, 299), numbers(301, 512)...), p.order)
		same(t, "told", flow.Drained{Through: 512, Letters: coupons("c", 300, 300)}, told)
		if p.letters["c/300"] == "" || len(p.letters) != 1 {
			t.Errorf("the dead letters are %v", p.letters)
		}
		// Two halves at each of nine steps, the whole, and the burial.
		same(t, "calls", 20, p.calls)
		same(t, "stats", flow.RecorderStats{Coupons: 511, Batches: 1, Letters: 1, Breaker: "closed"}, r.Stats())
	})
}

func TestAManyTimesRefusedBatchDoesNotOpenTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &journal{}, newPage()
		j.add(flow.Batch{Campaign: "unknown", Coupons: coupons("unknown", 1, 64)})
		p.refuses = func(firstcome.Coupon) bool { return true }
		start := time.Now()
		r := recordAll(t, j, p, flow.RecorderLimits{})
		same(t, "stats", flow.RecorderStats{Batches: 1, Letters: 64, Breaker: "closed"}, r.Stats())
		if took := time.Since(start); took != time.Hour {
			t.Errorf("it waited: %v", took)
		}
	})
}

func TestF44GarbageIsBuriedAndTheRestFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &journal{}, newPage()
		garbage := flow.Garbage{Source: "journal/7-0", Payload: "\x00", Cause: "unknown version"}
		j.add(flow.Batch{Campaign: "c", Garbage: []flow.Garbage{garbage}, Coupons: coupons("c", 1, 3)})
		j.add(flow.Batch{Campaign: "c", Garbage: []flow.Garbage{garbage}})
		var drained []int64
		j.took = func(s flow.Drained) error { drained = append(drained, s.Through); return nil }
		recordAll(t, j, p, flow.RecorderLimits{})
		same(t, "recorded", numbers(1, 3), p.order)
		same(t, "dead letters", map[string]string{"journal/7-0": "unknown version"}, p.letters)
		same(t, "drained", []int64{4, 4}, drained)
	})
}

// TestF45DuplicatedDelayedAndReorderedBatchesLeaveTheSameBooks has three recorders
// drain journals that hold overlapping parts of the same coupons in any order, of
// a ledger that fails at random, before and after its commit.
func TestF45DuplicatedDelayedAndReorderedBatchesLeaveTheSameBooks(t *testing.T) {
	for from := range seed.Each(t, 20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(from, 45))
			p := newPage()
			luck := rand.New(rand.NewPCG(from, 53))
			fails := func() error {
				if luck.IntN(4) == 0 {
					return errors.New("bad connection")
				}
				return nil
			}
			p.before, p.after = fails, fails
			var wait sync.WaitGroup
			for range 3 {
				j := &journal{}
				var batches []flow.Batch
				for first := int64(1); first <= 200; first += 10 {
					batches = append(batches, flow.Batch{Campaign: "c", Coupons: coupons("c", first, min(200, first+9+random.Int64N(10)))})
				}
				random.Shuffle(len(batches), func(a, b int) { batches[a], batches[b] = batches[b], batches[a] })
				for _, b := range append(batches, batches[0]) {
					j.add(b)
				}
				wait.Go(func() { recordAll(t, j, p, flow.RecorderLimits{}) })
			}
			wait.Wait()
			slices.Sort(p.order)
			same(t, fmt.Sprint("recorded once each, with seed ", from), numbers(1, 200), p.order)
		})
	}
}

// A flood is a source of many batches, made when they are asked for.
type flood struct {
	batches, width int64
	given          int64
}

func (f *flood) Drain(ctx context.Context, to flow.Sink) error {
	for ; f.given < f.batches; f.given++ {
		first := f.given*f.width + 1
		if _, err := to(ctx, flow.Batch{Campaign: "c", Coupons: coupons("c", first, first+f.width-1)}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// counting is a keeper that only counts, slowly, and fails now and then.
type counting struct {
	calls, last, widest int64
	outOfOrder          bool
}

func (c *counting) Record(_ context.Context, b flow.Batch) (flow.Drained, error) {
	c.calls++
	time.Sleep(20 * time.Millisecond)
	if c.calls%10 == 0 {
		return flow.Drained{}, errors.New("too slow")
	}
	c.widest = max(c.widest, int64(len(b.Coupons)))
	c.outOfOrder = c.outOfOrder || b.Coupons[0].Number != c.last+1
	c.last = b.Coupons[len(b.Coupons)-1].Number
	return flow.Drained{Through: c.last}, nil
}

func (c *counting) Bury(context.Context, flow.Batch, string) (flow.Drained, error) {
	return flow.Drained{}, errors.New("there is nothing to bury")
}

func TestF49ABacklogOfAMillionDrainsOneBatchAtATimeWithoutLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := &flood{batches: 1000, width: 1000}, &counting{}
		r := flow.NewRecorder(f, c, flow.RecorderLimits{Rows: 20_000})
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

func TestARecorderDrainsAgainAfterItsJournalFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &journal{}, newPage()
		for n := range int64(3) {
			j.add(flow.Batch{Campaign: "c", Coupons: coupons("c", n+1, n+1)})
		}
		failures := 2
		j.took = func(flow.Drained) error {
			if failures--; failures >= 0 {
				return errors.New("the journal's connection is gone")
			}
			return nil
		}
		recordAll(t, j, p, flow.RecorderLimits{})
		same(t, "recorded", numbers(1, 3), p.order)
	})
}

func TestOneCampaignThatCannotBeRecordedHereDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		j.add(flow.Batch{Campaign: "other", Coupons: coupons("other", 1, 1)})
		for n := range int64(100) {
			j.add(flow.Batch{Campaign: "c", Coupons: coupons("c", n+1, n+1)})
		}
		p := newPage()
		r := flow.NewRecorder(j, mismatched{p}, flow.RecorderLimits{})
		runFor(t, r, time.Minute)
		same(t, "recorded", numbers(1, 100), p.order)
		if s := r.Stats(); s.Breaker != "closed" || s.Retries != 0 {
			t.Errorf("stats: %+v", s)
		}
		if b, ok := j.next("other"); !ok || len(b.Coupons) != 1 {
			t.Error("the other campaign's batch does not come again")
		}
	})
}

// mismatched is a keeper of which one campaign has another gate, and one is held by somebody.
type mismatched struct{ *page }

func (m mismatched) Record(ctx context.Context, b flow.Batch) (flow.Drained, error) {
	switch b.Campaign {
	case "other":
		return flow.Drained{}, firstcome.ErrGateMismatch
	case "held":
		return flow.Drained{}, flow.ErrRowLocked
	}
	return m.page.Record(ctx, b)
}
