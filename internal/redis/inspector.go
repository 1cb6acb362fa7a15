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

// An Inspector reads what a gate has. It writes nothing.
type Inspector struct{ conn *conn }

// Name returns what a campaign says of its gate: see Redis.Name.
func (i *Inspector) Name() string { return i.conn.Name() }

// Close ends the connections, if Inspect opened them.
func (i *Inspector) Close() { i.conn.client.Close() }

// State returns the campaign's counters. It does not compare the server's run: a user who may only read cannot run that script.
func (i *Inspector) State(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	s, _, err := i.conn.state(ctx, id)
	return s, wrap(err, "read the state of %s", id)
}

// Coupons calls each with the coupon in force of every holder, in no order, until it
// returns an error. It reads page by page while claims go on: what is issued or voided
// meanwhile may be there or not, and a coupon may come twice. None has a Code.
func (i *Inspector) Coupons(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	k, err := i.conn.keysOf(ctx, id)
	if err == nil {
		err = i.conn.eachHolder(ctx, k, each)
	}
	return wrap(err, "read the holders of %s", id)
}

// Unrecorded calls each with every coupon of the journal, which is on its way to the
// ledger or has just arrived, in the order of issue, until it returns an error. It
// takes nothing away from recorders. An entry that cannot be read is passed over: a
// recorder makes a dead letter of it, or leaves it to a recorder of a newer release.
func (i *Inspector) Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	return i.conn.unrecorded(ctx, id, each)
}

// unrecorded is Inspector.Unrecorded.
func (c *conn) unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	k, err := c.keysOf(ctx, id)
	if err == nil {
		err = eachEntry(c.stream(ctx, k.journal), inspectEntries, func(e rueidis.XRangeEntry) error {
			says, err := item{id: e.ID, fields: e.FieldValues}.read(id, c.options.Secret)
			if err != nil {
				return nil
			}
			for _, c := range says.coupons {
				if err := each(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return wrap(err, "read the journal of %s", id)
}

// Masters returns the runs of the servers that decide, for who may only read. It is an error if one of them does not say.
func (i *Inspector) Masters(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	runs := map[string]bool{}
	for _, node := range i.conn.client.Nodes() {
		text, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if err != nil {
			return nil, wrap(classify(err), "ask which runs of its servers there are")
		}
		if info := parseInfo(text); info["role"] == "master" {
			runs[runOf(info)] = true
		}
	}
	return runs, nil
}

// DecidedBy returns the run of the server that decided last of a campaign, and whether a rebuild has frozen it since. If there
// is no campaign, run is empty.
func (i *Inspector) DecidedBy(ctx context.Context, id firstcome.CampaignID) (run string, frozen bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k, err := i.conn.keysOf(ctx, id)
	if err != nil {
		return "", false, err
	}
	fields, err := i.conn.client.Do(ctx, i.conn.client.B().Hmget().Key(k.campaign).Field("run", "frozen").Build()).AsStrSlice()
	if err != nil {
		return "", false, wrap(classify(err), "look who decided %s", id)
	}
	return fields[0], fields[1] != "", nil
}

// Terms returns the text of the terms that the gate keeps of a campaign for the ledger, or an empty text if it has none.
func (i *Inspector) Terms(ctx context.Context, id firstcome.CampaignID) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k, err := i.conn.keysOf(ctx, id)
	if err != nil {
		return "", err
	}
	text, err := i.conn.client.Do(ctx, i.conn.client.B().Hget().Key(k.campaign).Field("terms").Build()).ToString()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return text, wrap(classify(err), "read the terms of %s", id)
}

// EachCreated calls each with the ids of all campaigns that this gate's ledger ever made here, in no order, perhaps twice, until it returns an error.
func (i *Inspector) EachCreated(ctx context.Context, each func(firstcome.CampaignID) error) error {
	err := i.conn.eachField(ctx, i.conn.createdKey(), func(field, _ string) error {
		id, _, _ := strings.Cut(field, ".")
		return each(firstcome.CampaignID(id))
	})
	return wrap(err, "read which campaigns were made")
}

// A Ticket is what the gate has of a ticket.
type Ticket struct {
	Generation, Number int64
	User               firstcome.UserID
	JoinedAt           time.Time // zero: the key does not say
	Over               bool      // it has ended other than by its turn: see lua/line.lua
}

// WrittenLine returns the counters of a campaign's line and the generations that ended last, as they are written: also of
// one that has lost a part, and without an end that nobody has written yet. It is for inspections; see LineOf.
func (i *Inspector) WrittenLine(ctx context.Context, id firstcome.CampaignID) (line firstcome.Line, past []firstcome.PastLine, err error) {
	k, err := i.conn.keysOf(ctx, id)
	if err == nil {
		line, past, err = i.writtenLine(ctx, k)
	}
	return line, past, wrap(err, "read the counters of the line of %s", id)
}

func (i *Inspector) writtenLine(ctx context.Context, k *keys) (line firstcome.Line, past []firstcome.PastLine, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := i.conn.client.Do(ctx, i.conn.client.B().Hmget().Key(k.campaign).Field("line", "past").Build()).ToArray()
	if err != nil {
		return line, nil, classify(err)
	}
	line.Generation = 1 // of a campaign that never had a pace
	if text, err := fields[0].ToString(); err == nil {
		read, err := readLine(text)
		if err != nil {
			return line, nil, err
		}
		line = read.Line
	}
	text, err := fields[1].ToString()
	if rueidis.IsRedisNil(err) {
		return line, nil, nil
	}
	for one := range strings.Lines(text) {
		p, err := readPast(strings.TrimSpace(one))
		if err != nil {
			return line, past, err
		}
		past = append(past, p)
	}
	return line, past, err
}

// InLine calls each with every ticket of the stream line, in its order, until it returns an error. It reads page by page
// while people join, leave and are served.
func (i *Inspector) InLine(ctx context.Context, id firstcome.CampaignID, each func(Ticket) error) error {
	k, err := i.conn.keysOf(ctx, id)
	if err == nil {
		err = eachEntry(i.conn.stream(ctx, k.line), scanPage, func(e rueidis.XRangeEntry) error {
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
func (i *Inspector) Tickets(ctx context.Context, id firstcome.CampaignID, each func(Ticket) error) error {
	k, err := i.conn.keysOf(ctx, id)
	if err == nil {
		err = i.conn.eachField(ctx, k.tickets, func(user, entry string) error {
			if n := len(entry) - ticketBytes; n != 0 && n != 1 {
				return fmt.Errorf("%w: a ticket of %s has %d bytes instead of %d", errHolder, id, len(entry), ticketBytes)
			}
			generation, number := readTicket(entry)
			return each(Ticket{Generation: generation, Number: number, User: firstcome.UserID(user), Over: len(entry) > ticketBytes})
		})
	}
	return wrap(err, "read the tickets of %s", id)
}
