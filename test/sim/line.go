package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// Serve implements gate.Line.
func (g *Gate) Serve(_ context.Context, id firstcome.CampaignID, limit int) (served gate.Served, err error) {
	err = g.asks(id, func(c *course) error {
		var b record.Batch
		served, b = c.Serve(g.Rules, g.Clock(), limit)
		g.append(b)
		return nil
	})
	return served, err
}

// serves reports whether somebody in line can be served, now or when their turn comes.
func (g *Gate) serves() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[campaign]
	if c == nil || len(c.People) == 0 {
		return false
	}
	now := later(g.Clock().UTC(), c.Seen)
	return c.Away(now) != 0 || firstcome.Decide(c.AsSeen(), now, -1, false, false) == firstcome.Waiting && c.InForce() < c.Quantity
}

// Lines implements gate.Line.
func (g *Gate) Lines(_ context.Context, each func(firstcome.CampaignID)) error {
	g.mu.Lock()
	var with []firstcome.CampaignID
	for id, c := range g.campaigns {
		if len(c.People) > 0 {
			with = append(with, id)
		}
	}
	g.mu.Unlock()
	slices.Sort(with)
	for _, id := range with {
		each(id)
	}
	return nil
}

// Place is gate.Places'.
func (g *Gate) Place(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (p firstcome.Place, held firstcome.Coupon, err error) {
	err = g.asks(id, func(c *course) (err error) {
		p, held, err = c.PlaceOf(g.Rules, g.Clock(), user)
		return err
	})
	return p, held, err
}

// Leave is gate.Places'.
func (g *Gate) Leave(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	err = g.asks(id, func(c *course) (err error) {
		left, err = c.Leave(g.Rules, g.Clock(), user)
		return err
	})
	return left, err
}

// Stays is gate.Places'.
func (g *Gate) Stays(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (stays []gate.Stay, err error) {
	err = g.asks(id, func(c *course) error {
		stays = c.StaysOf(g.Rules, g.Clock(), user)
		return nil
	})
	return stays, err
}

// Decides implements gate.Gate.
func (g *Gate) Decides(_ context.Context, id firstcome.CampaignID, epoch int64) error {
	if g.knows(id).Epoch > epoch {
		return recovery.ErrAhead
	}
	return cmp.Or(g.outlived(id, epoch), g.inspect(id))
}

// LineOf is gate.Places'.
func (g *Gate) LineOf(_ context.Context, id firstcome.CampaignID) (state gate.LineState, err error) {
	err = g.asks(id, func(c *course) error {
		state = c.LineOf(g.Rules, g.Clock())
		return nil
	})
	return state, err
}

// Issue implements gate.Decider.
func (g *Gate) Issue(_ context.Context, _ gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decides(id, users, true)
}
