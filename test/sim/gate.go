package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// A Gate is the model of a gate beside the ledger, as internal/redis is one: it decides by the rule, one call after the other, and
// puts what it issues into its journal in the same step. stage.Course decides; conform.Gate and conform.Journal hold it to what the real ones do; rebuild.go has
// what a rebuild does to it, and line.go its waiting lines.
type Gate struct {
	Clock func() time.Time
	stage.Rules

	mu sync.Mutex // guards what follows
	memory
	logs     map[firstcome.CampaignID]*[]stage.Happening // what it did, for the checks: the gate itself never reads it
	wentBack bool                                        // its server may lack what happened last, or its epoch may end elsewhere
	leased   time.Time                                   // when it granted a lease last: neither does it read this
	watchers []*watcher
	appended chan struct{} // closed and replaced when the journal grows
}

// A memory is what the gate's server has, and may lose.
type memory struct {
	run       recovery.Run // of the server
	named     bool         // it has the gate's name
	campaigns map[firstcome.CampaignID]*course
	loaded    map[int64]*load // what rebuilds loaded, by attempt
	entries   int64           // appended ever: the last one's id
	journal   []entry         // in their order
}

// A course is a campaign at its gate.
type course struct {
	stage.Course
	run             string // of the server that decided last
	frozen, attempt int64  // the attempt at a rebuild that froze it, 0: none; the one that made it
	said            int64  // the number up to which the ledger said that all have left the journal
}

// words says what happened.
func words(h *stage.Happening) string {
	switch {
	case h.Issued.Number > 0:
		return show("number", h.Issued.Number, "is given to", h.Issued.User)
	case h.Voided.Number > 0:
		return show("number", h.Voided.Number, "is voided")
	case h.Applied > 0:
		return show("change", h.Applied, "is made")
	case h.Rebuilt > 0:
		return show("epoch", h.Rebuilt, "begins")
	case h.Came != "":
		return show(h.Came, "joins the line")
	case h.Went != "":
		return show(h.Went, "leaves the line")
	case h.Sent != "":
		return show("all who wait are sent away as", h.Sent)
	}
	return "an epoch has ended"
}

// NewGate returns a gate without campaigns.
func NewGate(clock func() time.Time) *Gate {
	return &Gate{
		Clock: clock, Rules: stage.Rules{Quarantine: 250 * time.Millisecond, Lease: 200 * time.Millisecond},
		memory: blank(recovery.Run{ID: "run 1"}), logs: map[firstcome.CampaignID]*[]stage.Happening{}, appended: make(chan struct{}),
	}
}

// blank returns the memory of a server that has nothing but the gate's name.
func blank(run recovery.Run) memory {
	return memory{run: run, named: true, campaigns: map[firstcome.CampaignID]*course{}, loaded: map[int64]*load{}}
}

// of calls do with a campaign that the gate has completely.
func (g *Gate) of(id firstcome.CampaignID, do func(*course)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.course(id)
	if err == nil {
		do(c)
	}
	return err
}

// course returns a campaign, if the gate knows all that it should of it. mu is held.
func (g *Gate) course(id firstcome.CampaignID) (*course, error) {
	c := g.campaigns[id]
	switch {
	case c == nil && g.logs[id] == nil:
		return nil, firstcome.ErrNoCampaign
	case c == nil, c.Version == 0, c.Last < c.Drained: // the ledger has numbers that were never given here
		return nil, gate.ErrGone
	}
	return c, nil
}

var errUnverified = fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified)

// verified returns nil if the campaign may change: its server is the one that decided last, and no rebuild froze it.
func (g *Gate) verified(c *course) error {
	if c.frozen > 0 || c.run != g.run.ID {
		return errUnverified
	}
	return nil
}

// asks calls do with a campaign that may change.
func (g *Gate) asks(id firstcome.CampaignID, do func(*course) error) (err error) {
	refused := g.of(id, func(c *course) {
		if err = g.verified(c); err == nil {
			err = do(c)
		}
	})
	return cmp.Or(refused, err)
}

// Claim implements gate.Decider.
func (g *Gate) Claim(_ context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decides(id, users, false)
}

// decides decides claims; direct ones pass the line.
func (g *Gate) decides(id firstcome.CampaignID, users []firstcome.UserID, direct bool) (all []firstcome.Decision, err error) {
	err = g.asks(id, func(c *course) error {
		var b record.Batch
		all, b = c.Claim(g.Rules, g.Clock(), users, direct)
		if slices.ContainsFunc(all, func(d firstcome.Decision) bool { return d.Lease > 0 }) {
			g.leased = time.Now()
		}
		g.append(b)
		return nil
	})
	return all, err
}

// Apply implements gate.Applier: it applies change v after v-1, once.
func (g *Gate) Apply(_ context.Context, change firstcome.Change) (refused bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.course(change.Campaign)
	if g.logs[change.Campaign] == nil && change.Version == 1 {
		g.logs[change.Campaign] = &[]stage.Happening{}
		c, err = &course{Course: stage.NewCourse(change, g.logs[change.Campaign]), run: g.run.ID}, nil
		c.CampaignUID, g.campaigns[change.Campaign] = campaignUID, c
	}
	if err == firstcome.ErrNoCampaign {
		err = gate.ErrGone
	}
	if err == nil {
		err = g.verified(c)
	}
	if err != nil {
		return false, err
	}
	refused, b, err := c.Apply(g.Rules, g.Clock(), change)
	g.append(b)
	return refused, err
}

// Holders implements gate.Decider.
func (g *Gate) Holders(_ context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	err = g.of(id, func(c *course) {
		version = c.Version
		for user := range c.Holders {
			each(user)
		}
	})
	return version, err
}

// CouponOf is gate.Coupons'.
func (g *Gate) CouponOf(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (held firstcome.Coupon, err error) {
	err = g.asks(id, func(c *course) error {
		one, holds := c.Holders[user]
		if !holds {
			return firstcome.ErrNoCoupon
		}
		held = c.Told(one)
		return nil
	})
	return held, err
}

// Has is gate.Progress'.
func (g *Gate) Has(_ context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (has []bool, err error) {
	err = g.of(id, func(c *course) {
		has = make([]bool, len(coupons))
		for n, one := range coupons {
			held := c.Holders[one.User]
			has[n] = held.Number == one.Number && held.IssuedAt.Equal(one.IssuedAt) && c.Told(held).Recorded
		}
	})
	return has, err
}

// State is gate.Counters'.
func (g *Gate) State(_ context.Context, id firstcome.CampaignID) (state gate.State, err error) {
	err = g.of(id, func(c *course) {
		state = gate.State{
			Version: c.Version, Epoch: c.Epoch, InForce: c.InForce(), Issued: c.Last, LastNumber: c.Last,
			DrainedThrough: c.Drained, Now: g.Clock().UTC(), Instants: c.Instants, Gone: g.verified(c) != nil, Waiting: c.Line.Waiting,
		}
	})
	return state, err
}

// DrainedThrough is gate.Progress'.
func (g *Gate) DrainedThrough(_ context.Context, id firstcome.CampaignID) (through int64, err error) {
	err = g.of(id, func(c *course) { through = c.Drained })
	return through, err
}

// A watcher is one call of WatchDrained.
type watcher struct {
	each func(firstcome.CampaignID, int64)
}

// WatchDrained is gate.Progress'.
func (g *Gate) WatchDrained(ctx context.Context, ready func(), each func(firstcome.CampaignID, int64)) error {
	one := &watcher{each}
	g.mu.Lock()
	g.watchers = append(g.watchers, one)
	g.mu.Unlock()
	ready()
	<-ctx.Done()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watchers = slices.DeleteFunc(g.watchers, func(w *watcher) bool { return w == one })
	return nil
}
