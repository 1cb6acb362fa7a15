package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// Of a line that a feed keeps, Redis has no tickets. The field line of the campaign's hash has the feed, the generation, the offset of its
// first ticket and how far it is served; tickets has who left, through which ticket: see lua/line.lua.
//
//	(not begun) ── Begin ──▶ served by turns ── sold out, closed, or another feed ──▶ (not begun), the next generation

var _ gate.Fed = (*Gate)(nil)

// errUnfed says that a campaign's line is at the gate.
var errUnfed = fmt.Errorf("%w: no topic keeps its line", firstcome.ErrGateMismatch)

// errMoved says that a campaign's line is in another feed than a node knew.
var errMoved = fmt.Errorf("%w: the campaign's line moves to another partition", firstcome.ErrGateUnavailable)

// feedArg returns a feed as the scripts take it: nothing for none.
func feedArg(f *firstcome.Feed) string {
	if f == nil {
		return ""
	}
	return f.Topic + " " + strconv.FormatInt(int64(f.Partition), 10)
}

// readFeed reads what the field line has of a feed: its topic and partition, where the generation begins, and how many users have an entry
// in tickets.
func (l *line) readFeed(words []string) error {
	partition, err := strconv.ParseInt(words[1], 10, 32)
	if err == nil {
		l.First, l.Begun, err = readFirst(words[2])
	}
	if err == nil {
		l.marks, err = strconv.ParseInt(words[3], 10, 64)
	}
	l.feed = &firstcome.Feed{Topic: words[0], Partition: int32(partition)}
	return err
}

// notBegun stands for the offset of ticket 1 of a generation that has not begun.
const notBegun = "-"

// readFirst reads what firstText returns.
func readFirst(text string) (first int64, begun bool, err error) {
	if text == notBegun {
		return 0, false, nil
	}
	n, err := numbers([]string{text})
	if err != nil {
		return 0, false, err
	}
	return n[0], true, nil
}

// firstText returns where a generation begins, as the scripts take it.
func firstText(first int64, begun bool) string {
	if !begun {
		return notBegun
	}
	return whole10(first)
}

// aboutFed runs a script that is about a line which a feed keeps, and returns the word and the text behind it.
func (g *Gate) aboutFed(ctx context.Context, script *rueidis.Lua, id firstcome.CampaignID, args ...string) (word, text string, err error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return "", "", err
	}
	word, parts, err := g.run(ctx, script, k, args...)
	switch {
	case err != nil:
		return "", "", err
	case word == "lost":
		return "", "", errPart
	case word == "unfed":
		return "", "", errUnfed
	case word == "moved":
		return "", "", errMoved
	case len(parts) > 0:
		text, err = parts[0].ToString()
	}
	return word, text, err
}

// Begin has a generation begin at an offset: see gate.Fed. A gate of which no generation has begun goes on with a later one if the ledger says
// so, since nobody has a ticket of its own.
func (g *Gate) Begin(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed, generation, first int64) (firstcome.Line, error) {
	_, field, err := g.aboutFed(ctx, g.begin, id, feedArg(&feed), whole10(generation), whole10(first))
	var l line
	if err == nil {
		l, err = readLine(field)
	}
	return l.Line, wrap(err, "begin the line of %s", id)
}

// ServeTurn serves a part of a feed, at most 1,000 tickets of it: see gate.Fed.
func (g *Gate) ServeTurn(ctx context.Context, id firstcome.CampaignID, turn gate.Turn) (gate.Turned, error) {
	users := turn.Users[:min(len(turn.Users), maxServe)]
	v, err := g.verdict(ctx, id, wantTurn, backlogArg(g.options.Backlog), fmt.Sprintf("%d %d", turn.Generation, turn.From), users)
	if err != nil {
		return gate.Turned{}, fmt.Errorf("serve the line of %s: %w", id, err)
	}
	served, err := v.served(g, id)
	return gate.Turned{Served: served, Over: v.line.passed, Line: v.line.Line, Feed: v.line.feed}, err
}

// PlaceOf returns where a ticket of a feed stands: see gate.Fed.
func (g *Gate) PlaceOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, ticket firstcome.Ticket) (firstcome.Place, firstcome.Coupon, error) {
	s, err := g.see(ctx, id, user)
	switch {
	case err != nil:
		return firstcome.Place{}, firstcome.Coupon{}, fmt.Errorf("read a place in the line of %s: %w", id, err)
	case s.holder != "":
		c, err := g.held(ctx, id, user, s.holder)
		return firstcome.Place{}, c, err
	case s.hasEnded(ticket) || ticket.Number <= s.ticket:
		return firstcome.Place{}, firstcome.Coupon{}, firstcome.ErrNoTicket
	}
	return s.campaign.Place(s.Line, ticket.Number, s.inForce, s.now), firstcome.Coupon{}, nil
}

// hasEnded tells whether a ticket of a feed has ended, unless its user left.
func (s *sight) hasEnded(ticket firstcome.Ticket) bool {
	return s.feed == nil || !s.Begun || ticket.Generation != s.Generation || ticket.Number <= s.ServedThrough || s.sendsAway() != 0
}

// LeaveOf has a user's tickets passed over: see gate.Fed. Between its two calls the generation may end: then so has the ticket.
func (g *Gate) LeaveOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error {
	s, err := g.see(ctx, id, user)
	switch {
	case err == nil && s.feed == nil:
		err = errUnfed
	case err == nil && s.holder != "":
		return firstcome.ErrServed
	case err == nil && s.hasEnded(through):
		return nil
	}
	var word string
	if err == nil {
		word, _, err = g.aboutFed(ctx, g.leave, id, string(user), whole10(through.Generation), whole10(through.Number))
	}
	switch {
	case err != nil:
		return fmt.Errorf("leave the line of %s: %w", id, err)
	case word == "served":
		return firstcome.ErrServed
	}
	return nil
}

// markPage is how many users who left one script loads.
const markPage = 1000

// A marking loads through which tickets users left into an attempt's keys.
type marking struct {
	gate *Gate
	r    recovery.Rebuild
	args []string
}

func (m *marking) put(ctx context.Context, c firstcome.Coupon) error {
	if m.args = append(m.args, string(c.User), whole10(c.Generation), whole10(c.Ticket)); len(m.args) < 3*markPage {
		return nil
	}
	return m.end(ctx)
}

// end writes what is left.
func (m *marking) end(ctx context.Context) error {
	if len(m.args) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k := keysOf(m.r.Campaign, m.r.Marker)
	err := m.gate.mark.Exec(ctx, m.gate.client, append(k.all(), k.loaded(m.r.Attempt).all()...), m.args).Error()
	m.args = m.args[:0]
	return classify(err)
}

// loadedMarks returns how many users have an entry in an attempt's tickets, if a feed keeps the line.
func (g *Gate) loadedMarks(ctx context.Context, k loadedKeys, feed *firstcome.Feed) (int64, error) {
	if feed == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := g.client.Do(ctx, g.client.B().Hlen().Key(k.tickets).Build()).AsInt64()
	return n, classify(err)
}
