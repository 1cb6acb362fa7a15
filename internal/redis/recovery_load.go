package redis

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
)

// loadedKeys are those that an attempt loads, to be put in the place of the frozen ones.
type loadedKeys struct{ holders, line, tickets string }

// loaded returns the keys that an attempt loads.
func (k *keys) loaded(attempt int64) loadedKeys {
	key := func(name string) string {
		return "firstcome:{" + k.tag + "}:attempt:" + formatInt(attempt) + ":" + name
	}
	return loadedKeys{key("holders"), key("line"), key("tickets")}
}

// all returns the keys in the order in which the scripts take them.
func (k loadedKeys) all() []string { return []string{k.holders, k.line, k.tickets} }

// removeLoaded removes what this attempt loaded, and those that froze the campaign before it.
func (rec *Recovery) removeLoaded(ctx context.Context, r recovery.Rebuild) error {
	k := keysOf(r.Campaign, r.CampaignUID)
	froze, err := rec.conn.client.Do(ctx, rec.conn.client.B().Hget().Key(k.campaign).Field("attempts").Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return classify(err)
	}
	left := k.loaded(r.Attempt).all()
	for text := range strings.FieldsSeq(froze) {
		attempt, _ := strconv.ParseInt(text, 10, 64)
		left = append(left, k.loaded(attempt).all()...)
	}
	return classify(rec.conn.client.Do(ctx, rec.conn.client.B().Unlink().Key(left...).Build()).Error())
}

// How many bytes a rebuild loads for each: as measured (docs/operate.md), with user ids of some 36 bytes, and rounded up.
const (
	holderBytes = 128
	inLineBytes = 64
	ticketsOf   = 128
)

// Room returns a recovery.NoRoomError if the campaign's keys do not fit into Redis twice, as far as can be said before they are loaded. It
// removes what earlier attempts left.
func (rec *Recovery) Room(ctx context.Context, r recovery.Rebuild) error {
	err := rec.removeLoaded(ctx, r)
	if err == nil {
		err = rec.room(ctx, r)
	}
	return wrap(err, "look for room to rebuild %s", r.Campaign)
}

func (rec *Recovery) room(ctx context.Context, r recovery.Rebuild) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a, err := rec.conn.run(ctx, roomScript, keysOf(r.Campaign, r.CampaignUID))
	if err != nil {
		return err
	}
	most, used, holders, people, tickets := a.integer("maxmemory"), a.integer("used_memory"), a.integer("holders"), a.integer("line"), a.integer("tickets")
	if a.err != nil {
		return a.err
	}
	needs := max(holders, r.InForce)*holderBytes + people*inLineBytes + tickets*ticketsOf
	if most > 0 && used+needs > most {
		return &recovery.NoRoomError{Bytes: used + needs - most}
	}
	return nil
}

// loadPage is how many fields one command loads: some 40 kB.
const loadPage = 1000

// A loading writes fields of a hash that an attempt loads.
type loading struct {
	conn   *conn
	key    string
	fields []string
}

func (l *loading) put(ctx context.Context, field, value string) error {
	if l.fields = append(l.fields, field, value); len(l.fields) < 2*loadPage {
		return nil
	}
	return l.end(ctx)
}

// end writes what is left.
func (l *loading) end(ctx context.Context) error {
	if len(l.fields) == 0 {
		return nil
	}
	page := l.conn.client.B().Hset().Key(l.key).FieldValue()
	for n := 0; n < len(l.fields); n += 2 {
		page = page.FieldValue(l.fields[n], l.fields[n+1])
	}
	l.fields = l.fields[:0]
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return classify(l.conn.client.Do(ctx, page.Build()).Error())
}

// Loading removes an attempt's keys and returns what loads them again: put takes each coupon, and end must be called after the last one. A
// voided coupon makes no holder. If it was issued to a ticket, the ticket is loaded as over.
func (rec *Recovery) Loading(ctx context.Context, r recovery.Rebuild) (put func(firstcome.Coupon) error, end func() error, err error) {
	k := keysOf(r.Campaign, r.CampaignUID)
	to := k.loaded(r.Attempt)
	holders, tickets := &loading{conn: rec.conn, key: to.holders}, &loading{conn: rec.conn, key: to.tickets}
	if err = rec.removeLoaded(ctx, r); err == nil {
		err = rec.keepTickets(ctx, k, tickets)
	}
	if err != nil {
		return nil, nil, wrap(err, "load %s", r.Campaign)
	}
	put = func(c firstcome.Coupon) error {
		switch {
		case c.VoidedAt.IsZero():
			return wrap(holders.put(ctx, string(c.User), string(holderEntry(c))), "load %s", r.Campaign)
		case c.Ticket == 0:
			return nil
		}
		return wrap(tickets.put(ctx, string(c.User), overEntry(c)), "load %s", r.Campaign)
	}
	end = func() error {
		err := holders.end(ctx)
		if err == nil {
			err = tickets.end(ctx)
		}
		return wrap(err, "load %s", r.Campaign)
	}
	return put, end, nil
}

// carryPage is how many tickets one script carries over: some three milliseconds of Redis.
const carryPage = 1000

// Carry carries a frozen campaign's line over into an attempt's new keys, which have the holders by then: each ticket with its number, in
// a generation that no ticket is of yet. recovery.ErrSuperseded: a later attempt froze the campaign.
func (rec *Recovery) Carry(ctx context.Context, r recovery.Rebuild, generation int64) (c recovery.Carried, err error) {
	for after, more := "", true; more; more = after != "" {
		var page recovery.Carried
		if page, after, err = rec.carryPage(ctx, r, generation, after); err != nil {
			return recovery.Carried{}, wrap(err, "carry the line of %s over", r.Campaign)
		}
		c.LeftWithCoupon += page.LeftWithCoupon
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

// carryPage carries the page after an entry. It returns the page's last entry, or an empty text if there are no more.
func (rec *Recovery) carryPage(ctx context.Context, r recovery.Rebuild, generation int64, after string) (c recovery.Carried, last string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k := keysOf(r.Campaign, r.CampaignUID)
	a, err := rec.conn.runOn(ctx, carryScript, k, append(k.all(), k.loaded(r.Attempt).all()...),
		"attempt", formatInt(r.Attempt), "generation", formatInt(generation), "after", after, "count", formatInt(carryPage))
	switch {
	case err != nil:
		return c, "", err
	case a.word == "superseded":
		return c, "", recovery.ErrSuperseded
	case a.word != "carried":
		return c, "", a.unexpected()
	}
	last = a.text("more")
	c.First, c.Last, c.People, c.LeftWithCoupon = a.integer("first"), a.integer("last"), a.integer("people"), a.integer("passed")
	return c, last, a.err
}

// Seat loads people into an attempt's new line, who are in the order of their tickets, in a generation that no ticket is of yet.
// recovery.ErrSuperseded: a later attempt froze the campaign.
func (rec *Recovery) Seat(ctx context.Context, r recovery.Rebuild, generation int64, people []recovery.Waiting) error {
	k := keysOf(r.Campaign, r.CampaignUID)
	for page := range slices.Chunk(people, carryPage) {
		args := []string{"attempt", formatInt(r.Attempt), "generation", formatInt(generation), ""}
		for _, one := range page {
			args = append(args, string(one.User), formatInt(one.Ticket), formatInt(one.At.UnixMicro()))
		}
		if err := rec.seatPage(ctx, k, append(k.all(), k.loaded(r.Attempt).all()...), args); err != nil {
			return wrap(err, "load the line of %s", r.Campaign)
		}
	}
	return nil
}

func (rec *Recovery) seatPage(ctx context.Context, k *keys, keys, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a, err := rec.conn.runOn(ctx, seatScript, k, keys, args...)
	switch {
	case err != nil:
		return err
	case a.word == "superseded":
		return recovery.ErrSuperseded
	case a.word != "seated":
		return a.unexpected()
	}
	return nil
}

// Carried calls each with those whom an attempt carried over into its new line, in the order of their tickets.
func (rec *Recovery) Carried(ctx context.Context, r recovery.Rebuild, each func(recovery.Waiting) error) error {
	err := eachEntry(rec.conn.stream(ctx, keysOf(r.Campaign, r.CampaignUID).loaded(r.Attempt).line), scanPage, func(e rueidis.XRangeEntry) error {
		t, err := readInLine(e)
		if err != nil {
			return err
		}
		return each(recovery.Waiting{User: t.User, Ticket: t.Number, At: t.JoinedAt})
	})
	return wrap(err, "read who was carried over of %s", r.Campaign)
}

// keepTickets copies the frozen campaign's tickets as they are. A ticket of an older generation counts as ended.
func (rec *Recovery) keepTickets(ctx context.Context, k *keys, to *loading) error {
	err := rec.conn.eachField(ctx, k.tickets, func(user, entry string) error {
		if n := len(entry) - ticketBytes; n != 0 && n != 1 {
			return nil
		}
		return to.put(ctx, user, entry)
	})
	if e := (*Error)(nil); errors.As(err, &e) && e.Code == "WRONGTYPE" { // nobody knows who has a ticket
		return nil
	}
	return err
}
