//go:build soak

package sim

import (
	"context"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A muddled gate is the model gate with a bug that changes the line before each claim or each service, or answers in its place who leaves.
type muddled struct {
	gated
	gate   *Gate
	claims func(c *course, users []firstcome.UserID)
	serve  func(c *course)
	leave  func(user firstcome.UserID) error
}

// Claim implements gate.Decider.
func (m muddled) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	if c := m.gate.campaigns[id]; m.claims != nil && c != nil {
		m.claims(c, users)
	}
	return m.gated.Claim(ctx, id, users)
}

// Serve implements gate.Line.
func (m muddled) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	if c := m.gate.campaigns[id]; m.serve != nil && c != nil {
		m.serve(c)
	}
	return m.gated.Serve(ctx, id, limit)
}

// Leave is gate.Places'.
func (m muddled) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, error) {
	if m.leave != nil {
		return firstcome.Place{}, m.leave(user)
	}
	return m.gated.Leave(ctx, id, user)
}

func muddles(m muddled) func(*town) {
	return func(t *town) {
		one := m
		one.gated, one.gate = t.front, t.gate
		t.front = one
	}
}

// lineBugs are mistakes of what becomes of people in line.
var lineBugs = []bug{
	{name: "who came last is served first", models: muddles(muddled{serve: func(c *course) {
		slices.Reverse(c.People)
	}})},
	{name: "who asks again goes to the end of the line", models: muddles(muddled{claims: func(c *course, users []firstcome.UserID) {
		for _, user := range users {
			if c.TicketOf(user) > 0 {
				c.Stop(user, false)
			}
		}
	}})},
	{name: "the pace begins anew with each service", models: muddles(muddled{serve: func(c *course) {
		c.Line.Due = time.Time{}
	}})},
	{name: "newcomers join while nodes may still repeat sold_out", seed: 11374, models: muddles(muddled{claims: func(c *course, _ []firstcome.UserID) {
		c.WasSoldOut = false
	}})},
	{name: "whoever leaves is told so and stays", models: muddles(muddled{leave: func(firstcome.UserID) error { return nil }})},
	{name: "who is next is forgotten", models: muddles(muddled{serve: func(c *course) {
		if len(c.People) > 1 {
			c.Stop(c.People[0].User, false)
		}
	}})},
	{name: "stock that is quarantined is served", models: muddles(muddled{serve: func(c *course) {
		c.Stock = 0
	}})},
	{name: "people in line are sent away by a pause", models: muddles(muddled{serve: func(c *course) {
		if c.Paused && len(c.People) > 0 {
			c.People, c.Line = nil, firstcome.Line{Generation: c.Line.Generation + 1}
		}
	}})},
	{name: "a rebuild forgets the line", remade: func(g *Gate) recovery.Gate {
		return carrying{g, func(context.Context, recovery.Rebuild) (recovery.Carried, error) { return recovery.Carried{}, nil }}
	}},
	{name: "a rebuild turns the line round", remade: func(g *Gate) recovery.Gate {
		return carrying{g, func(ctx context.Context, r recovery.Rebuild) (recovery.Carried, error) {
			carried, err := g.Carry(ctx, r, 0)
			if l := g.loaded[r.Attempt]; l != nil {
				slices.Reverse(l.people)
			}
			return carried, err
		}}
	}},
	{name: "a rebuild carries holders over", remade: func(g *Gate) recovery.Gate {
		return carrying{g, func(ctx context.Context, r recovery.Rebuild) (recovery.Carried, error) {
			carried, err := g.Carry(ctx, r, 0)
			l, c := g.loaded[r.Attempt], g.campaigns[r.Campaign]
			if err == nil && carried.LeftWithCoupon > 0 {
				l.people = slices.Clone(c.People)
				carried = recovery.Carried{First: l.people[0].Ticket, Last: l.people[len(l.people)-1].Ticket, People: int64(len(l.people))}
			}
			return carried, err
		}}
	}},
	{name: "the line goes on with its generation behind a rebuild", refills: func(l *Ledger) rebuilds { return regenerating{l} }},
	{name: "a place is told of who was served", gate: func(_ *wire, g gated) gated { return stale{g, map[firstcome.UserID]firstcome.Place{}} }},
}

// A stale gate tells everybody the place that they were told first.
type stale struct {
	gated
	told map[firstcome.UserID]firstcome.Place
}

// Place is gate.Places'.
func (s stale) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	if p, is := s.told[user]; is {
		return p, firstcome.Coupon{}, nil
	}
	p, held, err := s.gated.Place(ctx, id, user)
	if err == nil && p.Ticket > 0 {
		s.told[user] = p
	}
	return p, held, err
}

// A carrying gate is a gate with a bug in carrying the line over.
type carrying struct {
	*Gate
	carry func(context.Context, recovery.Rebuild) (recovery.Carried, error)
}

// Carry implements recovery.Gate.
func (c carrying) Carry(ctx context.Context, r recovery.Rebuild, _ int64) (recovery.Carried, error) {
	return c.carry(ctx, r)
}

// A regenerating ledger has the line go on with the generation that ends.
type regenerating struct{ *Ledger }

// FinishRebuild implements recovery.Ledger.
func (r regenerating) FinishRebuild(ctx context.Context, one recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (recovery.Refill, error) {
	fill, err := r.Ledger.FinishRebuild(ctx, one, loaded, frozen)
	if fill.Line.Generation > 1 {
		fill.Line.Generation--
	}
	return fill, err
}
