package stage

import (
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
	campaigns map[firstcome.CampaignID]*Course
	watchers  map[int]func(firstcome.CampaignID, int64)
	watches   int
	calls     [][]firstcome.UserID
	// Clock is the gate's.
	Clock func() time.Time
	// Lease is the longest that it grants.
	Lease time.Duration
	// MaxLine is how many people may be in line of a campaign; 0: any number.
	MaxLine int64
	// Records tells that what it issues is recorded at once, as where the ledger decides.
	Records bool
	// Before, if set, is called at the beginning of each call of Claim, which returns its error.
	Before func(context.Context, firstcome.CampaignID) error
	// Changes, if set, is the error of changes.
	Changes error
	// States, if set, changes what is told of a campaign's state.
	States func(firstcome.CampaignID, *gate.State) error
	// Issued, if set, is told the numbers that are issued.
	Issued func(int64)
}

// NewGate returns a gate with campaigns of a quantity.
func NewGate(quantity int64, ids ...firstcome.CampaignID) *Gate {
	g := &Gate{
		campaigns: map[firstcome.CampaignID]*Course{}, watchers: map[int]func(firstcome.CampaignID, int64){},
		Clock: time.Now, Lease: 200 * time.Millisecond,
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
func (g *Gate) Course(id firstcome.CampaignID) *Course { return g.campaigns[id] }

// Seen returns the batches that the gate got.
func (g *Gate) Seen() [][]firstcome.UserID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// of calls do with a campaign.
func (g *Gate) of(id firstcome.CampaignID, do func(*Course)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[id]
	switch {
	case c == nil:
		return firstcome.ErrNoCampaign
	case c.Gone:
		return gate.ErrLost
	}
	do(c)
	return nil
}

// now returns the gate's time for a campaign, which does not go back.
func (g *Gate) now(c *Course) time.Time {
	if now := g.Clock().UTC().Truncate(time.Microsecond); now.After(c.seen) {
		return now
	}
	return c.seen
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
	err = g.of(id, func(c *Course) {
		for _, user := range users {
			all = append(all, g.decide(c, user, direct))
		}
	})
	return all, err
}

func (g *Gate) before() func(context.Context, firstcome.CampaignID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Before
}

func (g *Gate) decide(c *Course, user firstcome.UserID, direct bool) firstcome.Decision {
	now, before := g.now(c), c.Line
	c.endLine(now, false)
	campaign := c.lined()
	opened := campaign.Opened(now)
	if direct {
		campaign = campaign.Direct()
	}
	held, holds := c.Holders[user]
	ticket, waits := c.Tickets[user]
	d := firstcome.Decision{
		Outcome: firstcome.Decide(campaign, now, int64(len(c.Holders)), holds, waits && !direct), At: now, Version: c.Version, TermsVersion: c.TermsVersion,
	}
	moves := d.Outcome == firstcome.Issued || !opened.Equal(c.OpenedAt) || c.window(now) != c.window(c.seen)
	c.OpenedAt = opened
	switch d.Outcome {
	case firstcome.Waiting:
		if !waits {
			ticket = c.join(user, g.MaxLine, now)
		}
		if d.Place = campaign.Place(c.Line, ticket, int64(len(c.Holders)), now); ticket == 0 {
			return firstcome.Decision{}
		}
	case firstcome.Issued:
		if held = g.issue(c, user, now, direct); waits {
			c.end(user, true)
		}
	}
	if moves || c.Line != before {
		c.seen = now
	}
	c.SoldOutAt = c.SoldOut(int64(len(c.Holders)), now)
	d.InForce, d.Since, d.OpenedAt = int64(len(c.Holders)), c.Since(d.Outcome), c.OpenedAt
	if d.Outcome.HasCoupon() {
		d.Coupon = c.told(held)
	}
	d.Lease = c.lease(d, g.Lease)
	if direct && !d.Outcome.HasCoupon() {
		d.Lease = 0 // others may hear otherwise
	}
	c.endLine(now, false)
	d.InLine = c.Line.Waiting
	return d
}

func (g *Gate) issue(c *Course, user firstcome.UserID, now time.Time, direct bool) firstcome.Coupon {
	c.Last++
	issued := firstcome.Coupon{
		Campaign: c.ID, Number: c.Last, User: user, Code: Secret().Code(c.ID, c.Last), IssuedAt: now, TermsVersion: c.TermsVersion, Direct: direct,
	}
	c.Holders[user], c.Journal = issued, append(c.Journal, issued)
	if g.Records {
		c.Drained = c.Last
	}
	if g.Issued != nil {
		g.Issued(c.Last)
	}
	return issued
}

// Holders is gate.Decider's.
func (g *Gate) Holders(_ context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	err = g.of(id, func(c *Course) {
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
		c = &Course{
			epoch: change.Epoch, refused: map[int64]bool{}, Holders: map[firstcome.UserID]firstcome.Coupon{},
			Line: firstcome.Line{Generation: 1}, Tickets: map[firstcome.UserID]int64{}, left: map[firstcome.UserID]bool{},
		}
		c.ID, g.campaigns[change.Campaign] = change.Campaign, c
	case c == nil, c.Gone:
		return false, gate.ErrLost
	case change.Version <= c.Version:
		return c.refused[change.Version], nil
	case change.Version > c.Version+1:
		return false, gate.ErrGap
	}
	c.Version = change.Version
	c.Applied = append(c.Applied, c.Version)
	if change.Kind == firstcome.ChangeTerms && change.Terms.Quantity < int64(len(c.Holders)) {
		c.refused[c.Version] = true
		return true, nil
	}
	c.seen = g.now(c)
	c.endLine(c.seen, false)
	c.apply(change)
	c.endLine(c.seen, true)
	c.SoldOutAt = c.SoldOut(int64(len(c.Holders)), c.seen)
	return false, nil
}

// CouponOf is gate.Coupons'.
func (g *Gate) CouponOf(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (held firstcome.Coupon, err error) {
	holds := false
	err = g.of(id, func(c *Course) {
		if held, holds = c.Holders[user]; holds {
			held = c.told(held)
		}
	})
	if err == nil && !holds {
		err = firstcome.ErrNoCoupon
	}
	return held, err
}

// State is gate.Epochs'.
func (g *Gate) State(_ context.Context, id firstcome.CampaignID) (state gate.State, err error) {
	err = g.of(id, func(c *Course) {
		state = gate.State{
			Waiting: c.Line.Waiting,
			Version: c.Version, Epoch: c.epoch, InForce: int64(len(c.Holders)), Issued: c.Last, LastNumber: c.Last,
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
	return g.of(id, func(*Course) {})
}

// DrainedThrough is gate.Drains'.
func (g *Gate) DrainedThrough(_ context.Context, id firstcome.CampaignID) (through int64, err error) {
	err = g.of(id, func(c *Course) { through = c.Drained })
	return through, err
}

// Has is gate.Drains'.
func (g *Gate) Has(_ context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (has []bool, err error) {
	err = g.of(id, func(c *Course) {
		for _, one := range coupons {
			held := c.Holders[one.User]
			has = append(has, held.Number == one.Number && c.told(held).Recorded)
		}
	})
	return has, err
}

// Take returns what is on its way to the ledger, which has left the journal then.
func (g *Gate) Take(id firstcome.CampaignID) (coupons []firstcome.Coupon) {
	_ = g.of(id, func(c *Course) { coupons, c.Journal = c.Journal, nil })
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
func (g *Gate) Settle(id firstcome.CampaignID, drained record.Drained) {
	var tell []func(firstcome.CampaignID, int64)
	_ = g.of(id, func(c *Course) {
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

// WatchDrained is gate.Drains'.
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
