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
// puts what it issues into its journal in the same step. conform.Gate and conform.Journal hold it to what the real ones do; rebuild.go has
// what a rebuild does to it, and line.go its waiting lines.
type Gate struct {
	Clock func() time.Time
	// Quarantine is how long returned stock is quarantined, and Lease how long a node may repeat a refusal at most.
	Quarantine, Lease time.Duration

	mu sync.Mutex // guards what follows
	memory
	logs     map[firstcome.CampaignID]*[]happening // what it did, for the checks: the gate itself never reads it
	wentBack bool                                  // its server may lack what happened last, or its epoch may end elsewhere
	leased   time.Time                             // when it granted a lease last: neither does it read this
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
	firstcome.Campaign
	run                 string // of the server that decided last
	frozen, attempt     int64  // the attempt at a rebuild that froze it, 0: none; the one that made it
	termsVersion, epoch int64
	ceiling             int64 // 0 if none was set
	last, drained, said int64 // the last number; up to which all have left the journal; up to which the ledger said so
	holders             map[firstcome.UserID]firstcome.Coupon
	refused             map[int64]bool // versions
	seen                time.Time      // the latest instant that a later one may not be before
	lined               bool           // it ever had a pace
	began               int64          // the generation of the line with which the epoch began
	quarantined
	queue
	log *[]happening // of Gate.logs
}

// did notes something that the gate did.
func (c *course) did(what happening) { *c.log = append(*c.log, what) }

// A happening is something that a gate did: it issued a number, voided one, took a change, or was rebuilt.
type happening struct {
	issued, voided firstcome.Coupon   // number 0: none
	applied        int64              // a version; 0: none
	rebuilt        int64              // an epoch; 0: none
	left           []firstcome.Coupon // in the journal of a gate that was rebuilt
	generation     int64              // and of its line, with who was in that
	lined          []inLine
	came, went     firstcome.UserID // who joined the line, or left it
	ticket         ticketName       // of those who joined
	outlived       int64            // an epoch in which the gate is without having gone back; 0: none
	sent           string           // why all who were in line were sent away
	quantity       int64            // how many coupons there were then: a change may go on to raise it
}

// words says what happened.
func (h *happening) words() string {
	switch {
	case h.issued.Number > 0:
		return show("number", h.issued.Number, "is given to", h.issued.User)
	case h.voided.Number > 0:
		return show("number", h.voided.Number, "is voided")
	case h.applied > 0:
		return show("change", h.applied, "is made")
	case h.rebuilt > 0:
		return show("epoch", h.rebuilt, "begins")
	case h.came != "":
		return show(h.came, "joins the line")
	case h.went != "":
		return show(h.went, "leaves the line")
	case h.sent != "":
		return show("all who wait are sent away as", h.sent)
	}
	return "an epoch has ended"
}

// NewGate returns a gate without campaigns.
func NewGate(clock func() time.Time) *Gate {
	return &Gate{
		Clock: clock, Quarantine: 250 * time.Millisecond, Lease: 200 * time.Millisecond,
		memory: blank(recovery.Run{ID: "run 1"}), logs: map[firstcome.CampaignID]*[]happening{}, appended: make(chan struct{}),
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
	c, err := g.whole(id)
	if err == nil {
		do(c)
	}
	return err
}

// whole returns a campaign, if the gate knows all that it should of it. mu is held.
func (g *Gate) whole(id firstcome.CampaignID) (*course, error) {
	c := g.campaigns[id]
	switch {
	case c == nil && g.logs[id] == nil:
		return nil, firstcome.ErrNoCampaign
	case c == nil, c.Version == 0, c.last < c.drained: // the ledger has numbers that were never given here
		return nil, gate.ErrLost
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

// now returns the clock, and the gate's time for a campaign, which does not go back.
func (g *Gate) now(c *course) (clock, now time.Time) {
	clock = g.Clock().UTC().Truncate(time.Microsecond)
	if clock.Before(c.seen) {
		return clock, c.seen
	}
	return clock, clock
}

// Claim implements gate.Decider.
func (g *Gate) Claim(_ context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decides(id, users, false)
}

// decides decides claims; direct ones pass the line.
func (g *Gate) decides(id firstcome.CampaignID, users []firstcome.UserID, direct bool) (all []firstcome.Decision, err error) {
	refused := g.of(id, func(c *course) {
		if err = g.verified(c); err != nil {
			return
		}
		clock, now := g.now(c)
		c.release(clock, g.Quarantine)
		var issued []firstcome.Coupon
		var ended []firstcome.PastLine
		for _, user := range users {
			d, over := c.decide(user, now, direct)
			ended = append(ended, over...)
			if d.Lease = c.lease(d, clock, g.Lease); direct && !d.Outcome.HasCoupon() {
				d.Lease = 0 // others may hear otherwise
			}
			if d.Lease > 0 {
				g.leased = time.Now()
			}
			if d.Outcome == firstcome.Issued {
				issued = append(issued, d.Coupon)
			}
			all = append(all, d)
		}
		if len(issued) > 0 || len(ended) > 0 {
			g.append(record.Batch{Campaign: id, Epoch: c.epoch, Coupons: issued, Line: c.report(ended)})
		}
	})
	return all, cmp.Or(refused, err)
}

// decide decides a claim by the rule. It returns the generations of the line that ended with it, too.
func (c *course) decide(user firstcome.UserID, now time.Time, direct bool) (d firstcome.Decision, ended []firstcome.PastLine) {
	before := c.line
	ended = c.sendAway(now, false)
	seen, taken := c.asSeen(), c.inForce()
	opened := seen.Opened(now)
	if direct {
		seen = seen.Direct()
	}
	if seen.Pace == nil || c.wasSoldOut {
		taken += c.stock
	}
	held, holds := c.holders[user]
	d = firstcome.Decision{
		Outcome: firstcome.Decide(seen, now, taken, holds, c.ticketOf(user) > 0 && !direct), At: now, Version: c.Version, TermsVersion: c.termsVersion,
	}
	if d.Outcome == firstcome.Issued && c.ceiling > 0 && c.last >= c.ceiling {
		return firstcome.Decision{}, ended // the ledger knows by the ceiling what may have been given
	}
	moved := d.Outcome == firstcome.Issued || !opened.Equal(c.OpenedAt) || phase(c.asSeen(), now) != phase(c.asSeen(), c.seen)
	c.OpenedAt = opened
	switch d.Outcome {
	case firstcome.Issued:
		held = c.issue(user, now, 0, 0, direct)
		c.stop(user, true)
	case firstcome.Waiting:
		joins := c.ticketOf(user) == 0
		ticket := c.join(user, now)
		d.Place = seen.Place(c.line, ticket, c.inForce(), now)
		d.Place.Log = c.logged(now)
		if joins {
			c.did(happening{came: user, ticket: ticketName{c.line.Generation, d.Place.Ticket}})
		}
	}
	c.SoldOutAt = c.SoldOut(c.inForce(), now)
	ended = append(ended, c.sendAway(now, false)...)
	if moved || c.line != before {
		c.seen = now
	}
	seen.Instants = c.Instants
	d.InForce, d.InLine, d.Since, d.OpenedAt = c.inForce(), c.line.Waiting, seen.Since(d.Outcome), c.OpenedAt
	if d.Outcome.HasCoupon() {
		d.Coupon = c.told(held)
	}
	return d, ended
}

// issue gives a user the next number, for a ticket if there is one.
func (c *course) issue(user firstcome.UserID, now time.Time, generation, ticket int64, direct bool) firstcome.Coupon {
	c.last++
	issued := firstcome.Coupon{
		Campaign: c.ID, Number: c.last, User: user, Code: stage.Secret().Code(c.ID, c.last), IssuedAt: now, TermsVersion: c.termsVersion,
		Generation: generation, Ticket: ticket, Direct: direct,
	}
	c.holders[user] = issued
	c.did(happening{issued: issued})
	return issued
}

func (c *course) inForce() int64 { return int64(len(c.holders)) }

// told returns a coupon with whether it is recorded, as far as the gate knows.
func (c *course) told(held firstcome.Coupon) firstcome.Coupon {
	held.Recorded = held.Number <= c.drained && !held.Buried
	return held
}

// phase returns what the window alone answers at an instant.
func phase(c firstcome.Campaign, at time.Time) firstcome.Outcome {
	return firstcome.Decide(firstcome.Campaign{Terms: firstcome.Terms{OpensAt: c.OpensAt, ClosesAt: c.ClosesAt, Quantity: 1}}, at, 0, false, false)
}

// lease returns how long a node may repeat a decision: a refusal only, none while stock is quarantined, and not past the instant at which the
// window answers otherwise. Another node may void a coupon, or end a pause.
func (c *course) lease(d firstcome.Decision, clock time.Time, longest time.Duration) time.Duration {
	var ends time.Time
	switch {
	case d.Outcome.HasCoupon(), d.Outcome == firstcome.Waiting, d.Outcome == firstcome.Paused, d.Outcome == firstcome.NotOpen && len(c.people) > 0, clock.Before(c.until):
		return 0
	case d.Outcome == firstcome.NotOpen:
		ends = c.OpensAt
	case d.Outcome == firstcome.SoldOut:
		ends = c.ClosesAt
	}
	if ends.IsZero() {
		return longest
	}
	return min(longest, ends.Sub(d.At))
}

// Holders implements gate.Decider.
func (g *Gate) Holders(_ context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	err = g.of(id, func(c *course) {
		version = c.Version
		for user := range c.holders {
			each(user)
		}
	})
	return version, err
}

// CouponOf is gate.Coupons'.
func (g *Gate) CouponOf(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (held firstcome.Coupon, err error) {
	holds := false
	err = g.of(id, func(c *course) {
		held, holds = c.holders[user]
		held = c.told(held)
	})
	if err == nil && !holds {
		err = firstcome.ErrNoCoupon
	}
	return held, err
}

// Has is gate.Drains'.
func (g *Gate) Has(_ context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (has []bool, err error) {
	err = g.of(id, func(c *course) {
		has = make([]bool, len(coupons))
		for n, one := range coupons {
			held := c.holders[one.User]
			has[n] = held.Number == one.Number && held.IssuedAt.Equal(one.IssuedAt) && c.told(held).Recorded
		}
	})
	return has, err
}

// State is gate.Counters'.
func (g *Gate) State(_ context.Context, id firstcome.CampaignID) (state gate.State, err error) {
	err = g.of(id, func(c *course) {
		clock, _ := g.now(c)
		state = gate.State{
			Version: c.Version, Epoch: c.epoch, InForce: c.inForce(), Issued: c.last, LastNumber: c.last,
			DrainedThrough: c.drained, Now: clock, Instants: c.Instants, Lost: g.verified(c) != nil, Waiting: c.line.Waiting,
		}
	})
	return state, err
}

// DrainedThrough is gate.Drains'.
func (g *Gate) DrainedThrough(_ context.Context, id firstcome.CampaignID) (through int64, err error) {
	err = g.of(id, func(c *course) { through = c.drained })
	return through, err
}

// A watcher is one call of WatchDrained.
type watcher struct {
	each func(firstcome.CampaignID, int64)
}

// WatchDrained is gate.Drains'.
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
