package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// carryPage is how many tickets one script carries over: some three milliseconds of Redis.
const carryPage = 1000

// Carry carries a frozen campaign's line over into an attempt's new keys, which have the holders by then: each ticket with its number, in
// a generation that no ticket is of yet. recovery.ErrOutdone: a later attempt froze the campaign.
func (g *Gate) Carry(ctx context.Context, r recovery.Rebuild, generation int64) (c recovery.Carried, err error) {
	for behind, more := "", true; more; more = behind != "" {
		var page recovery.Carried
		if page, behind, err = g.carryPage(ctx, r, generation, behind); err != nil {
			return recovery.Carried{}, wrap(err, "carry the line of %s over", r.Campaign)
		}
		c.Passed += page.Passed
		if page.People == 0 {
			continue
		}
		if c.People == 0 {
			c.First = page.First
		}
		c.Last, c.People = page.Last, c.People+page.People
	}
	return c, nil
}

// carryPage carries the page behind an entry, and returns its last entry, ” behind the last page.
func (g *Gate) carryPage(ctx context.Context, r recovery.Rebuild, generation int64, behind string) (c recovery.Carried, last string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k := keysOf(r.Campaign, r.Marker)
	args := []string{whole10(r.Attempt), whole10(generation), behind, whole10(carryPage)}
	answer, err := g.carry.Exec(ctx, g.client, append(slices.Clone(k.all()), k.loaded(r.Attempt).all()...), args).ToArray()
	if err != nil {
		return c, "", classify(err)
	}
	switch word, _ := answer[0].ToString(); {
	case word == "outdone":
		return c, "", recovery.ErrOutdone
	case word != "carried" || len(answer) != 6:
		return c, "", fmt.Errorf("the carry script answered %q and %d parts", word, len(answer)-1)
	}
	if last, err = answer[1].ToString(); err != nil {
		return c, "", err
	}
	for n, into := range []*int64{&c.First, &c.Last, &c.People, &c.Passed} {
		if *into, err = whole(answer[2+n]); err != nil {
			return c, "", err
		}
	}
	return c, last, nil
}

// Seat loads people into an attempt's new line, who are in the order of their tickets, in a generation that no ticket is of yet.
// recovery.ErrOutdone: a later attempt froze the campaign.
func (g *Gate) Seat(ctx context.Context, r recovery.Rebuild, generation int64, people []recovery.Waiting) error {
	k := keysOf(r.Campaign, r.Marker)
	for page := range slices.Chunk(people, carryPage) {
		args := []string{whole10(r.Attempt), whole10(generation)}
		for _, one := range page {
			args = append(args, string(one.User), whole10(one.Ticket), whole10(one.At.UnixMicro()))
		}
		if err := g.seatPage(ctx, append(k.all(), k.loaded(r.Attempt).all()...), args); err != nil {
			return wrap(err, "load the line of %s", r.Campaign)
		}
	}
	return nil
}

func (g *Gate) seatPage(ctx context.Context, keys, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := g.seat.Exec(ctx, g.client, keys, args).ToArray()
	if err != nil {
		return classify(err)
	}
	switch word, _ := answer[0].ToString(); word {
	case "seated":
		return nil
	case "outdone":
		return recovery.ErrOutdone
	default:
		return fmt.Errorf("the seat script answered %q", word)
	}
}

// Carried calls each with those whom an attempt carried over into its new line, in the order of their tickets.
func (g *Gate) Carried(ctx context.Context, r recovery.Rebuild, each func(recovery.Waiting) error) error {
	err := eachEntry(g.stream(ctx, keysOf(r.Campaign, r.Marker).loaded(r.Attempt).line), scanPage, func(e rueidis.XRangeEntry) error {
		t, err := readInLine(e)
		if err != nil {
			return err
		}
		return each(recovery.Waiting{User: t.User, Ticket: t.Number, At: t.JoinedAt})
	})
	return wrap(err, "read who was carried over of %s", r.Campaign)
}

// keepTickets copies the frozen campaign's tickets as they are. A ticket of an older generation counts as ended.
func (g *Gate) keepTickets(ctx context.Context, k *keys, to *loading) error {
	err := g.eachField(ctx, k.tickets, func(user, entry string) error {
		if n := len(entry) - ticketBytes; n != 0 && n != 1 {
			return nil
		}
		return to.put(ctx, user, entry)
	})
	if isOfAnotherType(err) { // then nobody knows
		return nil
	}
	return err
}

// isOfAnotherType tells whether an error says that a key is of another type.
func isOfAnotherType(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == "WRONGTYPE"
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

// overEntry returns what the tickets hash has of somebody who was served, and whose coupon was voided.
func overEntry(c firstcome.Coupon) string {
	return string(append(ticketEntry(c.Generation, c.Ticket), 1))
}
