package recovery_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A cutGate restarts from a file that is synced before each answer, but lost its end. The gate agrees with itself and with the ledger: its last
// number is 3.
type cutGate struct {
	recovery.Gate
	mu       sync.Mutex // guards what follows
	was, is  string
	line     bool // it has one, whose last ticket is 3
	frozen   bool
	verified time.Time
}

func (g *cutGate) Runs(context.Context) ([]recovery.Run, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []recovery.Run{{ID: g.is, Durable: true}}, nil
}

func (g *cutGate) Rename(context.Context) error { return nil }

func (g *cutGate) Named(context.Context) (bool, error) { return true, nil }

func (g *cutGate) Inspect(context.Context, gate.Revision) error {
	if s, _ := g.GateState(context.Background(), gate.Revision{}); s.Frozen || s.Was != s.Is {
		return gate.ErrUnverified
	}
	return nil
}

func (g *cutGate) GateState(context.Context, gate.Revision) (recovery.GateState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	line := firstcome.Ticket{}
	if g.line {
		line = firstcome.Ticket{Generation: 1, Number: 3}
	}
	return recovery.GateState{Line: g.line, Ticket: line, Was: g.was, Is: g.is, Frozen: g.frozen, Epoch: 1, Version: 1, LastNumber: 3, DrainedThrough: 3, InForce: 3, Holders: 3, Quantity: 100}, nil
}

func (g *cutGate) Verified(_ context.Context, _ gate.Revision, s recovery.GateState) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen {
		return recovery.ErrMoved
	}
	g.was, g.verified = s.Is, time.Now()
	return nil
}

func (g *cutGate) HoldsEach(_ context.Context, _ gate.Revision, coupons []firstcome.Coupon) ([]bool, error) {
	return slices.Repeat([]bool{true}, len(coupons)), nil
}

// restart gives the gate's server another run.
func (g *cutGate) restart() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.is = "second"
}

// A toldGate is a cutGate that has told its node something.
type toldGate struct {
	*cutGate
	told gate.Witness
}

func (g *toldGate) GateState(ctx context.Context, r gate.Revision) (recovery.GateState, error) {
	s, err := g.cutGate.GateState(ctx, r)
	s.Witness = g.told
	return s, err
}

// A cutBook has the coupons 1 to 3 of a campaign.
type cutBook struct {
	recovery.Records
	recovery.Ledger
	answer firstcome.AnswerWhen
	gate   *cutGate
	begun  chan<- string // who froze it
	node   string
}

func (b *cutBook) LineHistory(context.Context, firstcome.CampaignID) (recovery.LineHistory, error) {
	return recovery.LineHistory{}, nil
}

func (b *cutBook) SeeRun(context.Context, recovery.Run) error { return nil }

func (b *cutBook) Active(context.Context) ([]gate.Revision, error) {
	return []gate.Revision{{Campaign: "c", Version: 1, Epoch: 1, Drained: 3}}, nil
}

func (b *cutBook) DurableRun(context.Context, string) (durable, seen bool, err error) {
	return true, true, nil
}

func (b *cutBook) LedgerState(context.Context, firstcome.CampaignID, int64) (recovery.LedgerState, error) {
	c := firstcome.Campaign{ID: "c", Version: 1, Terms: firstcome.Terms{Quantity: 100, Answer: b.answer}}
	return recovery.LedgerState{Campaign: c, Applied: 1, Epoch: 1, LastNumber: 3, DrainedThrough: 3}, nil
}

func (b *cutBook) Refills(context.Context, firstcome.CampaignID, func(firstcome.Coupon) error) (recovery.Mark, error) {
	return recovery.Mark{}, nil
}

func (b *cutBook) LastRebuild(context.Context, firstcome.CampaignID) (recovery.Rebuilt, error) {
	return recovery.Rebuilt{}, nil
}

// BeginRebuild freezes the gate for the rest of the test.
func (b *cutBook) BeginRebuild(context.Context, string, firstcome.CampaignID, int64) (recovery.Rebuild, error) {
	b.gate.mu.Lock()
	defer b.gate.mu.Unlock()
	if !b.gate.frozen {
		b.begun <- b.node
	}
	b.gate.frozen = true
	return recovery.Rebuild{}, recovery.ErrSuperseded
}

// TestF04ANodeThatWasToldANumberWhichTheGateForgotHasItRebuilt restarts a gate of two nodes, one of which looks 0.9 seconds after the other. The gate
// agrees with the ledger. Only a node may know that it issued more numbers.
func TestF04ANodeThatWasToldANumberWhichTheGateForgotHasItRebuilt(t *testing.T) {
	const decided, recorded = firstcome.Decided, firstcome.Recorded
	number := func(n int64) gate.Witness { return gate.Witness{Epoch: 1, Version: 1, Number: n} }
	all, more := number(3), number(4)
	changed, ticket := gate.Witness{Epoch: 1, Version: 2}, gate.Witness{Epoch: 1, Ticket: firstcome.Ticket{Generation: 1, Number: 4}}
	soon, early, verified := [2]time.Duration{0, time.Second}, [2]time.Duration{0, 2 * time.Second}, [2]time.Duration{2 * time.Second, 3 * time.Second}
	type told = map[string]gate.Witness
	for name, c := range map[string]struct {
		answer   firstcome.AnswerWhen
		line     bool
		told     told             // to the nodes
		rebuilds string           // which node does; empty: the gate is verified
		within   [2]time.Duration // how long that takes
	}{
		"both were told all that it has":                                              {decided, false, told{"early": all, "late": all}, "", verified},
		"nobody was told anything":                                                    {decided, false, nil, "", verified},
		"nobody is told anything that is not recorded":                                {recorded, false, nil, "", soon},
		"nobody is told anything that is not recorded but places":                     {recorded, true, nil, "", verified},
		"who looks first was told more":                                               {decided, false, told{"early": more, "late": all}, "early", soon},
		"who looks last was told more":                                                {decided, false, told{"early": all, "late": more}, "late", early},
		"only who looks last was told anything":                                       {decided, false, told{"late": more}, "late", early},
		"who looks last was told of a later change":                                   {decided, false, told{"late": changed}, "late", early},
		"who looks last was told a later ticket":                                      {recorded, true, told{"late": ticket}, "late", early},
		"what was told where nobody is told anything that is not recorded holds, too": {recorded, false, told{"early": more}, "early", soon},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, begun := &cutGate{was: "first", is: "first", line: c.line}, make(chan string, 10)
				ctx, end := context.WithCancel(t.Context())
				defer end()
				for node, after := range map[string]time.Duration{"early": 0, "late": 900 * time.Millisecond} {
					reached := &toldGate{g, c.told[node]}
					book := &cutBook{answer: c.answer, gate: g, begun: begun, node: node}
					r := recovery.New(book, book, reached, recovery.NewWatch(nil), nil)
					go func() {
						time.Sleep(after)
						if err := r.Run(ctx); err != nil {
							t.Error(err)
						}
					}()
				}
				time.Sleep(2*time.Second - time.Millisecond)
				g.restart()
				from := time.Now()
				time.Sleep(10 * time.Second)
				rebuilds := ""
				if len(begun) > 0 {
					rebuilds = <-begun
				}
				g.mu.Lock()
				defer g.mu.Unlock()
				took := g.verified.Sub(from)
				switch {
				case rebuilds != c.rebuilds || g.verified.IsZero() == (rebuilds == ""):
					t.Errorf("%q rebuilds, want %q; it was verified at %v", rebuilds, c.rebuilds, g.verified)
				case rebuilds == "" && (took < c.within[0] || took > c.within[1]):
					t.Errorf("it is verified %v after the restart, want %v", took, c.within)
				}
			})
		})
	}
}

// TestF04AnOrderToRebuildWaitsForANodeThatWasToldMore orders a rebuild of a lost campaign right after a restart, in a process that sees the server
// for the first time, as the command firstcome gate rebuild does. A node that looks 0.9 seconds later was told a higher number than the gate has.
func TestF04AnOrderToRebuildWaitsForANodeThatWasToldMore(t *testing.T) {
	for name, c := range map[string]struct {
		told     int64
		rebuilds string // which process does; empty: the gate is verified
	}{
		"the node was told more":               {4, "node"},
		"the node was told all that there was": {3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, begun := &cutGate{was: "first", is: "first"}, make(chan string, 10)
				rebuilder := func(node string, told int64) *recovery.Machine {
					book := &cutBook{answer: firstcome.Decided, gate: g, begun: begun, node: node}
					return recovery.New(book, book, &toldGate{g, gate.Witness{Epoch: 1, Number: told}}, recovery.NewWatch(nil), nil)
				}
				ctx, end := context.WithTimeout(t.Context(), 10*time.Second)
				defer end()
				node := rebuilder("node", c.told)
				go func() {
					if err := node.Run(ctx); err != nil {
						t.Error(err)
					}
				}()
				time.Sleep(100 * time.Millisecond)
				g.restart()
				_, err := rebuilder("order", 0).Rebuild(ctx, "op", "c", recovery.Order{IfLost: true})
				rebuilds := ""
				if len(begun) > 0 {
					rebuilds = <-begun
				}
				g.mu.Lock()
				defer g.mu.Unlock()
				if rebuilds != c.rebuilds || g.verified.IsZero() == (rebuilds == "") || (err == nil) != (rebuilds == "") {
					t.Errorf("%q rebuilds, want %q; it was verified at %v; the order got %v", rebuilds, c.rebuilds, g.verified, err)
				}
			})
		})
	}
}
