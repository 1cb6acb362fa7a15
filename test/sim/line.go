package sim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A queue is the waiting line of a course.
type queue struct {
	line   firstcome.Line
	people []inLine                        // in the order of their tickets
	joined map[firstcome.UserID]bool       // who had a ticket that has ended
	left   map[firstcome.UserID]ticketName // of the epoch, that they gave back last, or were sent away with
	past   []firstcome.PastLine            // newest first
}

// A ticketName is a unique name of a ticket.
type ticketName struct{ generation, number int64 }

// An inLine is somebody in line.
type inLine struct {
	user   firstcome.UserID
	ticket int64
	at     time.Time // when they joined
}

func newQueue() queue {
	return queue{line: firstcome.Line{Generation: 1}, joined: map[firstcome.UserID]bool{}, left: map[firstcome.UserID]ticketName{}}
}

// ticketOf returns the ticket with which a user is in line, or 0.
func (q *queue) ticketOf(user firstcome.UserID) int64 {
	for _, p := range q.people {
		if p.user == user {
			return p.ticket
		}
	}
	return 0
}

// join returns a user's ticket, a new one if they have none.
func (q *queue) join(user firstcome.UserID, now time.Time) int64 {
	if ticket := q.ticketOf(user); ticket > 0 {
		return ticket
	}
	q.line.LastTicket++
	q.line.Waiting++
	q.people = append(q.people, inLine{user, q.line.LastTicket, now})
	return q.line.LastTicket
}

// stop ends the ticket of a user who is in line, who was served or not.
func (q *queue) stop(user firstcome.UserID, served bool) {
	n := slices.IndexFunc(q.people, func(p inLine) bool { return p.user == user })
	if n < 0 {
		return
	}
	q.people = slices.Delete(slices.Clone(q.people), n, n+1)
	q.joined[user] = true
	q.line.Waiting--
	if served {
		q.line.Served++
	}
	if len(q.people) == 0 {
		q.line.ServedThrough = q.line.LastTicket
	}
}

// asSeen returns the campaign as claims see it while stock is quarantined: with its window as narrow as it was, and without a waitlist that it did
// not have. Users in line stay there without a pace.
func (c *course) asSeen() firstcome.Campaign {
	seen := c.narrow(c.Campaign)
	seen.Waitlist = seen.Waitlist && !c.wasSoldOut
	if seen.Pace == nil && len(c.people) > 0 {
		seen.Pace = &firstcome.Pace{}
	}
	return seen
}

// isSoldOut reports whether every coupon is in force and nobody stands by.
func (c *course) isSoldOut() bool { return c.inForce() >= c.Quantity && !(c.Pace != nil && c.Waitlist) }

// away returns the outcome with which all users in line are sent away, or 0. A generation without tickets does not end.
func (c *course) away(now time.Time) firstcome.Outcome {
	if c.line.LastTicket == 0 {
		return 0
	}
	if o := firstcome.Decide(c.asSeen(), now, c.inForce(), false, true); o != firstcome.Waiting {
		return o
	}
	return 0
}

// since returns since when an outcome is told.
func (c *course) since(o firstcome.Outcome) time.Time {
	seen := c.asSeen()
	seen.Instants = c.Instants
	return seen.Since(o)
}

// endsAs returns the generation as it ends.
func (c *course) endsAs(why firstcome.Outcome, at time.Time) firstcome.PastLine {
	return c.line.Ended(why.String(), at)
}

// sendAway ends the generation if everybody in line is sent away, by a change that was just made or not. It returns the one that ended.
func (c *course) sendAway(now time.Time, changed bool) (ended []firstcome.PastLine) {
	why := c.away(now)
	if why == 0 {
		return nil
	}
	at := now
	if why == firstcome.Closed && !changed {
		at = c.since(why)
	}
	ended = []firstcome.PastLine{c.endsAs(why, at)}
	c.did(happening{sent: why.String(), quantity: c.Quantity})
	c.past = append(slices.Clone(ended), c.past...)
	for _, p := range c.people {
		c.joined[p.user] = true
		c.left[p.user] = ticketName{c.line.Generation, p.ticket}
	}
	c.people, c.line = nil, c.line.Next()
	return ended
}

// report returns what the journal says of the line, if a generation ended, or of a campaign that ever had a pace, with coupons.
func (c *course) report(ended []firstcome.PastLine) (r gate.LineReport) {
	if c.lined || len(ended) > 0 {
		r.Line, r.Past = c.line, ended
		r.Line.Due = time.Time{}
	}
	return r
}

// Serve implements gate.Line.
func (g *Gate) Serve(_ context.Context, id firstcome.CampaignID, limit int) (served gate.Served, err error) {
	refused := g.of(id, func(c *course) {
		if err = g.verified(c); err != nil || len(c.people) == 0 {
			return
		}
		clock, now := g.now(c)
		c.release(clock, g.Quarantine)
		served = g.serve(c, int64(limit), clock, now)
	})
	if refused != nil {
		return served, refused
	}
	return served, err
}

// serve issues to those next in line whom the pace lets through.
func (g *Gate) serve(c *course, limit int64, clock, now time.Time) (served gate.Served) {
	before, generation := c.line, c.line.Generation
	ended := c.sendAway(now, false)
	if firstcome.Decide(c.asSeen(), now, -1, false, false) == firstcome.Waiting && len(c.people) > 0 {
		free := max(0, c.Quantity-c.inForce()-c.stock)
		if c.ceiling > 0 {
			free = min(free, max(0, c.ceiling-c.last))
		}
		turns, due := c.asSeen().Pace.Take(c.line.Due, clock, min(limit, free, c.line.Waiting))
		if turns > 0 {
			c.OpenedAt = c.asSeen().Opened(now)
		}
		for range turns {
			served.Coupons = append(served.Coupons, c.serveNext(now))
		}
		if turns > 0 || due.Before(c.line.Due) {
			c.line.Due = due
		}
		c.SoldOutAt = c.SoldOut(c.inForce(), now)
		ended = append(ended, c.sendAway(now, false)...)
	}
	if c.line.Generation != generation {
		served.Ended = c.past[0].Reason
	}
	if c.line != before || phase(c.asSeen(), now) != phase(c.asSeen(), c.seen) {
		c.seen = now
	}
	served.Waiting, served.Again = c.line.Waiting, c.againIn(clock, now)
	if len(served.Coupons) > 0 || len(ended) > 0 {
		g.append(record.Batch{Campaign: c.ID, Epoch: c.epoch, Coupons: served.Coupons, Line: c.report(ended)})
	}
	return served
}

// serveNext issues to the next user.
func (c *course) serveNext(now time.Time) firstcome.Coupon {
	next := c.people[0]
	issued := c.issue(next.user, now, c.line.Generation, next.ticket, false)
	c.line.ServedThrough = next.ticket
	c.stop(next.user, true)
	return issued
}

// againIn returns how long it takes until somebody in line can be served; 0: that is not known.
func (c *course) againIn(clock, now time.Time) time.Duration {
	if c.line.Waiting == 0 {
		return 0
	}
	seen := c.asSeen()
	why, free := firstcome.Decide(seen, now, -1, false, false), c.Quantity-c.inForce()-c.stock
	quarantine := clock.Before(c.until)
	switch {
	case why == firstcome.Paused, c.ceiling > 0 && c.last >= c.ceiling && c.inForce() < c.Quantity:
		return 0
	case quarantine && (free <= 0 || why != firstcome.Waiting):
		return c.until.Sub(clock)
	case why == firstcome.NotOpen:
		return seen.OpensAt.Sub(now)
	case why != firstcome.Waiting, free <= 0:
		return 0
	}
	return max(seen.Pace.Wait(c.line.Due, clock), time.Microsecond) // at once
}

// serves reports whether somebody in line can be served, now or when their turn comes.
func (g *Gate) serves() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[campaign]
	if c == nil || len(c.people) == 0 {
		return false
	}
	_, now := g.now(c)
	return c.away(now) != 0 || firstcome.Decide(c.asSeen(), now, -1, false, false) == firstcome.Waiting && c.inForce() < c.Quantity
}

// Lines implements gate.Line.
func (g *Gate) Lines(_ context.Context, each func(firstcome.CampaignID)) error {
	g.mu.Lock()
	var with []firstcome.CampaignID
	for id, c := range g.campaigns {
		if len(c.people) > 0 {
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

// look calls do with what somebody sees of a campaign who changes nothing.
func (g *Gate) look(id firstcome.CampaignID, do func(c *course, clock, now time.Time)) (err error) {
	refused := g.of(id, func(c *course) {
		if err = g.verified(c); err != nil {
			return
		}
		clock, now := g.now(c)
		seen := *c
		seen.release(clock, g.Quarantine)
		do(&seen, clock, now)
	})
	if refused != nil {
		return refused
	}
	return err
}

// Place is gate.Places'.
func (g *Gate) Place(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (p firstcome.Place, held firstcome.Coupon, err error) {
	none := false
	err = g.look(id, func(c *course, _, now time.Time) {
		one, holds := c.holders[user]
		ticket := c.ticketOf(user)
		switch {
		case holds:
			held = c.told(one)
		case ticket == 0, c.away(now) != 0:
			none = true
		default:
			p = c.asSeen().Place(c.line, ticket, c.inForce(), now)
			p.Log = c.logged(now)
		}
	})
	if none {
		err = firstcome.ErrNoTicket
	}
	return p, held, err
}

// Leave is gate.Places'.
func (g *Gate) Leave(_ context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	refused := g.of(id, func(c *course) {
		if err = g.verified(c); err != nil {
			return
		}
		clock, now := g.now(c)
		seen := *c
		seen.release(clock, g.Quarantine)
		_, holds := c.holders[user]
		switch ticket := c.ticketOf(user); {
		case ticket > 0 && seen.away(now) == 0:
			c.release(clock, g.Quarantine)
			c.stop(user, false)
			c.left[user] = ticketName{c.line.Generation, ticket}
			c.seen = now
			c.did(happening{went: user})
		case holds:
			err = firstcome.ErrServed
		case ticket == 0 && !c.joined[user]:
			err = firstcome.ErrNoTicket
		}
		if gone := c.left[user]; err == nil && gone.generation >= c.began {
			left = firstcome.Place{Generation: gone.generation, Ticket: gone.number, Log: c.logged(now)}
		}
	})
	return left, cmp.Or(refused, err)
}

// logged returns the log's record of a ticket that has not ended at a time, or that was given back; nil if the line has no log.
func (c *course) logged(at time.Time) *firstcome.Logged {
	if c.Log == nil {
		return nil
	}
	return &firstcome.Logged{LineLog: *c.Log, Marker: marker, Epoch: c.epoch, Began: c.began, At: at}
}

// Decides implements gate.Gate.
func (g *Gate) Decides(_ context.Context, id firstcome.CampaignID, epoch int64) error {
	if at, _ := g.last(id); at > epoch {
		return recovery.ErrAhead
	}
	return cmp.Or(g.outlived(id, epoch), g.stands(id))
}

// LineOf is gate.Places'.
func (g *Gate) LineOf(_ context.Context, id firstcome.CampaignID) (state gate.LineState, err error) {
	err = g.look(id, func(c *course, clock, now time.Time) {
		state = gate.LineState{Campaign: c.asSeen(), Line: c.line, InForce: c.inForce(), Now: clock, Past: c.past}
		if len(c.people) > 0 {
			state.Joined = c.people[0].at
		}
		if why := c.away(now); why != 0 {
			state.Past = append([]firstcome.PastLine{c.endsAs(why, c.since(why))}, c.past...)
			state.Line, state.Joined = c.line.Next(), time.Time{}
		}
		state.Past = state.Past[:min(len(state.Past), gate.MaxPastLines)]
	})
	return state, err
}

// Issue implements gate.Decider.
func (g *Gate) Issue(_ context.Context, _ gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decides(id, users, true)
}
