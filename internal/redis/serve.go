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
	log      *firstcome.LineLog // from the beginning of the epoch on; nil if it has no log
	began    int64              // the generation with which the epoch began, of a line that has a log
}

// lastTicket returns the line's last ticket, or the zero value if its generation has none: a script may have answered with a new generation that it did
// not write.
func (l *line) lastTicket() firstcome.Ticket {
	if l.LastTicket == 0 {
		return firstcome.Ticket{}
	}
	return firstcome.Ticket{Generation: l.Generation, Number: l.LastTicket}
}

// logOf returns what the log of a line must have of its places, or nil if it has no log.
func (l *line) logOf(k *keys, epoch int64, at time.Time) *firstcome.Logged {
	if l.log == nil {
		return nil
	}
	return &firstcome.Logged{LineLog: *l.log, CampaignUID: k.campaignUID, Epoch: epoch, Began: l.began, At: at}
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

// Serve issues coupons to those next in line: see gate.Line.
func (l *Line) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	k, err := l.conn.keysOf(ctx, id)
	if err != nil {
		return gate.Served{}, err
	}
	a, c, err := l.conn.decide(ctx, serveScript, k, backlogArg(l.conn.options.Backlog), int64(min(limit, maxServe)), nil)
	var served gate.Served
	if err == nil && a.word != "idle" {
		served, err = readServed(a, c, l.conn.options.Secret, id)
	}
	return served, wrap(err, "serve the line of %s", id)
}

// readServed reads the answer of serve.lua.
func readServed(a *answer, c stateAfter, secret firstcome.Secret, id firstcome.CampaignID) (gate.Served, error) {
	if a.word != "served" {
		return gate.Served{}, a.unexpected()
	}
	c.readLined(a)
	quarantined, until, clock, room := a.integer("quarantined"), a.instant("quarantined_until"), a.instant("clock"), a.is("room")
	ended, tickets, users := a.text("ended"), a.integers("tickets"), a.texts("users")
	if a.err != nil {
		return gate.Served{}, a.err
	}
	if len(users) != len(tickets) {
		return gate.Served{}, fmt.Errorf("the script names %d users of %d tickets", len(users), len(tickets))
	}
	served := gate.Served{Ended: ended, Waiting: c.Waiting}
	if room { // the backlog has room
		view := c.view()
		view.Quarantine.Coupons, view.Quarantine.Until = quarantined, until
		served.Again = view.Again(clock)
	}
	generation := c.Generation
	if ended != "" {
		generation--
	}
	for n, user := range users {
		number := c.lastNumber - int64(len(users)-n-1)
		served.Coupons = append(served.Coupons, firstcome.Coupon{
			Campaign: id, Number: number, User: firstcome.UserID(user), Code: secret.Code(id, number),
			IssuedAt: c.now, TermsVersion: c.termsVersion, Generation: generation, Ticket: tickets[n],
		})
	}
	return served, nil
}

// Leave takes a user out of the line: see gate.Places.
func (l *Line) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	k, err := l.conn.keysOf(ctx, id)
	if err != nil {
		return left, err
	}
	a, c, err := l.conn.decide(ctx, leaveScript, k, nothing, 0, []firstcome.UserID{user})
	if err != nil {
		return left, fmt.Errorf("leave the line of %s: %w", id, err)
	}
	switch a.word {
	case "holds":
		return left, firstcome.ErrServed
	case "never":
		return left, firstcome.ErrNoTicket
	case "left", "gone":
		left, err = readLeft(a, c, k)
	default:
		err = a.unexpected()
	}
	return left, wrap(err, "leave the line of %s", id)
}

// readLeft reads from the answer of leave.lua which place a user gave back, if the line has a log.
func readLeft(a *answer, c stateAfter, k *keys) (left firstcome.Place, err error) {
	generation, ticket := a.integer("generation"), a.integer("ticket")
	if logged := c.logOf(k, c.epoch, c.now); a.err == nil && logged != nil && ticket > 0 {
		left = firstcome.Place{Generation: generation, Ticket: ticket, Log: logged}
	}
	return left, a.err
}

// Lines calls each with the campaigns that have people in line: see gate.Line. The ledger knows which campaigns may.
func (l *Line) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	if l.conn.options.Lined == nil {
		return nil
	}
	may, err := l.conn.options.Lined(ctx)
	if err != nil {
		return fmt.Errorf("read which campaigns may have people in line: %w", err)
	}
	for page := range slices.Chunk(may, pollPage) {
		if err := l.lines(ctx, page, each); err != nil {
			return fmt.Errorf("read which campaigns have people in line: %w", err)
		}
	}
	return nil
}

// lines is Lines of some campaigns, in one round trip. A campaign whose keys are spoiled is passed over: its claims report it.
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
		pace = formatInt(fill.Pace.PerSecond)
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
func pastField(past []firstcome.PastLine) string {
	lines := make([]string, len(past))
	for n, p := range past {
		lines[n] = fmt.Sprintf("%d %s %d %d %d %d %d", p.Generation, p.Reason, p.EndedAt.UnixMicro(), p.LastTicket, p.ServedThrough, p.Served, p.Waiting)
	}
	return strings.Join(lines, "\n")
}
