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
	s, _, err := i.state(ctx, id)
	return s, wrap(err, "read the state of %s", id)
}

func (i *Inspector) state(ctx context.Context, id firstcome.CampaignID) (s gate.State, k *keys, err error) {
	k, err = i.conn.keysOf(ctx, id)
	if err != nil {
		return s, nil, err
	}
	waiting, frozen, err := i.waiting(ctx, k) // first: an epoch that had ended before is not taken for one that the gate goes on in
	if err != nil {
		return s, nil, err
	}
	n, err := i.conn.fields(ctx, k, "version", "epoch", "in_force", "issued", "last_number", "drained_through", "decided_at", "opened_at", "sold_out_at", "closed_at")
	if err != nil {
		return s, nil, err
	}
	now, err := i.conn.now(ctx)
	if err != nil {
		return s, nil, err
	}
	lost, err := i.partGone(ctx, k, parts{version: n[0], inForce: n[2], lastNumber: n[4], drained: n[5]})
	if err != nil {
		return s, nil, err
	}
	if decidedAt := time.UnixMicro(n[6]).UTC(); now.Before(decidedAt) {
		now = decidedAt
	}
	return gate.State{
		Version: n[0], Epoch: n[1], InForce: n[2], Issued: n[3], LastNumber: n[4], DrainedThrough: n[5], Now: now, Gone: lost, Frozen: frozen, Waiting: waiting,
		Instants: firstcome.Instants{OpenedAt: instant(n[7]), SoldOutAt: instant(n[8]), ClosedAt: instant(n[9])},
	}, k, nil
}

// waiting returns how many people are in line, and whether the campaign is frozen for a rebuild.
func (i *Inspector) waiting(ctx context.Context, k *keys) (people int64, frozen bool, err error) {
	values, err := i.conn.client.Do(ctx, i.conn.client.B().Hmget().Key(k.campaign).Field("line", "frozen").Build()).AsStrSlice()
	if err != nil {
		return 0, false, classify(err)
	}
	if frozen = values[1] != ""; values[0] == "" {
		return 0, frozen, nil
	}
	l, err := readLine(values[0])
	return l.Waiting, frozen, err
}

// parts are the fields of the campaign's hash with which the other keys must agree.
type parts struct{ version, inForce, lastNumber, drained int64 }

// partGone reports whether a part of a campaign is gone, as part_gone in lua/line.lua does. It reads in several steps, so decisions in between could
// make the parts disagree. But the scripts decide nothing while a part is gone. So a part is gone if the parts disagree and nothing was decided
// since they were read.
func (i *Inspector) partGone(ctx context.Context, k *keys, was parts) (bool, error) {
	if was.lastNumber < was.drained {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	holders, err := i.conn.client.Do(ctx, i.conn.client.B().Hlen().Key(k.holders).Build()).AsInt64()
	if err = classify(err); Spoiled(err) {
		return true, nil
	}
	if err != nil || holders == was.inForce {
		return false, err
	}
	values, err := i.conn.client.Do(ctx, i.conn.client.B().Hmget().Key(k.campaign).Field("version", "last_number").Build()).ToArray()
	if err != nil {
		return false, classify(err)
	}
	version, err1 := parseInt(values[0])
	last, err2 := parseInt(values[1])
	still := err1 == nil && err2 == nil && version == was.version && last == was.lastNumber
	return still, nil
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
