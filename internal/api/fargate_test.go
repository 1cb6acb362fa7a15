package api_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/flow"
)

// farGateName is how campaigns name the far gate.
const farGateName = "redis:test"

// errAway is what a gate answers that is away, and of which nobody waits for the return.
var errAway = flow.ErrLost

// A farGate is a gate in memory beside the ledger. It decides by the rule, and keeps
// what it issued until the test records it.
type farGate struct {
	secret firstcome.Secret
	issued chan int64 // the numbers that it issued; has room for those of a test

	mu        sync.Mutex                     // guards what follows
	away      error                          // what changes get
	refuses   error                          // what claims get
	states    map[firstcome.CampaignID]error // what who asks for a campaign's state gets
	campaigns map[firstcome.CampaignID]*farCampaign
	watchers  map[int]func(firstcome.CampaignID, int64)
	watches   int
	asked     int // how often for a campaign's state
}

// A farCampaign is a campaign as far as its changes came.
type farCampaign struct {
	firstcome.Campaign
	termsVersion int64
	refused      map[int64]bool // versions
	holders      map[firstcome.UserID]firstcome.Coupon
	journal      []firstcome.Coupon
	last         int64
	drained      int64
}

func newFarGate(t testing.TB) *farGate {
	return &farGate{
		secret: codes(t), issued: make(chan int64, 100), campaigns: map[firstcome.CampaignID]*farCampaign{},
		watchers: map[int]func(firstcome.CampaignID, int64){},
	}
}

// set changes the gate as a test wants.
func (g *farGate) set(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
}

func (g *farGate) campaign(id firstcome.CampaignID) (*farCampaign, error) {
	if c := g.campaigns[id]; c != nil {
		return c, nil
	}
	return nil, firstcome.ErrNoCampaign
}

func (g *farGate) Claim(_ context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.campaign(id)
	if g.refuses != nil {
		err = g.refuses
	}
	if err != nil {
		return nil, err
	}
	var all []firstcome.Decision
	for _, user := range users {
		all = append(all, g.decide(c, user))
	}
	return all, nil
}

func (g *farGate) decide(c *farCampaign, user firstcome.UserID) firstcome.Decision {
	now := time.Now().UTC().Truncate(time.Microsecond)
	held, holds := c.holders[user]
	d := firstcome.Decision{Outcome: firstcome.Decide(c.Campaign, now, int64(len(c.holders)), holds), At: now, Version: c.Version, TermsVersion: c.termsVersion}
	if d.Outcome == firstcome.Issued {
		c.last++
		held = firstcome.Coupon{
			Campaign: c.ID, Number: c.last, User: user, Code: g.secret.Code(c.ID, c.last), IssuedAt: now, TermsVersion: c.termsVersion,
		}
		c.holders[user], c.journal = held, append(c.journal, held)
		c.OpenedAt, c.SoldOutAt = c.Opened(now), c.Full(int64(len(c.holders)), now)
		g.issued <- c.last
	}
	d.InForce = int64(len(c.holders))
	if d.Outcome.HasCoupon() {
		d.Coupon = c.told(held)
	}
	return d
}

// told returns a coupon with whether it is recorded, as far as the gate knows.
func (c *farCampaign) told(held firstcome.Coupon) firstcome.Coupon {
	held.Recorded = held.Number <= c.drained && !held.Buried
	return held
}

func (g *farGate) Holders(_ context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.campaign(id)
	if err != nil {
		return 0, err
	}
	for user := range c.holders {
		each(user)
	}
	return c.Version, nil
}

func (g *farGate) Apply(_ context.Context, change firstcome.Change) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[change.Campaign]
	switch {
	case g.away != nil:
		return false, g.away
	case c == nil && change.Version == 1:
		c = &farCampaign{refused: map[int64]bool{}, holders: map[firstcome.UserID]firstcome.Coupon{}}
		c.ID, g.campaigns[change.Campaign] = change.Campaign, c
	case c == nil:
		return false, flow.ErrLost
	case change.Version <= c.Version:
		return c.refused[change.Version], nil
	case change.Version > c.Version+1:
		return false, flow.ErrGap
	}
	c.Version = change.Version
	c.refused[c.Version] = !c.apply(change)
	return c.refused[c.Version], nil
}

// apply tells whether the gate takes the change.
func (c *farCampaign) apply(change firstcome.Change) bool {
	switch change.Kind {
	case firstcome.ChangeTerms:
		if change.Terms.Quantity < int64(len(c.holders)) {
			return false
		}
		c.Terms, c.termsVersion = change.Terms, change.Version
	case firstcome.ChangePause, firstcome.ChangeResume:
		c.Paused = change.Kind == firstcome.ChangePause
	case firstcome.ChangeClose:
		c.Closed = true
	case firstcome.ChangeVoid:
		if c.holders[change.User].Number == change.Number {
			delete(c.holders, change.User)
		}
	}
	return true
}

func (g *farGate) CouponOf(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.campaign(id)
	if err != nil {
		return firstcome.Coupon{}, err
	}
	held, ok := c.holders[user]
	if !ok {
		return held, firstcome.ErrNoCoupon
	}
	return c.told(held), nil
}

func (g *farGate) State(_ context.Context, id firstcome.CampaignID) (flow.GateState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	c, err := g.campaign(id)
	if g.states[id] != nil {
		err = g.states[id]
	}
	if err != nil {
		return flow.GateState{}, err
	}
	return flow.GateState{
		Version: c.Version, Epoch: 1, InForce: int64(len(c.holders)), Issued: c.last, LastNumber: c.last,
		DrainedThrough: c.drained, Now: time.Now().UTC(), Instants: c.Instants,
	}, nil
}

func (g *farGate) DrainedThrough(_ context.Context, id firstcome.CampaignID) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.campaign(id)
	if err != nil {
		return 0, err
	}
	return c.drained, nil
}

func (g *farGate) Has(_ context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.campaign(id)
	if err != nil {
		return nil, err
	}
	has := make([]bool, len(coupons))
	for n, one := range coupons {
		held := c.holders[one.User]
		has[n] = held.Number == one.Number && c.told(held).Recorded
	}
	return has, nil
}

// settle notes what a recorder brought to the ledger.
func (g *farGate) settle(id firstcome.CampaignID, drained flow.Drained) {
	var tell []func(firstcome.CampaignID, int64)
	g.set(func() {
		c := g.campaigns[id]
		for _, dead := range drained.Letters {
			if held := c.holders[dead.User]; held.Number == dead.Number {
				held.Buried = true
				c.holders[dead.User] = held
			}
		}
		c.drained = max(c.drained, drained.Through)
		tell = slices.Collect(maps.Values(g.watchers))
	})
	for _, each := range tell {
		each(id, drained.Through)
	}
}

func (g *farGate) WatchDrained(ctx context.Context, ready func(), each func(firstcome.CampaignID, int64)) error {
	g.mu.Lock()
	g.watches++
	one := g.watches
	g.watchers[one] = each
	g.mu.Unlock()
	ready()
	<-ctx.Done()
	g.set(func() { delete(g.watchers, one) })
	return nil
}

// A farShop is a shop whose campaigns a far gate decides. Nothing is recorded unless
// the test says so.
type farShop struct {
	*shop
	gate *farGate
}

// openFar opens a shop in which claims wait for the ledger for as long as a test may
// take, unless change says otherwise.
func openFar(t testing.TB, change ...func(*shop, *api.Config)) *farShop {
	t.Helper()
	f := &farShop{gate: newFarGate(t)}
	f.shop = openFor(t, farGateName, func(s *shop, c *api.Config) {
		waiter := flow.NewWaiter(&flow.Over{RemoteGate: f.gate, Book: s.ledger.Ledger})
		s.far, s.issuer = f.gate, flow.NewIssuer(f.gate, flow.Limits{})
		s.claims = &flow.Answerer{Coupons: f.gate, Waiter: waiter, Wait: time.Minute}
		for _, do := range change {
			do(s, c)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- waiter.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ran; err != nil {
				t.Error(err)
			}
		})
	})
	return f
}

// journal takes what is on its way to the ledger.
func (f *farShop) journal(id firstcome.CampaignID) (coupons []firstcome.Coupon) {
	f.t.Helper()
	f.gate.set(func() {
		if c := f.gate.campaigns[id]; c != nil {
			coupons, c.journal = c.journal, nil
		}
	})
	return coupons
}

// record does what a recorder does.
func (f *farShop) record(id firstcome.CampaignID) {
	f.t.Helper()
	drained, err := f.ledger.Record(context.Background(), flow.Batch{Campaign: id, Epoch: 1, Coupons: f.journal(id)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.gate.settle(id, drained)
}

// bury does what a recorder does with what the ledger refuses: here without a
// reason, so that it may be replayed.
func (f *farShop) bury(id firstcome.CampaignID, cause string) {
	f.t.Helper()
	drained, err := f.ledger.Bury(context.Background(), flow.Batch{Campaign: id, Epoch: 1, Coupons: f.journal(id)}, cause)
	if err != nil {
		f.t.Fatal(err)
	}
	f.gate.settle(id, drained)
}
