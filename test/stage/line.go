package stage

import (
	"context"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// lined returns the campaign as a claim finds it: one without a pace keeps its line until that is empty.
func (c *Course) lined() firstcome.Campaign {
	campaign := c.Campaign
	if campaign.Pace == nil && c.Line.Waiting > 0 {
		campaign.Pace = &firstcome.Pace{}
	}
	return campaign
}

// join gives a user the next ticket, 0 if the line is full.
func (c *Course) join(user firstcome.UserID, limit int64, now time.Time) int64 {
	if limit > 0 && c.Line.Waiting >= limit {
		return 0
	}
	c.Line.LastTicket++
	c.Line.Waiting++
	c.Tickets[user], c.joined, c.joinedAt = c.Line.LastTicket, append(c.joined, user), append(c.joinedAt, now)
	return c.Line.LastTicket
}

// end ends a ticket.
func (c *Course) end(user firstcome.UserID, served bool) {
	delete(c.Tickets, user)
	c.left[user] = true
	c.Line.Waiting--
	if served {
		c.Line.Served++
	}
	if c.Line.Waiting == 0 {
		c.Line.ServedThrough = c.Line.LastTicket
	}
}

// ending returns what became of the generation if everybody is sent away: the campaign is closed, or every coupon is in
// force and nobody stands by; because of a change that was just made, or not.
func (c *Course) ending(now time.Time, changed bool) (past firstcome.PastLine, ends bool) {
	why := firstcome.Decide(c.lined(), now, int64(len(c.Holders)), false, true)
	if c.Line.LastTicket == 0 || why != firstcome.Closed && why != firstcome.SoldOut {
		return past, false
	}
	at := now
	if why == firstcome.Closed && !changed {
		at = c.Since(why)
	}
	return c.Line.Ended(why.String(), at), true
}

// endLine ends the generation if everybody is sent away, and tells why.
func (c *Course) endLine(now time.Time, changed bool) (ended string) {
	past, ends := c.ending(now, changed)
	if !ends {
		return ""
	}
	c.Past = slices.Insert(c.Past, 0, past)
	for user := range c.Tickets {
		c.left[user] = true
	}
	clear(c.Tickets)
	c.joined, c.joinedAt = nil, nil
	c.Line = c.Line.Next()
	return past.Reason
}

// next returns who is served next.
func (c *Course) next(turns int64) (all []firstcome.UserID) {
	for ticket := c.Line.Serving(); int64(len(all)) < turns; ticket++ {
		if user := c.joined[ticket-1]; c.Tickets[user] == ticket {
			all = append(all, user)
		}
	}
	return all
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
	err = g.of(id, func(c *Course) { served = g.serve(c, int64(limit)) })
	return served, err
}

func (g *Gate) serve(c *Course, limit int64) (served gate.Served) {
	if c.Line.Waiting == 0 {
		return served
	}
	now, clock, before := g.now(c), g.Clock().UTC().Truncate(time.Microsecond), c.Line
	served.Ended = c.endLine(now, false)
	campaign := c.lined()
	free := campaign.Quantity - int64(len(c.Holders))
	opens := firstcome.Decide(campaign, now, -1, false, false)
	if c.Line.Waiting > 0 && opens == firstcome.Waiting {
		turns, due := campaign.Pace.Take(c.Line.Due, clock, min(limit, free, c.Line.Waiting))
		if turns > 0 || due.Before(c.Line.Due) {
			c.Line.Due = due
		}
		for _, user := range c.next(turns) {
			ticket := c.Tickets[user]
			coupon := g.issue(c, user, now, false)
			coupon.Generation, coupon.Ticket = c.Line.Generation, ticket
			c.Holders[user], c.Journal[len(c.Journal)-1] = coupon, coupon
			served.Coupons = append(served.Coupons, coupon)
			c.Line.ServedThrough = ticket
			c.end(user, true)
		}
		if turns > 0 {
			c.OpenedAt, c.SoldOutAt = c.Opened(now), c.SoldOut(int64(len(c.Holders)), now)
		}
		if ended := c.endLine(now, false); ended != "" {
			served.Ended = ended
		}
		free -= turns
	}
	if c.Line != before || c.window(now) != c.window(c.seen) {
		c.seen = now
	}
	served.Waiting = c.Line.Waiting
	switch {
	case c.Line.Waiting == 0, opens == firstcome.Paused, free == 0:
	case opens == firstcome.NotOpen:
		served.Again = c.OpensAt.Sub(now)
	default:
		served.Again = max(time.Microsecond, campaign.Pace.Wait(c.Line.Due, clock))
	}
	return served
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
	known := g.of(id, func(c *Course) {
		now := g.now(c)
		_, ends := c.ending(now, false)
		var holds bool
		if held, holds = c.Holders[user]; holds {
			held = c.told(held)
		} else if ticket := c.Tickets[user]; ticket > 0 && !ends {
			place = c.lined().Place(c.Line, ticket, int64(len(c.Holders)), now)
		} else {
			err = firstcome.ErrNoTicket
		}
	})
	if known != nil {
		err = known
	}
	return place, held, err
}

// Leave is gate.Places'.
func (g *Gate) Leave(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	known := g.of(id, func(c *Course) {
		now := g.now(c)
		_, ends := c.ending(now, false)
		_, holds := c.Holders[user]
		ticket := c.Tickets[user]
		switch {
		case ticket > 0 && !ends:
			c.end(user, false)
			c.seen = now
		case holds:
			err = firstcome.ErrServed
		case ticket == 0 && !c.left[user]:
			err = firstcome.ErrNoTicket
		}
	})
	if known != nil {
		err = known
	}
	return left, err
}

// LineOf is gate.Places'.
func (g *Gate) LineOf(_ context.Context, id firstcome.CampaignID) (state gate.LineState, err error) {
	err = g.of(id, func(c *Course) {
		now := g.now(c)
		state = gate.LineState{Campaign: c.Campaign, Line: c.Line, InForce: int64(len(c.Holders)), Now: now, Past: slices.Clone(c.Past)}
		if past, ends := c.ending(now, false); ends {
			state.Past, state.Line = slices.Insert(state.Past, 0, past), c.Line.Next()
		} else if c.Line.Waiting > 0 {
			state.Joined = c.joinedAt[c.Tickets[c.next(1)[0]]-1]
		}
		state.Past = state.Past[:min(len(state.Past), gate.MaxPastLines)]
	})
	return state, err
}
