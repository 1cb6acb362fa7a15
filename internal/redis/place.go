package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A sight is what the place script reads: a campaign's line at one instant, and who a user is in it.
type sight struct {
	line
	past   string
	holder string // the entry of the coupon that the user holds, or empty
	ticket int64  // with which the user is in line, or 0
	// campaign is as claims see it at now, the gate's time.
	campaign firstcome.Campaign
	inForce  int64
	now      time.Time
	joined   time.Time // when who is next in line joined; only where no user is asked for
	epoch    int64
	logged   *firstcome.Logged // nil: the line has no log
}

// see runs the place script. Users has one user or none.
func (l *Line) see(ctx context.Context, id firstcome.CampaignID, users ...firstcome.UserID) (s sight, err error) {
	k, err := l.conn.keysOf(ctx, id)
	if err != nil {
		return s, err
	}
	args := []string{l.conn.clock()}
	for _, user := range users {
		args = append(args, string(user))
	}
	word, parts, err := l.conn.run(ctx, placeScript, k, args...)
	switch {
	case err != nil:
		return s, err
	case word == "lost":
		return s, errPart
	case len(parts) != 20:
		return s, fmt.Errorf("the place script answered %q and %d parts", word, len(parts))
	}
	if s, err = readSight(parts); err != nil {
		return s, fmt.Errorf("the place script's answer cannot be read: %w", err)
	}
	s.campaign.ID = id
	s.logged = s.logOf(k, s.epoch, s.now)
	return s, nil
}

// readSight reads the parts of the place script's answer.
func readSight(parts []rueidis.RedisMessage) (s sight, err error) {
	var field string
	for n, into := range []*string{&field, &s.past, &s.holder} {
		if *into, err = parts[n].ToString(); err != nil {
			return s, err
		}
	}
	var n [17]int64
	for i := range n {
		if n[i], err = whole(parts[3+i]); err != nil {
			return s, err
		}
	}
	s.Generation = 1
	if field != "" {
		if s.line, err = readLine(field); err != nil {
			return s, err
		}
	}
	s.ticket, s.inForce, s.joined, s.epoch = n[0], n[7], instant(n[15]), n[16]
	clock, decidedAt := instant(n[1]), instant(n[8])
	if s.now = clock; s.now.Before(decidedAt) {
		s.now = decidedAt
	}
	c := &s.campaign
	c.Quantity, c.OpensAt, c.ClosesAt, c.Paused, c.Closed, c.ClosedAt = quantityOf(n[2]), instant(n[3]), instant(n[4]), n[5] == 1, n[6] == 1, instant(n[13])
	c.Pace, c.Waitlist = s.paceNow(), s.waitlist
	if until := instant(n[10]); clock.Before(until) { // stock is quarantined: see claim.lua
		c.Waitlist = c.Waitlist && n[14] == 0
		narrow(c, instant(n[11]), instant(n[12]))
	}
	return s, nil
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
func (s *sight) sendsAway() firstcome.Outcome {
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
	s, err := l.see(ctx, id, user)
	switch {
	case err != nil:
		return firstcome.Place{}, firstcome.Coupon{}, fmt.Errorf("read a place in the line of %s: %w", id, err)
	case s.holder != "":
		c, err := l.journal.held(ctx, id, user, s.holder)
		return firstcome.Place{}, c, err
	case s.ticket == 0 || s.sendsAway() != 0:
		return firstcome.Place{}, firstcome.Coupon{}, firstcome.ErrNoTicket
	}
	place := s.campaign.Place(s.Line, s.ticket, s.inForce, s.now)
	place.Log = s.logged
	return place, firstcome.Coupon{}, nil
}

// LineOf returns a campaign's line: see gate.Places.
func (l *Line) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	s, err := l.see(ctx, id)
	if err != nil {
		return gate.LineState{}, fmt.Errorf("read the line of %s: %w", id, err)
	}
	state := gate.LineState{Campaign: s.campaign, Line: s.Line, InForce: s.inForce, Now: s.now, Joined: s.joined}
	state.Campaign.Pace = s.pace
	if why := s.sendsAway(); why != 0 {
		l, at := s.Line, s.now
		if why == firstcome.Closed {
			at = s.campaign.Since(why)
		}
		state.Past = append(state.Past, gate.PastLine{
			Generation: l.Generation, Reason: why.String(), EndedAt: at, LastTicket: l.LastTicket,
			ServedThrough: l.ServedThrough, Served: l.Served, Waiting: l.Waiting,
		})
		state.Joined = time.Time{}
		state.Line = firstcome.Line{Generation: l.Generation + 1, Due: l.Due}
	}
	for text := range strings.Lines(s.past) {
		p, err := readPast(strings.TrimSpace(text))
		if err != nil {
			return gate.LineState{}, fmt.Errorf("read the line of %s: %w", id, err)
		}
		if len(state.Past) < gate.MaxPastLines {
			state.Past = append(state.Past, p)
		}
	}
	return state, nil
}

// readPast reads what a script says of a generation that ended.
func readPast(text string) (p gate.PastLine, err error) {
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
