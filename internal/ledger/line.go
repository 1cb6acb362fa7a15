package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// The waiting line of a campaign is in the campaign's row, which every claim, service and change of the campaign locks
// first: on SQLite there is one writer. So a line has one state, whichever node looks, and needs no leader. The row has
// the counters and the pace's bucket; the tickets have rows of their own, which nobody reads but those who are served,
// and those who ask again.
//
//	          join                Serve
//	(nobody) ──────▶ in line ─────────────▶ issued
//	                  │ │ │ └─ Serve, Issue ▶ held      (a coupon from elsewhere)
//	                  │ │ └─── Leave ───────▶ left
//	                  │ └───── the generation ends: sold_out or closed; the ticket's own row is not touched
//	                  └─────── asks again: the same ticket

// DefaultMaxLine is how many people may be in line of a campaign by default.
const DefaultMaxLine = 1_000_000

// maxServe bounds how many tickets one transaction serves: some 20 ms of the ledger.
const maxServe = 2048

// What became of a ticket, as its row says. The row of somebody who was sent away with their generation says nothing.
const (
	issued        = "issued"
	alreadyIssued = "already_issued"
	left          = "left"
)

// A ticket is a row of tickets that is to be written.
type ticket struct {
	campaign           firstcome.CampaignID
	generation, number int64
	user               firstcome.UserID
	at                 int64  // microseconds: when it was given, or ended
	outcome            string // of one that ended
}

// A pastLine is a generation that ended, to be written.
type pastLine struct {
	campaign firstcome.CampaignID
	line     firstcome.Line
	reason   string
	at       int64 // microseconds
}

// joinLine gives a user the next ticket, or 0 if the line is full.
func joinLine(t *sqldb.Tx, s *stock, user firstcome.UserID, now time.Time, limit int64) int64 {
	if s.line.Waiting >= limit {
		return 0
	}
	s.line.LastTicket++
	s.line.Waiting++
	memoryOf(t).joins = append(memoryOf(t).joins, ticket{s.ID, s.line.Generation, s.line.LastTicket, user, now.UnixMicro(), ""})
	return s.line.LastTicket
}

// endTicket ends a ticket of the line.
func endTicket(t *sqldb.Tx, s *stock, number int64, user firstcome.UserID, outcome string, now time.Time) {
	memoryOf(t).ends = append(memoryOf(t).ends, ticket{s.ID, s.line.Generation, number, user, now.UnixMicro(), outcome})
	s.line.Waiting--
	if outcome != left {
		s.line.Served++
	}
	if s.line.Waiting == 0 {
		s.line.ServedThrough = s.line.LastTicket
	}
}

// sendsAway returns what everybody in line hears at an instant, Closed or SoldOut; or 0, if they go on waiting. A
// generation with tickets ends so also if all of them have ended, such as the one whose last person got the last coupon.
func (s *stock) sendsAway(now time.Time) firstcome.Outcome {
	if s.line.LastTicket == 0 {
		return 0
	}
	switch o := firstcome.Decide(s.seen(), now, s.inForce, false, true); o {
	case firstcome.Closed, firstcome.SoldOut:
		return o
	}
	return 0
}

// endLine ends the generation if the campaign is closed at now, or every coupon is in force and nobody stands by, and
// tells whether it did. Whoever is in line then stays sent away, also if it opens again or stock comes back.
func endLine(t *sqldb.Tx, s *stock, now time.Time) bool {
	why := s.sendsAway(now)
	if why == 0 {
		return false
	}
	memoryOf(t).past = append(memoryOf(t).past, pastLine{s.ID, s.line, why.String(), s.endedAt(why, now).UnixMicro()})
	s.line = nextLine(s.line)
	return true
}

// endedAt returns when a generation that is over at now ended. If its window closed it, that is when the window closed.
func (s *stock) endedAt(why firstcome.Outcome, now time.Time) time.Time {
	if why == firstcome.Closed {
		return s.seen().Since(why)
	}
	return now
}

// nextLine returns the line after one that ended. The pace goes on.
func nextLine(l firstcome.Line) firstcome.Line {
	return firstcome.Line{Generation: l.Generation + 1, Due: l.Due}
}

// changeLine ends the generation in the transaction of a change from one state to another, at now, if either sends
// everybody away: a window that has passed has done so, though nobody looked before the change moved it. The line of a
// campaign that another gate decides ends there, unless this node's Redis is not that gate.
func (r *rows) changeLine(t *sqldb.Tx, from, to stock, now time.Time) error {
	if to.line = from.line; r.remote() {
		if errors.Is(from.away, gate.ErrLost) {
			return loseLine(t, &to, now)
		}
		return nil
	}
	at := now
	why := from.sendsAway(now)
	switch {
	case why != 0:
		at = from.endedAt(why, now)
	default:
		if why = to.sendsAway(now); why == 0 {
			return nil
		}
	}
	if err := insertPast(t, pastLine{from.ID, from.line, why.String(), at.UnixMicro()}); err != nil {
		return err
	}
	return beginLine(t, &from)
}

// Issue decides claims past the line: see gate.Decider.
func (g *Gate) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decisions(ctx, &claims{id: id, users: users, direct: &order})
}

// Serve issues coupons to those next in line: see gate.Line.
func (g *Gate) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	if g.rows.remote() {
		return gate.Served{}, fmt.Errorf("%w: %s keeps no line", firstcome.ErrGateMismatch, g.rows.gate)
	}
	var served gate.Served
	err := g.db.Update(ctx, func(t *sqldb.Tx) (err error) {
		served, err = g.serve(t, id, min(limit, maxServe))
		return err
	})
	if err != nil { // the writer may still be at served
		return gate.Served{}, sqldb.Wrap(err, "serve the line of %s", id)
	}
	return served, nil
}

// serve is Serve within a transaction.
func (g *Gate) serve(t *sqldb.Tx, id firstcome.CampaignID, limit int) (served gate.Served, err error) {
	s, err := g.lineInRow(t, id)
	if err != nil || s.line.Waiting == 0 {
		return served, err
	}
	clock := g.rows.clockOf(s) // is read once: what is served now is issued at this instant, for which the turns are taken
	before, now := s, s.at(clock)
	if why := s.sendsAway(now); endLine(t, &s, now) {
		served.Ended = why.String()
	} else if s.isServed(now) {
		if served.Coupons, err = g.serveNext(t, &s, int64(limit), now, clock); err != nil {
			return served, err
		}
		if why := s.sendsAway(now); endLine(t, &s, now) {
			served.Ended = why.String()
		}
	}
	served.Waiting, served.Again = s.line.Waiting, g.again(&s, now, clock)
	stageIssued(t, before, s, served.Coupons, now)
	return served, flush(t)
}

// lineInRow reads the row from the database, not from memory. If the remembered row were wrong, serving would fail until the
// next claim, which may never come.
func (g *Gate) lineInRow(t *sqldb.Tx, id firstcome.CampaignID) (stock, error) {
	delete(memoryOf(t).stocks, id)
	return g.rows.stock(t, id)
}

// isServed tells whether the line is served at now: the campaign has opened and is not paused.
func (s *stock) isServed(now time.Time) bool {
	return firstcome.Decide(s.seen(), now, -1, false, false) == firstcome.Waiting
}

// free is how many coupons may be issued now.
func (s *stock) free() int64 { return max(0, s.Quantity-s.inForce-s.quarantined.coupons) }

// serveNext takes turns from the pace's bucket, and serves as many tickets.
func (g *Gate) serveNext(t *sqldb.Tx, s *stock, limit int64, now, clock time.Time) ([]firstcome.Coupon, error) {
	turns, due := s.seen().Pace.Take(s.line.Due, clock, min(limit, s.free(), s.line.Waiting))
	if turns == 0 {
		if due.Before(s.line.Due) { // pulled back: it is kept, else it would be pulled back for ever
			s.line.Due = due
		}
		return nil, nil
	}
	next, err := nextTickets(t, s, turns)
	if err != nil {
		return nil, err
	}
	c := &claims{id: s.ID}
	for _, n := range next {
		c.users = append(c.users, n.user)
	}
	holders, err := holdersOf(t, []*claims{c})
	if err != nil {
		return nil, err
	}
	coupons := make([]firstcome.Coupon, 0, len(next))
	for _, n := range next {
		outcome := alreadyIssued
		if holders[s.ID][n.user] == nil {
			coupon := g.issue(s, n.user, now)
			coupon.Generation, coupon.Ticket = n.generation, n.number
			coupons, outcome = append(coupons, coupon), issued
		}
		s.line.ServedThrough = n.number
		endTicket(t, s, n.number, n.user, outcome, now)
	}
	s.line.Due = due
	s.OpenedAt = s.seen().Opened(now)
	s.SoldOutAt = s.SoldOut(s.inForce, now)
	return coupons, nil
}

// nextTickets returns so many of those that are next in line.
func nextTickets(t *sqldb.Tx, s *stock, limit int64) ([]ticket, error) {
	rows, err := t.Query(`SELECT ticket, user_id FROM tickets
		WHERE campaign_id = ? AND generation = ? AND ticket > ? AND ended_at IS NULL ORDER BY ticket `+t.Dialect.Limit,
		string(s.ID), s.line.Generation, s.line.ServedThrough, limit)
	next, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (n ticket, err error) {
		n.generation = s.line.Generation
		err = take(&n.number, &n.user)
		return n, err
	})
	if err == nil && int64(len(next)) != limit {
		err = fmt.Errorf("the line has %d tickets behind %d, and %d are in its count: see firstcome audit", len(next), s.line.ServedThrough, s.line.Waiting)
	}
	return next, err
}

// again returns when somebody in line can be served: see gate.Served.
func (g *Gate) again(s *stock, now, clock time.Time) time.Duration {
	campaign := s.seen()
	why := firstcome.Decide(campaign, now, -1, false, false)
	var wait time.Duration
	switch {
	case s.line.Waiting == 0 || why == firstcome.Paused:
		return 0
	case g.db.Dialect.Shared && s.isQuarantined() && (s.free() == 0 || why != firstcome.Waiting):
		wait = s.quarantined.until.Sub(clock)
	case why == firstcome.NotOpen:
		wait = campaign.OpensAt.Sub(now)
	case s.free() == 0:
		return 0
	default:
		wait = campaign.Pace.Wait(s.line.Due, clock)
	}
	return max(wait, time.Microsecond) // at once
}

// Leave takes a user out of the line: see gate.Places.
func (g *Gate) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	err = g.db.Repeat(ctx, func(t *sqldb.Tx) error { return g.leave(t, id, user) })
	return left, sqldb.Wrap(err, "leave the line of %s", id)
}

// leave is Leave within its transaction.
func (g *Gate) leave(t *sqldb.Tx, id firstcome.CampaignID, user firstcome.UserID) error {
	s, err := g.lineInRow(t, id)
	if err != nil {
		return err
	}
	now := g.rows.decidesAt(s)
	number, err := ticketOf(t, &s, user)
	if err != nil {
		return err
	}
	if number > 0 && s.sendsAway(now) == 0 {
		before := s
		endTicket(t, &s, number, user, left, now)
		stageIssued(t, before, s, nil, now)
		return flush(t)
	}
	rows, err := t.Query(g.rows.queries.couponOf, string(user), string(id))
	switch _, err := only(rows, err); {
	case err == nil:
		return firstcome.ErrServed
	case !errors.Is(err, firstcome.ErrNoCoupon):
		return err
	}
	joined, err := hasJoined(t, id, user)
	if err == nil && !joined {
		err = firstcome.ErrNoTicket
	}
	return err
}

// hasJoined tells whether a user who holds no coupon ever had a ticket: it was left or is of a generation that is over, or
// they were served, and the coupon was voided since.
func hasJoined(t *sqldb.Tx, id firstcome.CampaignID, user firstcome.UserID) (joined bool, err error) {
	err = t.Row(joinedQuery(memoryOf(t).queries), string(user), string(id), string(user), string(id), string(id), string(user), string(id)).Scan(&joined)
	return joined, err
}

// joinedQuery returns the query that tells whether a user without a coupon ever had a ticket. Arguments: user, campaign;
// user, campaign; campaign, user, campaign.
func joinedQuery(q *queries) string {
	return `SELECT EXISTS (SELECT 1 FROM tickets WHERE ` + q.waiter + ` = ? AND campaign_id = ? AND ended_at IS NULL)
		OR EXISTS (SELECT 1 FROM tickets WHERE ` + q.leaver + ` = ? AND campaign_id = ? AND outcome IN ('left', 'already_issued'))
		OR EXISTS (SELECT 1 FROM coupons WHERE campaign_id = ? AND ticket IS NOT NULL AND number IN (` + voidsOf + `))`
}

// ticketOf returns the ticket with which a user is in line, or 0.
func ticketOf(t *sqldb.Tx, s *stock, user firstcome.UserID) (number int64, err error) {
	if s.line.Waiting == 0 {
		return 0, nil
	}
	err = t.Row(ticketQuery(memoryOf(t).queries), string(user), string(s.ID), s.line.Generation).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return number, err
}

// ticketQuery returns the query of the ticket of a user who is in line of a campaign and a generation.
func ticketQuery(q *queries) string {
	return `SELECT ticket FROM tickets WHERE ` + q.waiter + ` = ? AND campaign_id = ? AND generation = ? AND ended_at IS NULL`
}
