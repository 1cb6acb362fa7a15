package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A lineSnapshot is what the place script reads: a campaign's line at one instant, and who a user is in it.
type lineSnapshot struct {
	line
	past    string
	holder  string           // the entry of the coupon that the user holds, or empty
	own     string           // the user's entry in tickets, or empty
	ticket  int64            // with which the user is in line, or 0
	last    firstcome.Ticket // the user's last ticket of this epoch, ended or not; only if the line has a log
	view    firstcome.View
	joined  time.Time // when the user joined who is in line; where no user is asked for, when who is next in line joined
	epoch   int64
	witness gate.Witness      // what the answer tells this node
	logged  *firstcome.Logged // nil: the line has no log
}

// lineSnapshot runs the place script. Users has one user or none.
func (c *conn) lineSnapshot(ctx context.Context, id firstcome.CampaignID, users ...firstcome.UserID) (s lineSnapshot, err error) {
	k, err := c.keysOf(ctx, id)
	if err != nil {
		return s, err
	}
	args := []string{"clock", c.clock(), "witness", witnessArg(c.remembers.witness(k)), ""}
	for _, user := range users {
		args = append(args, string(user))
	}
	a, err := c.run(ctx, placeScript, k, args...)
	switch {
	case err != nil:
		return s, err
	case a.word == "part_gone":
		return s, errPart
	case a.word != "there":
		return s, a.unexpected()
	}
	s = readLineSnapshot(a)
	c.remembers.add(k, s.witness)
	s.view.ID = id
	s.logged = s.logOf(k, s.epoch, s.view.Now)
	return s, a.err
}

// readLineSnapshot reads the place script's answer.
func readLineSnapshot(a *answer) (s lineSnapshot) {
	if field := a.text("line"); field != "" {
		var err error
		s.line, err = readLine(field)
		a.fail("line", err)
	}
	s.past, s.holder, s.own, s.ticket, s.joined = a.text("past"), a.text("holder"), a.text("own"), a.integer("ticket"), a.instant("joined")
	s.last = firstcome.Ticket{Generation: a.integer("last_generation"), Number: a.integer("last_ticket")}
	clock := a.instant("clock")
	s.epoch = a.integer("epoch")
	s.witness = gate.Witness{Epoch: s.epoch, Version: a.integer("version"), Number: a.integer("last_number"), Ticket: s.lastTicket()}
	s.Generation = max(1, s.Generation) // a campaign that never had a pace has no line
	c := firstcome.Campaign{Paused: a.is("paused"), Closed: a.is("closed"), Instants: firstcome.Instants{ClosedAt: a.instant("closed_at")}}
	c.Quantity, c.OpensAt, c.ClosesAt, c.Pace, c.Waitlist = quantityOf(a.integer("quantity")), a.instant("opens_at"), a.instant("closes_at"), s.pace, s.waitlist
	var was firstcome.Quarantine
	if until := a.instant("quarantined_until"); clock.Before(until) { // see state.lua
		was = firstcome.Quarantine{Until: until, OpensAt: a.instant("was_opens_at"), ClosesAt: a.instant("was_closes_at"), SoldOut: a.is("was_sold_out")}
	}
	s.view = firstcome.View{
		Campaign: c.Seen(s.Waiting, was), Line: s.Line, InForce: a.integer("in_force"), Now: a.instant("decided_at"),
		Quarantine: was, InQuarantine: !was.Until.IsZero(),
	}
	if s.view.Now.Before(clock) {
		s.view.Now = clock
	}
	return s
}

// Place returns where a user stands in line: see gate.Places.
func (l *Line) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	s, err := l.conn.lineSnapshot(ctx, id, user)
	switch {
	case err != nil:
		return firstcome.Place{}, firstcome.Coupon{}, fmt.Errorf("read a place in the line of %s: %w", id, err)
	case s.holder != "":
		c, err := l.journal.held(ctx, id, user, s.holder)
		return firstcome.Place{}, c, err
	case s.view.SendsAway() != 0:
		return firstcome.Place{}, firstcome.Coupon{}, firstcome.ErrNoTicket
	case s.ticket == 0:
		return s.ended(), firstcome.Coupon{}, firstcome.ErrNoTicket
	}
	place := s.view.Place(s.ticket)
	place.Log = s.logged
	return place, firstcome.Coupon{}, nil
}

// ended returns the place that a user without a ticket had last, if the line has a log and its generation has not ended.
func (s *lineSnapshot) ended() firstcome.Place {
	if s.logged == nil || s.last.Generation != s.Generation {
		return firstcome.Place{}
	}
	return firstcome.Place{Generation: s.last.Generation, Ticket: s.last.Number, Log: s.logged}
}

// Stays returns when a user was in line: see gate.Places. Redis has only the last ticket of a user, and none of a user who was served and holds the
// coupon.
func (l *Line) Stays(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (stays []gate.Stay, err error) {
	s, err := l.conn.lineSnapshot(ctx, id, user)
	if err == nil && s.own != "" {
		stays, err = s.stays()
	}
	if err != nil {
		return nil, fmt.Errorf("read who was in the line of %s: %w", id, err)
	}
	return stays, nil
}

// stays returns the user's last stay.
func (s *lineSnapshot) stays() ([]gate.Stay, error) {
	if n := len(s.own) - ticketBytes; n != 0 && n != 1 {
		return nil, fmt.Errorf("%w: a ticket has %d bytes instead of %d", errHolder, len(s.own), ticketBytes)
	}
	state, err := s.state()
	generation, number := readTicket(s.own)
	at := firstcome.Ticket{Generation: generation, Number: number}
	stay := gate.Stay{Ticket: at, JoinedAt: s.joined}
	if s.ticket == 0 || s.view.SendsAway() != 0 {
		stay = state.Stay(at)
		stay.JoinedAt = s.joined
	}
	if len(s.own) > ticketBytes {
		stay = gate.Stay{Ticket: at, Ended: gate.StayOver}
	}
	return []gate.Stay{stay}, err
}

// LineOf returns a campaign's line: see gate.Places.
func (l *Line) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	s, err := l.conn.lineSnapshot(ctx, id)
	var state gate.LineState
	if err == nil {
		state, err = s.state()
	}
	if err != nil {
		return gate.LineState{}, fmt.Errorf("read the line of %s: %w", id, err)
	}
	return state, nil
}

// state returns what the script read of the line.
func (s *lineSnapshot) state() (gate.LineState, error) {
	state := gate.LineState{View: s.view, Joined: s.joined}
	state.Campaign.Pace = s.pace
	if ended, over := s.view.EndedLine(); over {
		state.Past, state.Line, state.Joined = append(state.Past, ended), s.Line.Next(), time.Time{}
	}
	for text := range strings.Lines(s.past) {
		p, err := readPast(strings.TrimSpace(text))
		if err != nil {
			return gate.LineState{}, err
		}
		if len(state.Past) < gate.MaxPastLines {
			state.Past = append(state.Past, p)
		}
	}
	return state, nil
}

// readPast reads what a script says of a generation that ended.
func readPast(text string) (p firstcome.PastLine, err error) {
	words := strings.Fields(text)
	if len(words) != 7 {
		return p, fmt.Errorf("%w: of a line that ended it has %q", errHolder, text)
	}
	var at int64
	for n, into := range []*int64{&p.Generation, nil, &at, &p.LastTicket, &p.ServedThrough, &p.Served, &p.Waiting} {
		if into == nil {
			p.Reason = words[n]
		} else if *into, err = strconv.ParseInt(words[n], 10, 64); err != nil {
			return p, fmt.Errorf("%w: of a line that ended it has %q", errHolder, text)
		}
	}
	p.EndedAt = instant(at)
	return p, nil
}
