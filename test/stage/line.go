package stage

import (
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A Queue is the waiting line of a course.
type Queue struct {
	Line   firstcome.Line
	People []InLine                         // in the order of their tickets
	Joined map[firstcome.UserID]bool        // who had a ticket that has ended
	Left   map[firstcome.UserID]TicketName  // of the epoch, that they gave back last, or were sent away with
	Past   []firstcome.PastLine             // newest first
	Stays  map[firstcome.UserID][]gate.Stay // in the order of tickets, without those of people who are in line
}

// A TicketName is a unique name of a ticket.
type TicketName struct{ Generation, Number int64 }

// An InLine is somebody in line.
type InLine struct {
	User   firstcome.UserID
	Ticket int64
	At     time.Time // when they joined
}

func newQueue() Queue {
	return Queue{Line: firstcome.Line{Generation: 1}, Joined: map[firstcome.UserID]bool{}, Left: map[firstcome.UserID]TicketName{}, Stays: map[firstcome.UserID][]gate.Stay{}}
}

// stayed notes that a ticket has ended.
func (q *Queue) stayed(p InLine, how string, at time.Time) {
	if q.Stays == nil {
		q.Stays = map[firstcome.UserID][]gate.Stay{}
	}
	q.Stays[p.User] = append(q.Stays[p.User], gate.Stay{Ticket: firstcome.Ticket{Generation: q.Line.Generation, Number: p.Ticket}, JoinedAt: p.At, EndedAt: at, Ended: how})
}

// TicketOf returns the ticket with which a user is in line, or 0.
func (q *Queue) TicketOf(user firstcome.UserID) int64 {
	for _, p := range q.People {
		if p.User == user {
			return p.Ticket
		}
	}
	return 0
}

// join returns a user's ticket, a new one if they have none.
func (q *Queue) join(user firstcome.UserID, now time.Time) int64 {
	if ticket := q.TicketOf(user); ticket > 0 {
		return ticket
	}
	q.Line.LastTicket++
	q.Line.Waiting++
	q.People = append(q.People, InLine{user, q.Line.LastTicket, now})
	return q.Line.LastTicket
}

// Stop ends the ticket of a user who is in line, who was served or not.
func (q *Queue) Stop(user firstcome.UserID, served bool) {
	n := slices.IndexFunc(q.People, func(p InLine) bool { return p.User == user })
	if n < 0 {
		return
	}
	q.People = slices.Delete(slices.Clone(q.People), n, n+1)
	q.Joined[user] = true
	q.Line.Waiting--
	if served {
		q.Line.Served++
	}
	if len(q.People) == 0 {
		q.Line.ServedThrough = q.Line.LastTicket
	}
}

// AsSeen returns the campaign as claims see it while stock is quarantined: with its window as narrow as it was, and without a waitlist that it did
// not have. Users in line stay there without a pace.
func (c *Course) AsSeen() firstcome.Campaign {
	seen := c.Narrow(c.Campaign)
	seen.Waitlist = seen.Waitlist && !c.WasSoldOut
	if seen.Pace == nil && len(c.People) > 0 {
		seen.Pace = &firstcome.Pace{}
	}
	return seen
}

// IsSoldOut reports whether every coupon is in force and nobody stands by.
func (c *Course) IsSoldOut() bool { return c.InForce() >= c.Quantity && !(c.Pace != nil && c.Waitlist) }

// Away returns the outcome with which all users in line are sent away, or 0. A generation without tickets does not end.
func (c *Course) Away(now time.Time) firstcome.Outcome {
	if c.Line.LastTicket == 0 {
		return 0
	}
	if o := firstcome.Decide(c.AsSeen(), now, c.InForce(), false, true); o != firstcome.Waiting {
		return o
	}
	return 0
}

// since returns since when an outcome is told.
func (c *Course) since(o firstcome.Outcome) time.Time {
	seen := c.AsSeen()
	seen.Instants = c.Instants
	return seen.Since(o)
}

// endsAs returns the generation as it ends.
func (c *Course) endsAs(why firstcome.Outcome, at time.Time) firstcome.PastLine {
	return c.Line.Ended(why.String(), at)
}

// sendAway ends the generation if everybody in line is sent away, by a change that was just made or not. It returns the one that ended.
func (c *Course) sendAway(now time.Time, changed bool) (ended []firstcome.PastLine) {
	why := c.Away(now)
	if why == 0 {
		return nil
	}
	at := now
	if why == firstcome.Closed && !changed {
		at = c.since(why)
	}
	ended = []firstcome.PastLine{c.endsAs(why, at)}
	c.Did(Happening{Sent: why.String(), Quantity: c.Quantity})
	c.Past = append(slices.Clone(ended), c.Past...)
	for _, p := range c.People {
		c.Joined[p.User] = true
		c.stayed(p, why.String(), at)
		c.Left[p.User] = TicketName{c.Line.Generation, p.Ticket}
	}
	c.People, c.Line = nil, c.Line.Next()
	return ended
}

// report returns what the journal says of the line, if a generation ended, or of a campaign that ever had a pace, with coupons.
func (c *Course) report(ended []firstcome.PastLine) (r gate.LineReport) {
	if c.Lined || len(ended) > 0 {
		r.Line, r.Past = c.Line, ended
		r.Line.Due = time.Time{}
	}
	return r
}

// serveNext issues to the next user.
func (c *Course) serveNext(now time.Time) firstcome.Coupon {
	next := c.People[0]
	issued := c.Issue(next.User, now, c.Line.Generation, next.Ticket, false)
	c.stayed(next, "issued", now)
	c.Line.ServedThrough = next.Ticket
	c.Stop(next.User, true)
	return issued
}

// againIn returns how long it takes until somebody in line can be served; 0: that is not known.
func (c *Course) againIn(clock, now time.Time) time.Duration {
	if c.Line.Waiting == 0 {
		return 0
	}
	seen := c.AsSeen()
	why, free := firstcome.Decide(seen, now, -1, false, false), c.Quantity-c.InForce()-c.Stock
	quarantine := clock.Before(c.Until)
	switch {
	case why == firstcome.Paused, c.Ceiling > 0 && c.Last >= c.Ceiling && c.InForce() < c.Quantity:
		return 0
	case quarantine && (free <= 0 || why != firstcome.Waiting):
		return c.Until.Sub(clock)
	case why == firstcome.NotOpen:
		return seen.OpensAt.Sub(now)
	case why != firstcome.Waiting, free <= 0:
		return 0
	}
	return max(seen.Pace.Wait(c.Line.Due, clock), time.Microsecond) // at once
}

// logged returns the log's record of a ticket that has not ended at a time, or that was given back; nil if the line has no log.
func (c *Course) logged(at time.Time) *firstcome.Logged {
	if c.Log == nil {
		return nil
	}
	return &firstcome.Logged{LineLog: *c.Log, CampaignUID: c.CampaignUID, Epoch: c.Epoch, Began: c.Began, At: at}
}

// Serve issues to those next in line whom the pace lets through. It returns also what the journal gets.
func (c *Course) Serve(r Rules, at time.Time, limit int) (served gate.Served, b record.Batch) {
	if len(c.People) == 0 {
		return served, b
	}
	clock, now := c.at(r, at)
	before, generation := c.Line, c.Line.Generation
	ended := c.sendAway(now, false)
	if firstcome.Decide(c.AsSeen(), now, -1, false, false) == firstcome.Waiting && len(c.People) > 0 {
		free := max(0, c.Quantity-c.InForce()-c.Stock)
		if c.Ceiling > 0 {
			free = min(free, max(0, c.Ceiling-c.Last))
		}
		turns, due := c.AsSeen().Pace.Take(c.Line.Due, clock, min(int64(limit), free, c.Line.Waiting))
		if turns > 0 {
			c.OpenedAt = c.AsSeen().Opened(now)
		}
		for range turns {
			served.Coupons = append(served.Coupons, c.serveNext(now))
		}
		if turns > 0 || due.Before(c.Line.Due) {
			c.Line.Due = due
		}
		c.SoldOutAt = c.SoldOut(c.InForce(), now)
		ended = append(ended, c.sendAway(now, false)...)
	}
	if c.Line.Generation != generation {
		served.Ended = c.Past[0].Reason
	}
	if c.Line != before || phase(c.AsSeen(), now) != phase(c.AsSeen(), c.Seen) {
		c.Seen = now
	}
	served.Waiting, served.Again = c.Line.Waiting, c.againIn(clock, now)
	return served, c.entry(served.Coupons, ended)
}

// looked returns the campaign as somebody sees it who changes nothing, with the clock and the gate's time.
func (c *Course) looked(r Rules, at time.Time) (Course, time.Time, time.Time) {
	seen := *c
	clock, now := seen.at(r, at)
	return seen, clock, now
}

// PlaceOf returns a user's place, or the coupon that the user holds. A user who has neither and left this generation gets the place that they had.
func (c *Course) PlaceOf(r Rules, at time.Time, user firstcome.UserID) (p firstcome.Place, held firstcome.Coupon, err error) {
	seen, _, now := c.looked(r, at)
	one, holds := seen.Holders[user]
	ticket := seen.TicketOf(user)
	switch {
	case holds:
		return p, seen.Told(one), nil
	case seen.Away(now) != 0:
		return p, held, firstcome.ErrNoTicket
	case ticket == 0:
		if gone, log := seen.Left[user], seen.logged(now); log != nil && gone.Generation == seen.Line.Generation && gone.Generation >= seen.Began {
			p = firstcome.Place{Generation: gone.Generation, Ticket: gone.Number, Log: log}
		}
		return p, held, firstcome.ErrNoTicket
	}
	p = firstcome.View{Campaign: seen.AsSeen(), Line: seen.Line, InForce: seen.InForce(), Now: now}.Place(ticket)
	p.Log = seen.logged(now)
	return p, held, nil
}

// Leave takes a user out of the line.
func (c *Course) Leave(r Rules, at time.Time, user firstcome.UserID) (left firstcome.Place, err error) {
	seen, clock, now := c.looked(r, at)
	_, holds := c.Holders[user]
	switch ticket := c.TicketOf(user); {
	case ticket > 0 && seen.Away(now) == 0:
		c.Release(clock, r.Quarantine)
		c.stayed(InLine{user, ticket, c.joinedAt(user)}, "left", now)
		c.Stop(user, false)
		c.Left[user] = TicketName{c.Line.Generation, ticket}
		c.Seen = now
		c.Did(Happening{Went: user})
	case holds:
		err = firstcome.ErrServed
	case ticket == 0 && !c.Joined[user]:
		err = firstcome.ErrNoTicket
	}
	if gone := c.Left[user]; err == nil && gone.Generation >= c.Began {
		left = firstcome.Place{Generation: gone.Generation, Ticket: gone.Number, Log: c.logged(now)}
	}
	return left, err
}

// joinedAt returns when a user joined who is in line.
func (q *Queue) joinedAt(user firstcome.UserID) (at time.Time) {
	for _, p := range q.People {
		if p.User == user {
			at = p.At
		}
	}
	return at
}

// StaysOf returns when a user was in line.
func (c *Course) StaysOf(r Rules, at time.Time, user firstcome.UserID) []gate.Stay {
	seen, _, now := c.looked(r, at)
	all := slices.Clone(seen.Stays[user])
	if ticket := seen.TicketOf(user); ticket > 0 {
		stay := gate.Stay{Ticket: firstcome.Ticket{Generation: seen.Line.Generation, Number: ticket}, JoinedAt: seen.joinedAt(user)}
		if why := seen.Away(now); why != 0 {
			stay.Ended, stay.EndedAt = why.String(), seen.since(why)
		}
		all = append(all, stay)
	}
	return all
}

// LineOf returns the state of the line.
func (c *Course) LineOf(r Rules, at time.Time) gate.LineState {
	seen, _, now := c.looked(r, at)
	state := gate.LineState{View: firstcome.View{Campaign: seen.AsSeen(), Line: seen.Line, InForce: seen.InForce(), Now: now}, Past: slices.Clone(seen.Past)}
	if len(seen.People) > 0 {
		state.Joined = seen.People[0].At
	}
	if why := seen.Away(now); why != 0 {
		state.Past = append([]firstcome.PastLine{seen.endsAs(why, seen.since(why))}, seen.Past...)
		state.Line, state.Joined = seen.Line.Next(), time.Time{}
	}
	state.Past = state.Past[:min(len(state.Past), gate.MaxPastLines)]
	return state
}
