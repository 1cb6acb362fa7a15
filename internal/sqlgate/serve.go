package sqlgate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// The campaign's row holds its waiting line: the counters and the pace's bucket. Every claim, service and change of the campaign
// locks this row first; on SQLite there is one writer. So all nodes see the same line, and it needs no leader. Each ticket has
// a row of its own. Only service and the requests of its user read that row.
//
//	          join                Serve
//	(no ticket) ───▶ in line ─────────────▶ issued
//	                  │ │ │ └─ Serve, Issue ▶ already_issued (the user holds another coupon)
//	                  │ │ └─── Leave ───────▶ left
//	                  │ └───── the generation ends: sold_out or closed; the ticket's row does not change
//	                  └─────── claims again: the same ticket

// DefaultMaxLine is the default maximum number of users in a campaign's line.
const DefaultMaxLine = 1_000_000

// maxServe bounds the tickets that one transaction serves. It takes the ledger some 20 ms to serve so many.
const maxServe = 2048

// The outcomes of a ticket, as its row holds them. A ticket that ended with its generation has no outcome in its row.
const (
	issued        = "issued"
	alreadyIssued = "already_issued"
	left          = "left"
)

// A ticket is a row of the table tickets that will be written.
type ticket struct {
	campaign           firstcome.CampaignID
	generation, number int64
	user               firstcome.UserID
	at                 int64  // when the ticket was assigned or ended, in microseconds since 1970
	outcome            string // empty if the ticket has not ended
}

// A pastLine is a generation that ended, as a row of past_lines that will be written.
type pastLine struct {
	campaign firstcome.CampaignID
	firstcome.PastLine
}

// joinLine assigns the next ticket to a user and returns it, or returns 0 if the line is full.
func (w *writes) joinLine(s *campaign.Row, user firstcome.UserID, now time.Time, limit int64) int64 {
	if s.Line.Waiting >= limit {
		return 0
	}
	s.Line.LastTicket++
	s.Line.Waiting++
	w.joins = append(w.joins, ticket{s.ID, s.Line.Generation, s.Line.LastTicket, user, now.UnixMicro(), ""})
	return s.Line.LastTicket
}

// endTicket ends a user's ticket with an outcome.
func (w *writes) endTicket(s *campaign.Row, number int64, user firstcome.UserID, outcome string, now time.Time) {
	w.ends = append(w.ends, ticket{s.ID, s.Line.Generation, number, user, now.UnixMicro(), outcome})
	s.Line.Waiting--
	if outcome != left {
		s.Line.Served++
	}
	if s.Line.Waiting == 0 {
		s.Line.ServedThrough = s.Line.LastTicket
	}
}

// endLine ends the generation if the campaign is closed at now, or if all coupons are in force and there is no waitlist. It returns
// why, or the empty string. The users in line lose their tickets for good, even if the campaign opens again or stock returns.
func (w *writes) endLine(s *campaign.Row, now time.Time) (reason string) {
	if s.Line.LastTicket == 0 { // so it is not over. Most campaigns have no line, and their claims need no View
		return ""
	}
	ended, over := s.View(now).EndedLine()
	if !over {
		return ""
	}
	w.past = append(w.past, pastLine{s.ID, ended})
	s.Line = s.Line.Next()
	return ended.Reason
}

// Issue decides claims and bypasses the line: see gate.Decider.
func (g *Gate) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decisions(ctx, id, users, &order)
}

// Serve issues coupons to the users who are next in line: see gate.Line.
func (g *Gate) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	if g.store.Remote() {
		return gate.Served{}, fmt.Errorf("%w: %s serves its line", firstcome.ErrGateMismatch, g.store.Gate)
	}
	var served gate.Served
	err := g.db.Update(ctx, func(t *sqldb.Tx) (err error) {
		served, err = g.serve(t, id, min(limit, maxServe))
		return err
	})
	if err != nil { // the writer may still be writing served
		return gate.Served{}, sqldb.Wrap(err, "serve the line of %s", id)
	}
	return served, nil
}

// serve does the work of Serve in its transaction.
func (g *Gate) serve(t *sqldb.Tx, id firstcome.CampaignID, limit int) (served gate.Served, err error) {
	row, err := g.lineInRow(t, id)
	if err != nil || row.Line.Waiting == 0 {
		return served, err
	}
	s := *row
	w := g.writesIn(t)
	defer g.spare.Put(w)
	clock := g.store.ClockOf(s) // read once: the turns are taken, and the coupons issued, at the same time
	now := s.At(clock)
	if served.Ended = w.endLine(&s, now); served.Ended == "" && s.View(now).IsServed() {
		if served.Coupons, err = g.serveNext(w, &s, int64(limit), now, clock); err != nil {
			return served, err
		}
		served.Ended = w.endLine(&s, now)
	}
	served.Waiting, served.Again = s.Line.Waiting, s.View(now).Again(clock)
	w.stage(row, s, served.Coupons, now)
	return served, w.flush()
}

// lineInRow reads the campaign's row from the database, not from memory. If the remembered row were wrong, serving would fail until
// the next claim, which may never come.
func (g *Gate) lineInRow(t *sqldb.Tx, id firstcome.CampaignID) (*campaign.Row, error) {
	campaign.Forget(t, id)
	return g.store.Row(t, id)
}

// serveNext takes turns from the pace's bucket, serves one ticket for each turn, and returns the coupons issued.
func (g *Gate) serveNext(w *writes, s *campaign.Row, limit int64, now, clock time.Time) ([]firstcome.Coupon, error) {
	seen := s.View(now)
	turns, due := seen.Pace.Take(s.Line.Due, clock, min(limit, seen.Free(), s.Line.Waiting))
	if turns == 0 {
		if due.Before(s.Line.Due) { // Take lowered it because the clock was set back: keep that, or each call would lower it again
			s.Line.Due = due
		}
		return nil, nil
	}
	next, err := nextTickets(w.Tx, s, turns)
	if err != nil {
		return nil, err
	}
	c := campaign.Claimants{Campaign: s.ID}
	for _, n := range next {
		c.Users = append(c.Users, n.user)
	}
	holders, err := campaign.Holders(w.Tx, []campaign.Claimants{c})
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
		s.Line.ServedThrough = n.number
		w.endTicket(s, n.number, n.user, outcome, now)
	}
	s.Line.Due = due
	s.OpenedAt = s.Seen().Opened(now)
	s.SoldOutAt = s.SoldOut(s.InForce, now)
	return coupons, nil
}

// nextTickets returns the next limit tickets in line.
func nextTickets(t *sqldb.Tx, s *campaign.Row, limit int64) ([]ticket, error) {
	rows, err := t.Query(`SELECT ticket, user_id FROM tickets
		WHERE campaign_id = ? AND generation = ? AND ticket > ? AND ended_at IS NULL ORDER BY ticket `+t.Dialect.Limit,
		string(s.ID), s.Line.Generation, s.Line.ServedThrough, limit)
	next, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (n ticket, err error) {
		n.generation = s.Line.Generation
		err = take(&n.number, &n.user)
		return n, err
	})
	if err == nil && int64(len(next)) != limit {
		err = fmt.Errorf("the line has %d tickets after %d, but its row counts %d: run firstcome audit", len(next), s.Line.ServedThrough, s.Line.Waiting)
	}
	return next, err
}

// Leave takes a user out of the line: see gate.Places.
func (g *Gate) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error) {
	err = g.db.Repeat(ctx, func(t *sqldb.Tx) error { return g.leave(t, id, user) })
	return left, sqldb.Wrap(err, "leave the line of %s", id)
}

// leave does the work of Leave in its transaction.
func (g *Gate) leave(t *sqldb.Tx, id firstcome.CampaignID, user firstcome.UserID) error {
	row, err := g.lineInRow(t, id)
	if err != nil {
		return err
	}
	s := *row
	now := g.store.DecidesAt(s)
	number, err := g.ticketOf(t, &s, user)
	if err != nil {
		return err
	}
	if number > 0 && s.View(now).SendsAway() == 0 {
		w := g.writesIn(t)
		defer g.spare.Put(w)
		w.endTicket(&s, number, user, left, now)
		w.stage(row, s, nil, now)
		return w.flush()
	}
	rows, err := t.Query(g.store.HeldQuery(), string(user), string(id))
	switch _, err := campaign.OnlyCoupon(rows, err); {
	case err == nil:
		return firstcome.ErrServed
	case !errors.Is(err, firstcome.ErrNoCoupon):
		return err
	}
	joined, err := g.hasJoined(t, id, user)
	if err == nil && !joined {
		err = firstcome.ErrNoTicket
	}
	return err
}

// hasJoined reports whether a user who holds no coupon ever had a ticket. Such a user left the line, or was in line when a
// generation ended, or was served and the coupon was voided since.
func (g *Gate) hasJoined(t *sqldb.Tx, id firstcome.CampaignID, user firstcome.UserID) (joined bool, err error) {
	err = t.Row(joinedQuery(g.queries), string(user), string(id), string(user), string(id), string(id), string(user), string(id)).Scan(&joined)
	return joined, err
}

// joinedQuery returns the query of hasJoined. Its arguments are user, campaign; user, campaign; campaign, user, campaign.
func joinedQuery(q *queries) string {
	return `SELECT EXISTS (SELECT 1 FROM tickets WHERE ` + q.waiter + ` = ? AND campaign_id = ? AND ended_at IS NULL)
		OR EXISTS (SELECT 1 FROM tickets WHERE ` + q.leaver + ` = ? AND campaign_id = ? AND outcome IN ('left', 'already_issued'))
		OR EXISTS (SELECT 1 FROM coupons WHERE campaign_id = ? AND ticket IS NOT NULL AND number IN (` + campaign.VoidsOf + `))`
}

// ticketOf returns the ticket of a user in line, or 0 if the user is not in line.
func (g *Gate) ticketOf(t *sqldb.Tx, s *campaign.Row, user firstcome.UserID) (number int64, err error) {
	if s.Line.Waiting == 0 {
		return 0, nil
	}
	err = t.Row(ticketQuery(g.queries), string(user), string(s.ID), s.Line.Generation).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return number, err
}

// ticketQuery returns the query for a user's open ticket. Its arguments are user, campaign and generation.
func ticketQuery(q *queries) string {
	return `SELECT ticket FROM tickets WHERE ` + q.waiter + ` = ? AND campaign_id = ? AND generation = ? AND ended_at IS NULL`
}
