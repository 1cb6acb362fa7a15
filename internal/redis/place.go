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
	past   string
	holder string           // the entry of the coupon that the user holds, or empty
	own    string           // the user's entry in tickets, or empty
	ticket int64            // with which the user is in line, or 0
	last   firstcome.Ticket // the user's last ticket of this epoch, ended or not; only if the line has a log
	// campaign is as claims see it at now, the gate's time.
	campaign firstcome.Campaign
	inForce  int64
	now      time.Time
	joined   time.Time // when the user joined who is in line; where no user is asked for, when who is next in line joined
	epoch    int64
	witness  gate.Witness      // what the answer tells this node
	logged   *firstcome.Logged // nil: the line has no log
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
	case a.word == "lost":
		return s, errPart
	case a.word != "there":
		return s, a.unexpected()
	}
	s = readLineSnapshot(a)
	c.remembers.add(k, s.witness)
	s.campaign.ID = id
	s.logged = s.logOf(k, s.epoch, s.now)
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
	c := &s.campaign
	c.Quantity, c.OpensAt, c.ClosesAt, c.Paused, c.Closed = quantityOf(a.integer("quantity")), a.instant("opens_at"), a.instant("closes_at"), a.is("paused"), a.is("closed")
	c.ClosedAt, s.inForce = a.instant("closed_at"), a.integer("in_force")
	c.Pace, c.Waitlist = s.paceNow(), s.waitlist
	if s.now = a.instant("decided_at"); s.now.Before(clock) {
		s.now = clock
	}
	if until := a.instant("quarantined_until"); clock.Before(until) { // see state.lua
		narrow(c, a.instant("was_opens_at"), a.instant("was_closes_at"))
		c.Waitlist = c.Waitlist && !a.is("was_sold_out")
	}
	return s
}

// narrow holds a campaign's window as narrow as it was.
func narrow(c *firstcome.Campaign, opensAt, closesAt time.Time) {
	if opensAt.After(c.OpensAt) {
		c.OpensAt = opensAt
	}
	if !closesAt.IsZero() && (c.ClosesAt.IsZero() || closesAt.Before(c.ClosesAt)) {
		c.ClosesAt = closesAt
	}
}

// sendsAway returns why everybody in line is sent away, Closed or SoldOut, though nobody has written so; or 0.
func (s *lineSnapshot) sendsAway() firstcome.Outcome {
	if s.LastTicket == 0 {
		return 0
	}
	if why := firstcome.Decide(s.campaign, s.now, s.inForce, false, true); why != firstcome.Waiting {
		return why
	}
	return 0
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
	case s.sendsAway() != 0:
		return firstcome.Place{}, firstcome.Coupon{}, firstcome.ErrNoTicket
	case s.ticket == 0:
		return s.ended(), firstcome.Coupon{}, firstcome.ErrNoTicket
	}
	place := s.campaign.Place(s.Line, s.ticket, s.inForce, s.now)
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
	if s.ticket == 0 || s.sendsAway() != 0 {
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
	state := gate.LineState{Campaign: s.campaign, Line: s.Line, InForce: s.inForce, Now: s.now, Joined: s.joined}
	state.Campaign.Pace = s.pace
	if why := s.sendsAway(); why != 0 {
		at := s.now
		if why == firstcome.Closed {
			at = s.campaign.Since(why)
		}
		state.Past = append(state.Past, s.Line.Ended(why.String(), at))
		state.Joined = time.Time{}
		state.Line = s.Line.Next()
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
