package stage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A Gate is a fake of one beside the ledger: it decides by the rule, in memory, and keeps what it issued until a
// test settles it. conform.Gate holds it to what the real ones do. Make one with NewGate.
type Gate struct {
	mu        sync.Mutex // guards what follows
	campaigns map[firstcome.CampaignID]*Drop
	watchers  map[int]func(firstcome.CampaignID, int64)
	watches   int
	calls     [][]firstcome.UserID
	// Clock is the gate's.
	Clock func() time.Time
	Rules
	// Before, if set, is called at the beginning of each call of Claim, which returns its error.
	Before func(context.Context, firstcome.CampaignID) error
	// Changes, if set, is the error of changes.
	Changes error
	// States, if set, changes what is told of a campaign's state.
	States func(firstcome.CampaignID, *gate.State) error
	// Issued, if set, is told the numbers that are issued.
	Issued func(int64)
}

// A Drop is a campaign of a Gate.
type Drop struct {
	Course
	Gone    bool               // the gate has lost it, or was told to forget it
	Journal []firstcome.Coupon // issued, and not taken to the ledger
	Applied []int64            // versions, as they took effect
}

// NewGate returns a gate with campaigns of a quantity.
func NewGate(quantity int64, ids ...firstcome.CampaignID) *Gate {
	g := &Gate{
		campaigns: map[firstcome.CampaignID]*Drop{}, watchers: map[int]func(firstcome.CampaignID, int64){},
		Clock: time.Now, Rules: Rules{Lease: 200 * time.Millisecond, LeasesCoupons: true},
	}
	g.Make(quantity, ids...)
	return g
}

// Make makes campaigns of a quantity.
func (g *Gate) Make(quantity int64, ids ...firstcome.CampaignID) {
	for _, id := range ids {
		terms := firstcome.Terms{Quantity: quantity}
		_, _ = g.Apply(context.Background(), firstcome.Change{Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: terms})
	}
}

// Set changes the gate as a test wants, while nobody calls it.
func (g *Gate) Set(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
}

// Course returns a campaign, nil if there is none. Who looks at it while others call the gate does so within Set.
func (g *Gate) Course(id firstcome.CampaignID) *Drop { return g.campaigns[id] }

// Seen returns the batches that the gate got.
func (g *Gate) Seen() [][]firstcome.UserID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// of calls do with a campaign.
func (g *Gate) of(id firstcome.CampaignID, do func(*Drop)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[id]
	switch {
	case c == nil:
		return firstcome.ErrNoCampaign
	case c.Gone:
		return gate.ErrGone
	}
	do(c)
	return nil
}

// Claim is gate.Decider's.
func (g *Gate) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.claim(ctx, id, users, false)
}

func (g *Gate) claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID, direct bool) (all []firstcome.Decision, err error) {
	if before := g.before(); before != nil {
		if err := before(ctx, id); err != nil {
			return nil, err
		}
	}
	g.Set(func() { g.calls = append(g.calls, users) })
	err = g.of(id, func(c *Drop) {
		var b record.Batch
		all, b = c.Claim(g.Rules, g.Clock(), users, direct)
		g.journal(c, b.Coupons)
	})
	return all, err
}

// journal keeps what was issued for the ledger.
func (g *Gate) journal(c *Drop, issued []firstcome.Coupon) {
	c.Journal = append(c.Journal, issued...)
	for _, one := range issued {
		if g.Issued != nil {
			g.Issued(one.Number)
		}
	}
}

func (g *Gate) before() func(context.Context, firstcome.CampaignID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Before
}

// Holders is gate.Decider's.
func (g *Gate) Holders(_ context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	err = g.of(id, func(c *Drop) {
		version = c.Version
		for user := range c.Holders {
			each(user)
		}
	})
	return version, err
}

// Apply is gate.Applier's.
func (g *Gate) Apply(_ context.Context, change firstcome.Change) (refused bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[change.Campaign]
	switch {
	case g.Changes != nil:
		return false, g.Changes
	case c == nil && change.Version == 1:
		c = &Drop{Course: NewCourse(change, nil)}
		g.campaigns[change.Campaign] = c
	case c == nil, c.Gone:
		return false, gate.ErrGone
	}
	before := c.Version
	refused, _, err = c.Apply(g.Rules, g.Clock(), change)
	if c.Version > before {
		c.Applied = append(c.Applied, c.Version)
	}
	return refused, err
}

// CouponOf is gate.Coupons'.
func (g *Gate) CouponOf(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (held firstcome.Coupon, err error) {
	holds := false
	err = g.of(id, func(c *Drop) {
		if held, holds = c.Holders[user]; holds {
			held = c.Told(held)
		}
	})
	if err == nil && !holds {
		err = firstcome.ErrNoCoupon
	}
	return held, err
}

// State is gate.Epochs'.
func (g *Gate) State(_ context.Context, id firstcome.CampaignID) (state gate.State, err error) {
	err = g.of(id, func(c *Drop) {
		state = gate.State{
			Waiting: c.Line.Waiting,
			Version: c.Version, Epoch: c.Epoch, InForce: int64(len(c.Holders)), Issued: c.Last, LastNumber: c.Last,
			DrainedThrough: c.Drained, Now: g.Clock().UTC(), Instants: c.Instants,
		}
	})
	if err == nil && g.States != nil {
		g.Set(func() { err = g.States(id, &state) })
	}
	return state, err
}

// Decides is gate.Epochs'.
func (g *Gate) Decides(_ context.Context, id firstcome.CampaignID, _ int64) error {
	return g.of(id, func(*Drop) {})
}

// DrainedThrough is gate.Progress'.
func (g *Gate) DrainedThrough(_ context.Context, id firstcome.CampaignID) (through int64, err error) {
	err = g.of(id, func(c *Drop) { through = c.Drained })
	return through, err
}

// Has is gate.Progress'.
func (g *Gate) Has(_ context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (has []bool, err error) {
	err = g.of(id, func(c *Drop) {
		for _, one := range coupons {
			held := c.Holders[one.User]
			has = append(has, held.Number == one.Number && c.Told(held).Recorded)
		}
	})
	return has, err
}

// Take returns what is on its way to the ledger, which has left the journal then.
func (g *Gate) Take(id firstcome.CampaignID) (coupons []firstcome.Coupon) {
	_ = g.of(id, func(c *Drop) { coupons, c.Journal = c.Journal, nil })
	return coupons
}

// Record does what a recorder does with what the gate issued.
func (g *Gate) Record(t testing.TB, to record.Keeper, id firstcome.CampaignID) {
	t.Helper()
	drained, err := to.Record(context.Background(), record.Batch{Campaign: id, Epoch: 1, Coupons: g.Take(id)})
	Must(t, err)
	g.Settle(id, drained)
}

// Bury does what a recorder does with what the ledger refuses.
func (g *Gate) Bury(t testing.TB, to record.Keeper, id firstcome.CampaignID, cause string) {
	t.Helper()
	drained, err := to.Bury(context.Background(), record.Batch{Campaign: id, Epoch: 1, Coupons: g.Take(id)}, cause)
	Must(t, err)
	g.Settle(id, drained)
}

// Settle notes what a recorder brought to the ledger, and tells who watches.
func (g *Gate) Settle(id firstcome.CampaignID, drained record.Result) {
	var tell []func(firstcome.CampaignID, int64)
	_ = g.of(id, func(c *Drop) {
		for _, dead := range drained.Letters {
			if held := c.Holders[dead.User]; held.Number == dead.Number {
				held.Buried = true
				c.Holders[dead.User] = held
			}
		}
		c.Drained = max(c.Drained, drained.Through)
		tell = slices.Collect(maps.Values(g.watchers))
	})
	for _, each := range tell {
		each(id, drained.Through)
	}
}

// WatchDrained is gate.Progress'.
func (g *Gate) WatchDrained(ctx context.Context, ready func(), each func(firstcome.CampaignID, int64)) error {
	var one int
	g.Set(func() {
		g.watches++
		one = g.watches
		g.watchers[one] = each
	})
	ready()
	<-ctx.Done()
	g.Set(func() { delete(g.watchers, one) })
	return nil
}

// Retire is recovery.Forgetter's.
func (g *Gate) Retire(_ context.Context, id firstcome.CampaignID) error {
	g.Set(func() {
		if c := g.campaigns[id]; c != nil {
			c.Gone = true
		}
	})
	return nil
}

// Issue is gate.Decider's. There is no audit log.
func (g *Gate) Issue(ctx context.Context, _ gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.claim(ctx, id, users, true)
}

// Serve is gate.Line's.
func (g *Gate) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (served gate.Served, err error) {
	if before := g.before(); before != nil {
		if err := before(ctx, id); err != nil {
			return gate.Served{}, err
		}
	}
	err = g.of(id, func(c *Drop) {
		served, _ = c.Serve(g.Rules, g.Clock(), limit)
		g.journal(c, served.Coupons)
	})
	return served, err
}

// Lines is gate.Line's.
func (g *Gate) Lines(_ context.Context, each func(firstcome.CampaignID)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, c := range g.campaigns {
		if c.Line.Waiting > 0 {
			each(id)
		}
	}
	return nil
}

// Place is gate.Places'.
func (g *Gate) Place(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (place firstcome.Place, held firstcome.Coupon, err error) {
	known := g.of(id, func(c *Drop) { place, held, err = c.PlaceOf(g.Rules, g.Clock(), user) })
	return place, held, cmp.Or(known, err)
}

// Leave is gate.Places'.
func (g *Gate) Leave(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	known := g.of(id, func(c *Drop) { left, err = c.Leave(g.Rules, g.Clock(), user) })
	return left, cmp.Or(known, err)
}

// Stays is gate.Places'.
func (g *Gate) Stays(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (stays []gate.Stay, err error) {
	err = g.of(id, func(c *Drop) { stays = c.StaysOf(g.Rules, g.Clock(), user) })
	return stays, err
}

// LineOf is gate.Places'.
func (g *Gate) LineOf(_ context.Context, id firstcome.CampaignID) (state gate.LineState, err error) {
	err = g.of(id, func(c *Drop) { state = c.LineOf(g.Rules, g.Clock()) })
	return state, err
}
