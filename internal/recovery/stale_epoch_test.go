package recovery_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// An agingGate is a server that never restarts and stays in its epoch, and the ledger of its one campaign, c.
type agingGate struct {
	recovery.Gate
	recovery.Records
	recovery.Ledger

	mu           sync.Mutex // guards what follows
	gate, ledger int64      // epochs; ledger 0: the campaign is another gate's
	frozen       bool
	away         error // why the gate does not answer
	asked        int   // of its campaign
	begun        int   // rebuilds
	run          string
	seen         *sync.Map // when runs were reported
	hangs        chan struct{}
}

func (g *agingGate) LineHistory(context.Context, firstcome.CampaignID) (recovery.LineHistory, error) {
	return recovery.LineHistory{}, nil
}

// set changes it.
func (g *agingGate) set(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
}

func (g *agingGate) Runs(context.Context) ([]recovery.Run, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []recovery.Run{{ID: cmp.Or(g.run, "the only one")}}, g.away
}

func (g *agingGate) Named(context.Context) (bool, error) { return true, nil }

func (g *agingGate) Inspect(_ context.Context, r gate.Revision) error {
	if g.hangs != nil {
		<-g.hangs
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	switch {
	case g.away != nil:
		return g.away
	case g.frozen:
		return gate.ErrUnverified
	case g.gate < r.Epoch:
		return &gate.StaleEpochError{Campaign: r.Campaign, Gate: g.gate, Ledger: r.Epoch}
	}
	return nil
}

func (g *agingGate) GateState(context.Context, gate.Revision) (recovery.GateState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return recovery.GateState{Was: "the only one", Is: "the only one", Epoch: g.gate, Frozen: g.frozen}, g.away
}

func (g *agingGate) SeeRun(_ context.Context, run recovery.Run) error {
	if g.seen != nil {
		g.seen.Store(run.ID, time.Now())
	}
	return nil
}

func (g *agingGate) RecentRuns(_ context.Context, within time.Duration) (runs []string, err error) {
	g.seen.Range(func(run, at any) bool {
		if time.Since(at.(time.Time)) < within {
			runs = append(runs, run.(string))
		}
		return true
	})
	return runs, nil
}

func (g *agingGate) Active(context.Context) (all []gate.Revision, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ledger > 0 {
		all = append(all, gate.Revision{Campaign: "c", Epoch: g.ledger})
	}
	return all, nil
}

func (g *agingGate) BeginRebuild(context.Context, string, firstcome.CampaignID, int64) (recovery.Rebuild, error) {
	g.set(func() { g.begun++ })
	return recovery.Rebuild{}, recovery.ErrSuperseded
}

// Record implements record.Keeper. Coupons of an earlier epoch are lost.
func (g *agingGate) Record(_ context.Context, b record.Batch) (drained record.Result, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if drained.Epoch = g.ledger; b.Epoch < g.ledger {
		drained.Lost = int64(len(b.Coupons))
	}
	return drained, nil
}

// Bury implements record.Keeper.
func (g *agingGate) Bury(context.Context, record.Batch, string) (record.Result, error) {
	return record.Result{}, nil
}

// aging runs a Machine of an agingGate in a synctest bubble, and reports the refusals.
func aging(t *testing.T, test func(t *testing.T, g *agingGate, r *recovery.Machine, told *[]error)) {
	synctest.Test(t, func(t *testing.T) {
		g, told := &agingGate{gate: 1, ledger: 1}, &[]error{}
		r := recovery.New(g, g, g, recovery.NewWatch(func(err error) { *told = append(*told, err) }), nil)
		stop := stage.Run(t, r.Run)
		defer stop()
		time.Sleep(1500 * time.Millisecond) // it has looked twice, and looks again in half a second
		synctest.Wait()
		stage.Same(t, "how often it was asked before anything happens", 1, g.asked)
		test(t, g, r, told)
	})
}

// TestF03AGateIsAskedASecondAfterItsEpochEnded ends an epoch in the ledger, as a rebuild of another server does, while this server continues. A node
// checks once a second whether epochs have ended, and each campaign only once a minute.
func TestF03AGateIsAskedASecondAfterItsEpochEnded(t *testing.T) {
	aging(t, func(t *testing.T, g *agingGate, r *recovery.Machine, told *[]error) {
		g.set(func() { g.ledger = 2 })
		time.Sleep(time.Second)
		synctest.Wait()
		if err := r.Refusal("c"); !errors.Is(err, gate.ErrStaleEpoch) {
			t.Fatalf("a second later: %v", err)
		}
		stage.Same(t, "the epoch as it is known", int64(2), r.Noted("c").Epoch)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		stage.Same(t, "how often that was told, and how many rebuilds have begun", []int{1, 0}, []int{len(*told), g.begun})
		if s := r.Stats(); s.StaleEpoch != 1 || s.Broken != 0 || !errors.Is(r.Troubles()["c"], gate.ErrStaleEpoch) {
			t.Errorf("%+v, %v", s, r.Troubles())
		}
		g.set(func() { g.gate = 2 }) // its address leads to the other gate
		time.Sleep(time.Second)
		synctest.Wait()
		stage.Same(t, "what refuses it then", nil, r.Refusal("c"))
		g.set(func() { g.gate = 1 })
		r.Suspect("c", gate.ErrUnverified)
		synctest.Wait()
		stage.Same(t, "how often it was told when it comes again", 2, len(*told))
	})
}

// TestF03AStaleGateIsRebuiltOnceNoNodeReachesAnother lets two nodes find that an epoch has ended. Only one of them may rebuild without an operator.
// The second node gets no answer about the campaign for a while, but still reports which server it reaches.
func TestF03AStaleGateIsRebuiltOnceNoNodeReachesAnother(t *testing.T) {
	for name, c := range map[string]struct {
		run  string // that the other node reaches
		want []int  // rebuilds before ten seconds, then, and when the other node has ended
	}{
		"one run":  {"stale", []int{0, 1, 1}},
		"two runs": {"current", []int{0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := &sync.Map{}
				near := &agingGate{gate: 1, ledger: 2, run: "stale", seen: seen}
				far := &agingGate{gate: 1, ledger: 2, run: c.run, seen: seen, hangs: make(chan struct{})}
				node, other := recovery.New(near, near, near, recovery.NewWatch(nil), nil), recovery.New(far, far, far, recovery.NewWatch(nil), nil)
				node.Auto = true
				defer stage.Run(t, node.Run)()
				stop := stage.Run(t, other.Run)
				var got []int
				begun := func(after time.Duration) {
					time.Sleep(after)
					synctest.Wait()
					near.set(func() { got = append(got, min(near.begun, 1)) })
				}
				begun(9900 * time.Millisecond)
				begun(time.Minute)
				close(far.hangs)
				stop()
				begun(11 * time.Second)
				stage.Same(t, "whether a rebuild has begun", c.want, got)
				stage.Same(t, "rebuilds by the node that is not to", 0, far.begun)
			})
		})
	}
}

// TestF03AGateThatDoesNotAnswerIsAskedOnceItDoes ends an epoch while the gate does not answer.
func TestF03AGateThatDoesNotAnswerIsAskedOnceItDoes(t *testing.T) {
	aging(t, func(t *testing.T, g *agingGate, r *recovery.Machine, _ *[]error) {
		g.set(func() { g.ledger, g.away = 2, errFull })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		stage.Same(t, "what refuses it while nobody knows", nil, r.Refusal("c"))
		g.set(func() { g.away = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		if err := r.Refusal("c"); !errors.Is(err, gate.ErrStaleEpoch) {
			t.Errorf("a second later: %v", err)
		}
	})
}

// TestF03AGateThatIsNobodysAnyMoreIsNotRefused makes another Redis, with a name of its own, the campaign's gate.
func TestF03AGateThatIsNobodysAnyMoreIsNotRefused(t *testing.T) {
	aging(t, func(t *testing.T, g *agingGate, r *recovery.Machine, _ *[]error) {
		g.set(func() { g.ledger = 2 })
		time.Sleep(time.Second)
		synctest.Wait()
		g.set(func() { g.ledger = 0 })
		time.Sleep(time.Second)
		synctest.Wait()
		if s := r.Stats(); s.StaleEpoch != 0 || r.Refusal("c") != nil {
			t.Errorf("%+v, %v", s, r.Refusal("c"))
		}
	})
}

// TestF03ARecorderOfAnOlderGatesCouponsHasItAskedAtOnce records batches between two looks.
func TestF03ARecorderOfAnOlderGatesCouponsHasItAskedAtOnce(t *testing.T) {
	aging(t, func(t *testing.T, g *agingGate, r *recovery.Machine, told *[]error) {
		keeper := r.Guard(g)
		give := func(epoch int64) {
			t.Helper()
			drained, err := keeper.Record(t.Context(), record.Batch{Campaign: "c", Epoch: epoch, Coupons: stage.Coupons("c", 1, 2)})
			if err != nil || drained.Epoch != g.ledger {
				t.Errorf("a batch of epoch %d: %+v, %v", epoch, drained, err)
			}
		}
		give(1)
		stage.Same(t, "how often it was asked", 1, g.asked)
		g.set(func() { g.ledger, g.gate = 2, 2 })
		give(1) // by a recorder that was late
		stage.Same(t, "how often it was asked of a batch that is late, and what refuses it", []any{2, nil}, []any{g.asked, r.Refusal("c")})
		g.set(func() { g.ledger = 3 })
		give(2)
		if err := r.Refusal("c"); !errors.Is(err, gate.ErrStaleEpoch) || len(*told) != 1 {
			t.Errorf("%v, %v", err, *told)
		}
		asked := g.asked
		give(2) // it goes to the ledger all the same
		stage.Same(t, "how often it was asked when it is known", asked, g.asked)
		if _, err := keeper.Bury(t.Context(), record.Batch{Campaign: "c", Epoch: 2, Coupons: stage.Coupons("c", 3, 3)}, "refused"); err != nil {
			t.Errorf("what the ledger refuses of it is no dead letter: %v", err)
		}
	})
}

// TestF18AFrozenGateIsNoOlderOne ends an epoch in the ledger before its gate is switched.
func TestF18AFrozenGateIsNoOlderOne(t *testing.T) {
	aging(t, func(t *testing.T, g *agingGate, r *recovery.Machine, _ *[]error) {
		g.set(func() { g.frozen, g.ledger = true, 2 })
		stage.Same(t, "a change", nil, r.Newest(t.Context(), "c"))
		time.Sleep(time.Second)
		synctest.Wait()
		stage.Same(t, "whether a rebuild begins, and what refuses it", []any{true, nil}, []any{g.begun > 0, r.Refusal("c")})
	})
}
