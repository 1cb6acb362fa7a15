package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Ticket is what the gate has of a ticket.
type Ticket struct {
	Generation, Number int64
	User               firstcome.UserID
	JoinedAt           time.Time // zero: the key does not say
	Over               bool      // it has ended other than by its turn: see lua/line.lua
}

// A Written is what the campaign's hash has of a line.
type Written struct {
	firstcome.Line
	Past []gate.PastLine // the generations that ended last
}

// WrittenLine returns the counters of a campaign's line and the generations that ended last, as they are written: also of
// one that has lost a part, and without an end that nobody has written yet. It is for inspections; see LineOf.
func (g *Gate) WrittenLine(ctx context.Context, id firstcome.CampaignID) (w Written, err error) {
	k, err := g.keysOf(ctx, id)
	if err == nil {
		w, err = g.writtenLine(ctx, k)
	}
	return w, wrap(err, "read the counters of the line of %s", id)
}

func (g *Gate) writtenLine(ctx context.Context, k *keys) (w Written, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := g.client.Do(ctx, g.client.B().Hmget().Key(k.campaign).Field("line", "past").Build()).ToArray()
	if err != nil {
		return w, classify(err)
	}
	w.Generation = 1 // of a campaign that never had a pace
	if text, err := fields[0].ToString(); err == nil {
		read, err := readLine(text)
		if err != nil {
			return w, err
		}
		w.Line = read.Line
	}
	text, err := fields[1].ToString()
	if rueidis.IsRedisNil(err) {
		return w, nil
	}
	for line := range strings.Lines(text) {
		p, err := readPast(strings.TrimSpace(line))
		if err != nil {
			return w, err
		}
		w.Past = append(w.Past, p)
	}
	return w, err
}

// InLine calls each with every ticket of the stream line, in its order, until it returns an error. It reads page by page
// while people join, leave and are served.
func (g *Gate) InLine(ctx context.Context, id firstcome.CampaignID, each func(Ticket) error) error {
	k, err := g.keysOf(ctx, id)
	if err == nil {
		err = eachEntry(g.stream(ctx, k.line), scanPage, func(e rueidis.XRangeEntry) error {
			t, err := readInLine(e)
			if err != nil {
				return err
			}
			return each(t)
		})
	}
	return wrap(err, "read the line of %s", id)
}

// readInLine reads an entry of the stream line.
func readInLine(e rueidis.XRangeEntry) (t Ticket, err error) {
	generation, ticket, _ := strings.Cut(e.ID, "-")
	n, err := numbers([]string{generation, ticket, e.FieldValues["at"]})
	if err != nil || e.FieldValues["user"] == "" {
		return t, fmt.Errorf("%w: the entry %s of the line has %q", errHolder, e.ID, e.FieldValues)
	}
	return Ticket{Generation: n[0], Number: n[1], User: firstcome.UserID(e.FieldValues["user"]), JoinedAt: instant(n[2])}, nil
}

// Tickets calls each with every ticket of the hash tickets, in no order, until it returns an error. As Coupons does, it
// reads page by page, and a ticket may come twice.
func (g *Gate) Tickets(ctx context.Context, id firstcome.CampaignID, each func(Ticket) error) error {
	k, err := g.keysOf(ctx, id)
	if err == nil {
		err = g.eachField(ctx, k.tickets, func(user, entry string) error {
			if n := len(entry) - ticketBytes; n != 0 && n != 1 {
				return fmt.Errorf("%w: a ticket of %s has %d bytes instead of %d", errHolder, id, len(entry), ticketBytes)
			}
			generation, number := readTicket(entry)
			return each(Ticket{Generation: generation, Number: number, User: firstcome.UserID(user), Over: len(entry) > ticketBytes})
		})
	}
	return wrap(err, "read the tickets of %s", id)
}
