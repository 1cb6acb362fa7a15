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
	"github.com/firstcome/firstcome/internal/recovery"
)

// maxServe bounds how many tickets one script serves: a millisecond or two of Redis.
const maxServe = 1000

// A Line serves the waiting lines of campaigns, and says who stands where.
type Line struct {
	conn    *conn
	gate    *Gate
	journal *Journal
}

var (
	_ gate.Line   = (*Line)(nil)
	_ gate.Places = (*Line)(nil)
)

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

// quantityOf returns the quantity that quantityArg was made of.
func quantityOf(quantity int64) int64 {
	if quantity == unlimited {
		return firstcome.Unlimited
	}
	return quantity
}

// paceNow returns the pace at which a line is served: who is in line stays there without one.
func (l *line) paceNow() *firstcome.Pace {
	if l.pace == nil && l.Waiting > 0 {
		return &firstcome.Pace{}
	}
	return l.pace
}

// Serve issues coupons to those next in line: see gate.Line.
func (l *Line) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	k, err := l.conn.keysOf(ctx, id)
	if err != nil {
		return gate.Served{}, err
	}
	v, err := l.gate.verdict(ctx, k, wantServe, backlogArg(l.conn.options.Backlog), strconv.Itoa(min(limit, maxServe)), nil)
	if err != nil {
		return gate.Served{}, fmt.Errorf("serve the line of %s: %w", id, err)
	}
	if !v.line.kept { // nobody is in line
		return gate.Served{}, nil
	}
	return v.served(l.conn.options.Secret, id)
}

// served returns what a verdict says was served.
func (v *verdict) served(secret firstcome.Secret, id firstcome.CampaignID) (gate.Served, error) {
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
			Campaign: id, Number: number, User: firstcome.UserID(user), Code: secret.Code(id, number),
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
func (l *Line) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	k, err := l.conn.keysOf(ctx, id)
	if err != nil {
		return left, err
	}
	v, err := l.gate.verdict(ctx, k, wantLeave, nothing, "0", []firstcome.UserID{user})
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
func (l *Line) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	if l.conn.options.Lined == nil {
		return nil
	}
	may, err := l.conn.options.Lined(ctx)
	if err != nil {
		return fmt.Errorf("read which campaigns may have people in line: %w", err)
	}
	for page := range slices.Chunk(may, surveyPage) {
		if err := l.lines(ctx, page, each); err != nil {
			return fmt.Errorf("read which campaigns have people in line: %w", err)
		}
	}
	return nil
}

// lines is Lines of some campaigns, in one round trip. A campaign whose keys are spoiled is no line: its claims say so.
func (l *Line) lines(ctx context.Context, page []gate.Revision, each func(firstcome.CampaignID)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	commands := make(rueidis.Commands, len(page))
	for n, r := range page {
		commands[n] = l.conn.client.B().Hget().Key(l.conn.keysIn(r).campaign).Field("line").Build()
	}
	for n, answer := range l.conn.client.DoMulti(ctx, commands...) {
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

// lineFields returns the fields of the campaign's hash that have the line, if there ever was one: see lua/line.lua.
func lineFields(fill recovery.Refill) []string {
	l := fill.Line
	if fill.Pace == nil && l.Generation <= 1 {
		return nil
	}
	pace, due := "-", int64(0)
	if fill.Pace != nil {
		pace = whole10(fill.Pace.PerSecond)
	}
	if !l.Due.IsZero() {
		due = l.Due.UnixMicro()
	}
	field := fmt.Sprintf("%d %d %d %d %d %d %s %s", l.Generation, l.LastTicket, l.ServedThrough, l.Served, l.Waiting, due, pace, flag(fill.Waitlist))
	if fill.Log != nil {
		field = fmt.Sprintf("%s %s %d", field, logArg(fill.Log), l.Generation)
	}
	fields := []string{"line", field}
	if len(fill.Past) > 0 {
		fields = append(fields, "past", pastField(fill.Past))
	}
	return fields
}

// pastField is what readPast reads, a line for each.
func pastField(past []gate.PastLine) string {
	lines := make([]string, len(past))
	for n, p := range past {
		lines[n] = fmt.Sprintf("%d %s %d %d %d %d %d", p.Generation, p.Reason, p.EndedAt.UnixMicro(), p.LastTicket, p.ServedThrough, p.Served, p.Waiting)
	}
	return strings.Join(lines, "\n")
}
