// Package sqlgate is the gate in SQL: it decides claims and direct issues, and serves waiting lines, in transactions of the ledger's
// database. Package campaign has the row that each decision reads and writes.
package sqlgate

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// ownLease is how long a process may repeat a coupon to its user, if it is the only one at the ledger. All changes pass through this
// process, and it forgets the coupon when a change comes. So the lease may be long.
const ownLease = 24 * time.Hour

// A Gate decides claims in the ledger and serves the lines, for the campaigns whose gate is the ledger. It also answers for retired
// campaigns, whichever gate decided them.
type Gate struct {
	db      *sqldb.DB
	store   *campaign.Store
	queries *queries
	spare   sync.Pool // writes that no transaction uses
	maxLine int64     // maximum number of users in a campaign's line
	claims  sqldb.Kind[*claims]
}

// phase returns the outcome of a claim at a time by the campaign's window alone.
func phase(s campaign.Row, at time.Time) firstcome.Outcome {
	c := s.Seen()
	return firstcome.Decide(firstcome.Campaign{Terms: firstcome.Terms{
		OpensAt: c.OpensAt, ClosesAt: c.ClosesAt, Quantity: math.MaxInt64,
	}}, at, 0, false, false)
}

// CouponOf returns the coupon in force that a user holds in a campaign, or ErrNoCoupon.
func (g *Gate) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	return g.store.CouponOf(ctx, id, user)
}

// New returns the gate of a database. maxLine is the most users in a campaign's line; 0 means DefaultMaxLine.
func New(r *campaign.Store, maxLine int64) *Gate {
	return &Gate{db: r.DB, store: r, queries: queriesOf[r.DB.Dialect], maxLine: cmp.Or(maxLine, DefaultMaxLine)}
}

// A claims is one call of Claim or Issue, as a job of its database.
type claims struct {
	gate *Gate
	campaign.Claimants
	direct    *gate.Order          // the order of a direct issue; nil for Claim
	row       *campaign.Row        // in the transaction that decides; shared with other calls of the campaign
	decisions []firstcome.Decision // the result: one for each of users
	issued    attempted            // by earlier transactions, on a server
	err       error                // why this call was not decided
}

// Claim decides claims in one transaction: see gate.Decider. When it returns, the issued coupons are on the disk.
func (g *Gate) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decisions(ctx, id, users, nil)
}

// isMadeUp reports whether a campaign certainly does not exist. Any user can claim with a made-up id. On a server a claim takes a
// connection from other decisions, so there the id is checked first. If the check fails, the transaction that follows checks the id.
func (g *Gate) isMadeUp(ctx context.Context, id firstcome.CampaignID) bool {
	return g.db.Dialect.Shared && errors.Is(g.store.Existing.Check(ctx, id), firstcome.ErrNoCampaign)
}

// decisions decides the claims of a call and returns the decisions. direct is the order of a direct issue, or nil.
func (g *Gate) decisions(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID, direct *gate.Order) ([]firstcome.Decision, error) {
	c := &claims{gate: g, Claimants: campaign.Claimants{Campaign: id, Users: users}, direct: direct, issued: attempted{}}
	err := g.claim(ctx, c)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		g.store.Existing.Remove(c.Campaign) // the campaign was deleted
	}
	if err != nil { // the writer may still be writing c
		return nil, sqldb.Wrap(err, "decide %d claims of %s", len(c.Users), c.Campaign)
	}
	return c.decisions, nil
}

func (g *Gate) claim(ctx context.Context, c *claims) error {
	switch {
	case g.store.Remote():
		return fmt.Errorf("%w: %s decides its claims", firstcome.ErrGateMismatch, g.store.Gate)
	case g.isMadeUp(ctx, c.Campaign):
		return firstcome.ErrNoCampaign
	}
	return g.claims.Do(ctx, g.db, c)
}

// An attempted has the coupons that the transactions of one call issued. If it is unknown whether a transaction was committed, the
// next transaction may find its coupons. The same call issued these coupons, so it must answer Issued.
type attempted map[firstcome.UserID]firstcome.Coupon

// claim adds the decisions of another transaction. If an earlier transaction of the call issued a coupon, it changes the outcome from
// AlreadyIssued to Issued.
func (a attempted) claim(decisions []firstcome.Decision) {
	this := attempted{}
	for n := range decisions {
		d := &decisions[n]
		user := d.Coupon.User
		_, again := this[user] // a user who claims twice in the batch
		before, found := a[user]
		found = found && before.Number == d.Coupon.Number && before.IssuedAt.Equal(d.Coupon.IssuedAt)
		if d.Outcome == firstcome.AlreadyIssued && found && !again {
			d.Outcome = firstcome.Issued
		}
		if d.Outcome == firstcome.Issued {
			this[user] = d.Coupon
		}
	}
	maps.Copy(a, this)
}

// Holders reads the users who hold a coupon in force: see gate.Decider.
func (g *Gate) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	err = g.db.Conclude.AtOnce(ctx, func(s *sqldb.Snapshot) error {
		err := s.QueryRowContext(ctx, `SELECT version FROM campaigns WHERE id = ?`, id).Scan(&version)
		if errors.Is(err, sql.ErrNoRows) {
			return firstcome.ErrNoCampaign
		}
		if err != nil {
			return err
		}
		rows, err := s.QueryContext(ctx, `SELECT user_id FROM coupons WHERE campaign_id = ? AND voided_at IS NULL`, id)
		return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
			user, err := sqldb.One[firstcome.UserID](take)
			if err == nil {
				each(user)
			}
			return err
		})
	})
	return version, sqldb.Wrap(err, "read the holders of %s", id)
}

// Key implements sqldb.Job.
func (c *claims) Key() string { return string(c.Campaign) }

// Outcome implements sqldb.Job.
func (c *claims) Outcome() error { return c.err }

// Decide implements sqldb.Job. It reads the coupons and tickets of all users first, decides in memory, and writes everything at the
// end.
func (c *claims) Decide(t *sqldb.Tx, all []*claims) error {
	g := c.gate
	w := g.writesIn(t)
	defer g.spare.Put(w)
	ours, users := make([]*claims, 0, len(all)), make([]campaign.Claimants, 0, len(all))
	for _, c := range all {
		c.row, c.err = g.store.Row(t, c.Campaign)
		switch {
		case c.err == nil:
			ours, users = append(ours, c), append(users, c.Claimants)
		case t.Dialect.Classify(c.err) != sqldb.NotOurs:
			return c.err
		}
	}
	holders, err := campaign.Holders(t, users)
	if err != nil {
		return err
	}
	tickets, err := g.ticketsOf(t, ours)
	if err != nil {
		return err
	}
	for _, c := range ours {
		g.decide(w, c, holders[c.Campaign], tickets[c.Campaign])
		if err := campaign.LogDirect(t, c.direct, c.Campaign, c.decisions); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil || !t.Dialect.Shared {
		return err
	}
	for _, c := range ours {
		c.issued.claim(c.decisions)
	}
	return nil
}

// decide decides the claims of one call. holds has the coupons of its users, and decide adds the coupons that it issues. waits has
// their tickets, and decide adds the tickets that it assigns. waits is nil if the campaign has no line.
func (g *Gate) decide(w *writes, c *claims, holds map[firstcome.UserID]*firstcome.Coupon, waits map[firstcome.UserID]int64) {
	s := *c.row
	now := g.store.DecidesAt(s)
	if w.endLine(&s, now) != "" {
		clear(waits)
	}
	seen, quarantined := s.Seen(), s.Quarantined.Coupons
	opened := seen.Opened(now)
	if c.direct != nil {
		seen = seen.Direct()
	} else if seen.Pace != nil && !s.Quarantined.SoldOut {
		quarantined = 0 // a user who joins the line waits until the stock has left quarantine
	}
	seen.OpenedAt = opened
	c.decisions = make([]firstcome.Decision, len(c.Users))
	issued := make([]firstcome.Coupon, 0, len(c.Users)) // must never be reallocated: holds points into it
	for n, user := range c.Users {
		coupon := holds[user]
		ticket := waits[user]
		var undecided error
		outcome := firstcome.Decide(seen, now, s.InForce+quarantined, coupon != nil, ticket > 0 && c.direct == nil)
		if outcome == firstcome.Waiting && ticket == 0 {
			if ticket = w.joinLine(&s, user, now, g.maxLine); ticket > 0 {
				waits[user] = ticket
			} else {
				outcome, undecided = 0, firstcome.ErrLineFull
			}
		}
		if outcome == firstcome.Issued {
			issued = append(issued, g.issue(&s, user, now))
			seen.SoldOutAt = seen.SoldOut(s.InForce, now)
			coupon = &issued[len(issued)-1]
			coupon.Direct = c.direct != nil
			holds[user] = coupon
			if ticket > 0 {
				w.endTicket(&s, ticket, user, alreadyIssued, now)
				delete(waits, user)
			}
			if w.endLine(&s, now) != "" {
				clear(waits)
			}
		}
		d := &c.decisions[n]
		*d = firstcome.Decision{
			Outcome: outcome, Undecided: undecided, At: now, Version: s.Version, TermsVersion: s.TermsVersion, InForce: s.InForce,
			Since: seen.Since(outcome), OpenedAt: seen.OpenedAt, Lease: leaseOf(w.Tx, &s, now, outcome), InLine: s.Line.Waiting,
		}
		if c.direct != nil && !outcome.HasCoupon() {
			d.Lease = 0 // a claim may have another outcome
		}
		if outcome == firstcome.Waiting {
			d.Place = s.View(now).Place(ticket)
		}
		if coupon != nil {
			d.Coupon = *coupon
		}
	}
	s.Instants = seen.Instants
	w.stage(c.row, s, issued, now)
}

// issue takes one coupon from the stock and returns it.
func (g *Gate) issue(s *campaign.Row, user firstcome.UserID, now time.Time) firstcome.Coupon {
	s.InForce++
	s.Issued++
	s.LastNumber++
	return firstcome.Coupon{
		Campaign: s.ID, Number: s.LastNumber, User: user, Code: g.store.Secret.Code(s.ID, s.LastNumber),
		IssuedAt: now, TermsVersion: s.TermsVersion, Recorded: true,
	}
}

// leaseOf returns how long a decision made at now may be repeated. If nodes share the ledger, a coupon gets no lease, because another
// node may void it.
func leaseOf(t *sqldb.Tx, s *campaign.Row, now time.Time, o firstcome.Outcome) time.Duration {
	if o.HasCoupon() && !t.Dialect.Shared {
		return ownLease
	}
	return s.View(now).Lease(o)
}
