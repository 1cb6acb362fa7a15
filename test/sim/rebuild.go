package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// copied returns a copy of a memory, as a replica or a file has one.
func (m *memory) copied() memory {
	other := *m
	other.journal, other.loaded, other.campaigns = slices.Clone(m.journal), map[int64]*load{}, map[firstcome.CampaignID]*course{}
	for attempt, l := range m.loaded {
		other.loaded[attempt] = &load{maps.Clone(l.holders), maps.Clone(l.over), slices.Clone(l.people)}
	}
	for id, c := range m.campaigns {
		one := *c
		one.Holders, one.Refused = maps.Clone(c.Holders), maps.Clone(c.Refused)
		one.People, one.Joined, one.Left = slices.Clone(c.People), maps.Clone(c.Joined), maps.Clone(c.Left)
		other.campaigns[id] = &one
	}
	return other
}

// becomes has another server take the place of the gate's, or the same one after a restart: with a memory, and as a run of its own.
func (g *Gate) becomes(m memory, run recovery.Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.memory, g.run = m, run
}

// goesBack makes the gate another run of its server, or another server, which lacks its latest data.
func (g *Gate) goesBack(m memory, run recovery.Run) {
	g.becomes(m, run)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wentBack = true
}

// loses removes a campaign's keys at the gate.
func (g *Gate) loses(id firstcome.CampaignID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.campaigns, id)
	g.journal = slices.DeleteFunc(g.journal, func(e entry) bool { return e.Campaign == id })
}

// inspect is Inspect.
func (g *Gate) inspect(id firstcome.CampaignID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[id]
	if c != nil && c.Version > 0 && g.verified(c) != nil {
		return errUnverified
	}
	_, err := g.course(id)
	return err
}

// Inspect implements recovery.Gate.
func (g *Gate) Inspect(_ context.Context, r gate.Revision) error {
	return cmp.Or(g.ahead(r), g.outlived(r.Campaign, r.Epoch), g.inspect(r.Campaign))
}

// outlived returns a StaleEpochError if the campaign is in an earlier epoch than this, and nobody has frozen it.
func (g *Gate) outlived(id firstcome.CampaignID, epoch int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[id]
	if c == nil || c.Version == 0 || c.frozen > 0 || c.Epoch >= epoch {
		return nil
	}
	if !g.wentBack {
		c.Did(stage.Happening{Outlived: c.Epoch})
	}
	return &gate.StaleEpochError{Campaign: id, Gate: c.Epoch, Ledger: epoch}
}

// knows returns how far a campaign has got.
func (g *Gate) knows(id firstcome.CampaignID) (w gate.Witness) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.campaigns[id]; c != nil {
		w = gate.Witness{Epoch: c.Epoch, Version: c.Version, Number: c.Last, Ticket: c.lastTicket()}
	}
	return w
}

// forgot returns errUnverified if a campaign has not got as far as a witness.
func (g *Gate) forgot(id firstcome.CampaignID, least gate.Witness) error {
	if now := g.knows(id); now.Version > 0 && now.Older(least) {
		return errUnverified
	}
	return nil
}

func (c *course) lastTicket() firstcome.Ticket {
	return firstcome.Ticket{Generation: c.Line.Generation, Number: c.Line.LastTicket}
}

// Runs implements recovery.Gate.
func (g *Gate) Runs(context.Context) ([]recovery.Run, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []recovery.Run{g.run}, nil
}

// Named implements recovery.Gate.
func (g *Gate) Named(context.Context) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.named, nil
}

// Rename implements recovery.Gate.
func (g *Gate) Rename(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.named = true
	return nil
}

// GateState implements recovery.Gate.
func (g *Gate) GateState(_ context.Context, r gate.Revision) (s recovery.GateState, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[r.Campaign]
	if c == nil || c.Version == 0 {
		return s, gate.ErrGone
	}
	return recovery.GateState{
		Was: c.run, Is: g.run.ID, Frozen: c.frozen > 0, Attempt: max(c.frozen, c.attempt), Ceiling: c.Ceiling, ClosedAt: c.ClosedAt, Epoch: c.Epoch, Version: c.Version, LastNumber: c.Last, Ticket: c.lastTicket(), DrainedThrough: c.Drained,
		InForce: c.InForce(), Holders: c.InForce(), Log: c.Log, Quantity: c.Quantity, OpensAt: c.OpensAt, ClosesAt: c.ClosesAt, Paused: c.Paused, Closed: c.Closed,
		DecidedAt: c.Seen, Line: c.Lined, Pace: c.Pace, Waitlist: c.Waitlist, Payload: c.Payload,
	}, nil
}

// HoldsEach implements recovery.Gate.
func (g *Gate) HoldsEach(_ context.Context, r gate.Revision, coupons []firstcome.Coupon) (held []bool, err error) {
	err = g.of(r.Campaign, func(c *course) {
		for _, one := range coupons {
			held = append(held, c.Holders[one.User].Number == one.Number)
		}
	})
	return held, err
}

// Unrecorded implements recovery.Gate.
func (g *Gate) Unrecorded(_ context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	for _, e := range g.entriesOf(id) {
		for _, c := range e.Coupons {
			if err := each(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Gate) entriesOf(id firstcome.CampaignID) (all []entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.journal {
		if e.Campaign == id {
			all = append(all, e)
		}
	}
	return all
}

// Verified implements recovery.Gate.
func (g *Gate) Verified(_ context.Context, r gate.Revision, s recovery.GateState) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[r.Campaign]
	if c == nil || c.frozen > 0 || c.run != s.Was || g.run.ID != s.Is || c.Epoch != s.Epoch || c.Version != s.Version || c.Last != s.LastNumber {
		return recovery.ErrMoved
	}
	c.run = s.Is
	return nil
}

// Room implements recovery.Gate: there is room.
func (g *Gate) Room(context.Context, recovery.Rebuild) error { return nil }

// Freeze implements recovery.Gate.
func (g *Gate) Freeze(_ context.Context, r recovery.Rebuild) (f recovery.Frozen, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[r.Campaign]
	if c == nil {
		c = &course{Course: stage.Course{Happened: g.logs[r.Campaign]}} // only the freeze is left of it
		g.campaigns[r.Campaign] = c
	}
	if r.Attempt < c.frozen || r.Attempt <= c.attempt {
		return f, recovery.ErrSuperseded
	}
	c.frozen = r.Attempt
	g.forget(r)
	return recovery.Frozen{RunID: g.run.ID, Version: c.Version, TermsVersion: c.TermsVersion, LastNumber: c.Last, Epoch: c.Epoch, Drained: c.Drained, DecidedAt: c.Seen, Instants: c.Instants, Line: c.Line}, nil
}

// forget removes what this attempt and those before it loaded. mu is held.
func (g *Gate) forget(r recovery.Rebuild) {
	maps.DeleteFunc(g.loaded, func(attempt int64, _ *load) bool { return attempt <= r.Attempt })
}

// isFrozen reports whether an attempt has frozen its campaign here.
func (g *Gate) isFrozen(r recovery.Rebuild) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[r.Campaign]
	return c != nil && c.frozen == r.Attempt
}

// Empty implements recovery.Gate.
func (g *Gate) Empty(ctx context.Context, r recovery.Rebuild, to record.Sink) error {
	if !g.isFrozen(r) {
		return recovery.ErrSuperseded
	}
	for _, e := range g.entriesOf(r.Campaign) {
		e.Batch.Attempt = r.Attempt
		if _, err := to(ctx, e.Batch); err != nil {
			return err
		}
	}
	return nil
}

// Loading implements recovery.Gate.
func (g *Gate) Loading(_ context.Context, r recovery.Rebuild) (put func(firstcome.Coupon) error, end func() error, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(r)
	put = func(c firstcome.Coupon) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if l := g.load(r); c.VoidedAt.IsZero() {
			l.holders[c.User] = c
		} else if c.Ticket > 0 {
			l.over[c.User] = c
		}
		return nil
	}
	return put, func() error { return nil }, nil
}

// A load is what a rebuild loaded, to be switched to.
type load struct {
	holders map[firstcome.UserID]firstcome.Coupon
	over    map[firstcome.UserID]firstcome.Coupon // void, with the ticket that was served
	people  []stage.InLine
}

// load returns what an attempt has loaded so far. mu is held.
func (g *Gate) load(r recovery.Rebuild) *load {
	if g.loaded[r.Attempt] == nil {
		g.loaded[r.Attempt] = &load{holders: map[firstcome.UserID]firstcome.Coupon{}, over: map[firstcome.UserID]firstcome.Coupon{}}
	}
	return g.loaded[r.Attempt]
}

// Carry implements recovery.Gate: everybody in line but those who have been served, as the ledger knows.
func (g *Gate) Carry(_ context.Context, r recovery.Rebuild, _ int64) (carried recovery.Carried, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[r.Campaign]
	if c == nil || c.frozen != r.Attempt {
		return carried, recovery.ErrSuperseded
	}
	l := g.load(r)
	l.people = nil
	for _, p := range c.People {
		void := l.over[p.User]
		served := void.Generation > c.Line.Generation || void.Generation == c.Line.Generation && void.Ticket >= p.Ticket
		if _, holds := l.holders[p.User]; holds || served {
			carried.LeftWithCoupon++
			continue
		}
		l.people = append(l.people, p)
	}
	if carried.People = int64(len(l.people)); carried.People > 0 {
		carried.First, carried.Last = l.people[0].Ticket, l.people[len(l.people)-1].Ticket
	}
	return carried, nil
}

// Carried implements recovery.Gate.
func (g *Gate) Carried(_ context.Context, r recovery.Rebuild, each func(recovery.Waiting) error) error {
	g.mu.Lock()
	people := slices.Clone(g.load(r).people)
	g.mu.Unlock()
	for _, p := range people {
		if err := each(recovery.Waiting{User: p.User, Ticket: p.Ticket, At: p.At}); err != nil {
			return err
		}
	}
	return nil
}

// Seat implements recovery.Gate.
func (g *Gate) Seat(_ context.Context, r recovery.Rebuild, _ int64, people []recovery.Waiting) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.campaigns[r.Campaign]; c == nil || c.frozen != r.Attempt {
		return recovery.ErrSuperseded
	}
	l := g.load(r)
	l.people = nil
	for _, p := range people {
		l.people = append(l.people, stage.InLine{User: p.User, Ticket: p.Ticket, At: p.At})
	}
	return nil
}

// Replace implements recovery.Gate.
func (g *Gate) Replace(_ context.Context, r recovery.Rebuild, f recovery.Frozen, loaded recovery.Loaded, fill recovery.Refill) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[r.Campaign]
	l := g.load(r)
	switch n := int64(len(l.holders)); {
	case c == nil:
		return gate.ErrGone
	case c.frozen != r.Attempt:
		return recovery.ErrSuperseded
	case f.RunID != g.run.ID, n < loaded.Least, n > loaded.Most, int64(len(l.people)) != loaded.People:
		return recovery.ErrMoved
	}
	clock := g.Clock().UTC()
	made := &course{run: g.run.ID, attempt: r.Attempt, Course: stage.Course{
		Campaign: fill.Campaign, TermsVersion: fill.TermsVersion, Payload: fill.Payload, Epoch: fill.Epoch, Ceiling: fill.Ceiling, CampaignUID: campaignUID,
		Last: fill.LastNumber, Drained: fill.LastNumber, Holders: maps.Clone(l.holders), Refused: map[int64]bool{}, Seen: later(fill.DecidedAt, clock), Happened: c.Happened,
		Lined: fill.Pace != nil || fill.Line.Generation > 1,
		Queue: stage.Queue{Line: fill.Line, People: slices.Clone(l.people), Joined: map[firstcome.UserID]bool{}, Left: map[firstcome.UserID]stage.TicketName{}, Past: slices.Clone(fill.Past)},
	}}
	made.Line.Generation = max(1, made.Line.Generation)
	made.Began = made.Line.Generation
	for user := range l.over {
		made.Joined[user] = true
	}
	maps.Copy(made.Joined, c.Joined)
	made.SoldOutAt = made.SoldOut(made.InForce(), made.Seen)
	g.campaigns[r.Campaign] = made
	g.forget(r)
	was := stage.Happening{Rebuilt: made.Epoch, Generation: c.Line.Generation, Carried: slices.Clone(c.People)}
	g.journal = slices.DeleteFunc(g.journal, func(e entry) bool {
		if e.Campaign == r.Campaign {
			was.Unread = append(was.Unread, e.Coupons...)
		}
		return e.Campaign == r.Campaign
	})
	made.Did(was)
	return nil
}
