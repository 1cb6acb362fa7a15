package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// maxServe bounds how many tickets one script serves: a millisecond or two of Redis.
const maxServe = 1000

// A lineVerdict is what the claim script says of a campaign's line, after the batch.
type lineVerdict struct {
	kept bool // the campaign ever had a pace
	line
	quantity int64
	paused   bool
	// What is quarantined counts until then, by the clock; all in microseconds.
	quarantined, quarantinedUntil, clock int64
	room                                 bool  // in the backlog
	joined                               int64 // tickets given in the batch
	standsBy                             bool  // who is in line
	ended                                string
	tickets                              []int64 // see lua/claim.lua
	users                                []string
}

// A line is the field line of a campaign's hash.
type line struct {
	firstcome.Line
	pace     *firstcome.Pace
	waitlist bool
	log      *firstcome.LineLog // from where the epoch begins; nil: it has none
	began    int64              // the generation with which the epoch began, of a line that has a log
}

// logOf returns what the log of a line has to have of places; nil: it has none.
func (l *line) logOf(k *keys, epoch int64, at time.Time) *firstcome.Logged {
	if l.log == nil {
		return nil
	}
	return &firstcome.Logged{LineLog: *l.log, Marker: k.marker, Epoch: epoch, Began: l.began, At: at}
}

// logArg returns a line's log as the scripts take it: nothing for none.
func logArg(l *firstcome.LineLog) string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", l.Topic, l.Partition, l.First)
}

// readLog reads what the field line has of its log: topic, partition, first offset and the generation with which the epoch began.
func (l *line) readLog(words []string) error {
	partition, err := strconv.ParseInt(words[1], 10, 32)
	l.log = &firstcome.LineLog{Topic: words[0], Partition: int32(partition)}
	if err == nil {
		l.log.First, err = strconv.ParseInt(words[2], 10, 64)
	}
	if err == nil {
		l.began, err = strconv.ParseInt(words[3], 10, 64)
	}
	return err
}

// readLine reads the field line.
func readLine(field string) (l line, err error) {
	words := strings.Fields(field)
	if len(words) != 8 && len(words) != 12 {
		return l, fmt.Errorf("%w: the line is %q", errHolder, field)
	}
	var due int64
	for n, into := range []*int64{&l.Generation, &l.LastTicket, &l.ServedThrough, &l.Served, &l.Waiting, &due} {
		if *into, err = strconv.ParseInt(words[n], 10, 64); err != nil {
			return l, fmt.Errorf("%w: the line is %q", errHolder, field)
		}
	}
	l.Due = instant(due)
	if perSecond, err := strconv.ParseInt(words[6], 10, 64); err == nil {
		l.pace = &firstcome.Pace{PerSecond: perSecond}
	}
	l.waitlist = words[7] == "1"
	if len(words) == 12 {
		if err := l.readLog(words[8:]); err != nil {
			return l, fmt.Errorf("%w: the line is %q: %w", errHolder, field, err)
		}
	}
	return l, nil
}

// readLineVerdict reads what the claim script's answer has of the line.
func readLineVerdict(parts []rueidis.RedisMessage) (v lineVerdict, err error) {
	v.kept = true
	field, err := parts[0].ToString()
	if err != nil {
		return v, err
	}
	if v.line, err = readLine(field); err != nil {
		return v, err
	}
	text, err := parts[1].ToString()
	if err != nil {
		return v, err
	}
	var paused, room, standsBy int64
	if _, err := fmt.Sscan(text, &v.quantity, &paused, &v.quarantined, &v.quarantinedUntil, &v.clock, &room, &v.joined, &standsBy); err != nil {
		return v, fmt.Errorf("of its line: %q: %w", text, err)
	}
	v.quantity, v.paused, v.room, v.standsBy = quantityOf(v.quantity), paused == 1, room == 1, standsBy == 1
	if v.ended, err = parts[2].ToString(); err != nil {
		return v, err
	}
	if v.tickets, err = parts[3].AsIntSlice(); err != nil {
		return v, err
	}
	v.users, err = parts[4].AsStrSlice()
	return v, err
}

// quantityOf returns the quantity that quantityArg was made of.
func quantityOf(quantity int64) int64 {
	if quantity == unlimited {
		return firstcome.Unlimited
	}
	return quantity
}

// seen returns the campaign of a verdict as claims see it.
func (v *verdict) seen() firstcome.Campaign {
	c := v.campaign()
	c.Quantity, c.OpensAt, c.Paused = v.line.quantity, instant(v.opensAt), v.line.paused
	c.Pace, c.Waitlist = v.line.paceNow(), v.line.standsBy
	return c
}

// paceNow returns the pace at which a line is served: who is in line stays there without one.
func (l *line) paceNow() *firstcome.Pace {
	if l.pace == nil && l.Waiting > 0 {
		return &firstcome.Pace{}
	}
	return l.pace
}

// places adds to decisions where their users are in line.
func (v *verdict) places(k *keys, want string, decisions []firstcome.Decision) error {
	tickets, l := v.line.tickets, v.line.Line
	waiting, last := l.Waiting-v.line.joined, l.LastTicket-v.line.joined
	campaign, now := v.seen(), instant(v.now)
	campaign.ID = k.id
	logged := v.line.logOf(k, v.epoch, now)
	for n := range decisions {
		d := &decisions[n]
		takes := want == wantIssue || d.Outcome == firstcome.Waiting
		if takes && len(tickets) == 0 {
			return fmt.Errorf("the claim script names too few tickets")
		}
		switch {
		case want == wantIssue:
			waiting, tickets = tickets[0], tickets[1:]
		case takes:
			ticket := tickets[0]
			tickets = tickets[1:]
			if ticket > last {
				waiting, last = waiting+1, ticket
			}
			then := l // the script says how the line is after all of them
			then.LastTicket, then.Waiting = last, waiting
			d.Place = campaign.Place(then, ticket, d.InForce, now)
			d.Place.Log = logged
		}
		d.InLine = waiting
	}
	return nil
}

// Issue decides claims past the line: see gate.Decider. Who asked for it is not the gate's.
func (g *Gate) Issue(ctx context.Context, _ gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decide(ctx, id, wantIssue, users)
}

// Serve issues coupons to those next in line: see gate.Line.
func (g *Gate) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return gate.Served{}, err
	}
	v, err := g.verdict(ctx, k, wantServe, backlogArg(g.options.Backlog), strconv.Itoa(min(limit, maxServe)), nil)
	if err != nil {
		return gate.Served{}, fmt.Errorf("serve the line of %s: %w", id, err)
	}
	if !v.line.kept { // nobody is in line
		return gate.Served{}, nil
	}
	return v.served(g, id)
}

// served returns what a verdict says was served.
func (v *verdict) served(g *Gate, id firstcome.CampaignID) (gate.Served, error) {
	l := &v.line
	served := gate.Served{Ended: l.ended, Waiting: l.Waiting, Again: v.again()}
	if len(l.users) != len(l.tickets) {
		return served, fmt.Errorf("serve the line of %s: the claim script names %d users of %d tickets", id, len(l.users), len(l.tickets))
	}
	generation := l.Generation
	if l.ended != "" {
		generation--
	}
	for n, user := range l.users {
		number := v.first + int64(n)
		served.Coupons = append(served.Coupons, firstcome.Coupon{
			Campaign: id, Number: number, User: firstcome.UserID(user), Code: g.options.Secret.Code(id, number),
			IssuedAt: instant(v.now), TermsVersion: v.termsVersion, Generation: generation, Ticket: l.tickets[n],
		})
	}
	return served, nil
}

// again returns when somebody in line can be served: see gate.Served.
func (v *verdict) again() time.Duration {
	l := &v.line
	if l.Waiting == 0 {
		return 0
	}
	campaign, clock := v.seen(), instant(l.clock)
	why := firstcome.Decide(campaign, instant(v.now), -1, false, false)
	free := l.quantity - v.inForce - l.quarantined
	var wait time.Duration
	switch {
	case why == firstcome.Paused || !l.room:
		return 0
	case v.quarantined != 0 && (free <= 0 || why != firstcome.Waiting):
		wait = instant(l.quarantinedUntil).Sub(clock)
	case why == firstcome.NotOpen:
		wait = campaign.OpensAt.Sub(instant(v.now))
	case free <= 0:
		return 0
	default:
		wait = campaign.Pace.Wait(l.Due, clock)
	}
	return max(wait, time.Microsecond) // at once
}

// Leave takes a user out of the line: see gate.Places.
func (g *Gate) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return left, err
	}
	v, err := g.verdict(ctx, k, wantLeave, nothing, "0", []firstcome.UserID{user})
	if err != nil {
		return left, fmt.Errorf("leave the line of %s: %w", id, err)
	}
	switch firstcome.Outcome(v.outcomes[0] - '0') {
	case firstcome.AlreadyIssued:
		return left, firstcome.ErrServed
	case firstcome.Waiting, firstcome.Closed: // it left now, or was not in line any more
		if logged := v.line.logOf(k, v.epoch, instant(v.now)); logged != nil && len(v.line.tickets) == 2 {
			left = firstcome.Place{Generation: v.line.tickets[0], Ticket: v.line.tickets[1], Log: logged}
		}
		return left, nil
	}
	return left, firstcome.ErrNoTicket
}

// Lines calls each with the campaigns that have people in line: see gate.Line. The ledger says which may have.
func (g *Gate) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	if g.options.Lined == nil {
		return nil
	}
	may, err := g.options.Lined(ctx)
	if err != nil {
		return fmt.Errorf("read which campaigns may have people in line: %w", err)
	}
	for page := range slices.Chunk(may, surveyPage) {
		if err := g.lines(ctx, page, each); err != nil {
			return fmt.Errorf("read which campaigns have people in line: %w", err)
		}
	}
	return nil
}

// lines is Lines of some campaigns, in one round trip. A campaign whose keys are spoiled is no line: its claims say so.
func (g *Gate) lines(ctx context.Context, page []gate.Revision, each func(firstcome.CampaignID)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	commands := make(rueidis.Commands, len(page))
	for n, r := range page {
		commands[n] = g.client.B().Hget().Key(g.keysIn(r).campaign).Field("line").Build()
	}
	for n, answer := range g.client.DoMulti(ctx, commands...) {
		field, err := answer.ToString()
		switch err := classify(err); {
		case rueidis.IsRedisNil(answer.Error()):
			continue
		case err != nil && !ofOne(err):
			return err
		}
		if l, err := readLine(field); err == nil && l.Waiting > 0 {
			each(page[n].Campaign)
		}
	}
	return nil
}
