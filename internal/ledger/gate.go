package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// refusalLease is how long a node may repeat a refusal. So for a sold-out campaign, a node calls the gate at most five times a second.
const refusalLease = 200 * time.Millisecond

// ownLease is how long a process may repeat a coupon to its user, if it is the only one at the ledger. All changes pass through this
// process, and it forgets the coupon when a change comes. So the lease may be long.
const ownLease = 24 * time.Hour

// gateKind is the gate's name in the rows of campaigns whose claims the ledger decides.
const gateKind = "ledger"

// GateName returns the name of the gate that decides this node's campaigns, as their rows hold it.
func (l *Ledger) GateName() string { return l.rows.gate }

// remote reports whether a gate beside the ledger decides this node's campaigns.
func (r *rows) remote() bool { return r.gate != gateKind }

// A Gate decides claims in the ledger and serves the lines, for the campaigns whose gate is the ledger. It also answers for retired
// campaigns, whichever gate decided them.
type Gate struct {
	db       *sqldb.DB
	rows     *rows
	queries  *gateQueries
	spare    sync.Pool                                  // writes that no transaction uses
	maxLine  int64                                      // maximum number of users in a campaign's line
	existing *lru.Cache[firstcome.CampaignID, struct{}] // campaigns that this node knows to exist
}

// newGate returns the gate of a database, which decides the claims that share a transaction from now on. maxLine is the most users in
// a campaign's line; 0 means DefaultMaxLine.
func newGate(r *rows, maxLine int64) *Gate {
	existing, err := lru.New[firstcome.CampaignID, struct{}](maxExisting)
	if err != nil {
		panic(err) // only a size below 1 is an error
	}
	g := &Gate{db: r.db, rows: r, queries: gateQueriesOf[r.db.Dialect], maxLine: cmp.Or(maxLine, DefaultMaxLine), existing: existing}
	r.db.Together = g.decideTogether
	return g
}

// A claims is one call of Claim or Issue.
type claims struct {
	claimants
	direct    *gate.Order          // the order of a direct issue; nil for Claim
	decisions []firstcome.Decision // the result: one for each of users
	err       error                // why this call was not decided
}

// Claim decides claims in one transaction: see gate.Decider. When it returns, the issued coupons are on the disk.
func (g *Gate) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decisions(ctx, &claims{claimants: claimants{id: id, users: users}})
}

// decisions decides the claims of a call and returns the decisions.
func (g *Gate) decisions(ctx context.Context, c *claims) ([]firstcome.Decision, error) {
	err := g.claim(ctx, c)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		g.existing.Remove(c.id) // the campaign was deleted
	}
	if err != nil { // the writer may still be writing c
		return nil, sqldb.Wrap(err, "decide %d claims of %s", len(c.users), c.id)
	}
	return c.decisions, nil
}

func (g *Gate) claim(ctx context.Context, c *claims) error {
	switch {
	case g.rows.remote():
		return fmt.Errorf("%w: %s decides its claims", firstcome.ErrGateMismatch, g.rows.gate)
	case !g.db.Dialect.Shared:
		return g.db.Share(ctx, c)
	case g.isMadeUp(ctx, c.id):
		return firstcome.ErrNoCampaign
	}
	own := attempted{}
	return g.db.Repeat(ctx, func(t *sqldb.Tx) error {
		err := g.decideAll(t, []*claims{c})
		if err == nil {
			err = c.err
		}
		if err == nil {
			own.claim(c.decisions)
		}
		return err
	})
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

func (c *claims) Key() string    { return string(c.id) }
func (c *claims) Outcome() error { return c.err }

// decideTogether decides the calls that share a transaction.
func (g *Gate) decideTogether(t *sqldb.Tx, work []sqldb.Shared) error {
	all := make([]*claims, len(work))
	for n := range work {
		all[n] = work[n].(*claims)
	}
	return g.decideAll(t, all)
}

// decideAll decides several calls in a transaction, in their order. It reads the coupons and tickets of all users first, decides in
// memory, and writes everything at the end.
func (g *Gate) decideAll(t *sqldb.Tx, all []*claims) error {
	w := g.writesIn(t)
	defer g.spare.Put(w)
	ours, users := make([]*claims, 0, len(all)), make([]claimants, 0, len(all))
	for _, c := range all {
		_, c.err = g.rows.stock(t, c.id)
		switch {
		case c.err == nil:
			ours, users = append(ours, c), append(users, c.claimants)
		case t.Dialect.Classify(c.err) != sqldb.NotOurs:
			return c.err
		}
	}
	holders, err := holdersOf(t, users)
	if err != nil {
		return err
	}
	tickets, err := g.ticketsOf(t, ours)
	if err != nil {
		return err
	}
	for _, c := range ours {
		g.decide(w, c, holders[c.id], tickets[c.id])
		if err := logDirect(t, c.direct, c.id, c.decisions); err != nil {
			return err
		}
	}
	return w.flush()
}

// LogDirect notes in the audit log a direct issue at a gate beside the ledger. If it issued no coupon, LogDirect notes nothing.
func (rc *Recorder) LogDirect(ctx context.Context, order gate.Order, id firstcome.CampaignID, decisions []firstcome.Decision) error {
	err := rc.db.Update(ctx, func(t *sqldb.Tx) error {
		return logDirect(t, &order, id, decisions)
	})
	return sqldb.Wrap(err, "log a direct issue of %s", id)
}

// CouponIssue is the action of a direct issue in the audit log.
const CouponIssue = "coupon.issue"

// logDirect notes in the audit log how many coupons a direct issue issued, and how many users were in line. It notes nothing if order
// is nil, or if no coupon was issued.
func logDirect(t *sqldb.Tx, order *gate.Order, id firstcome.CampaignID, decisions []firstcome.Decision) error {
	if order == nil {
		return nil
	}
	issued, waiting := int64(0), int64(0)
	var last firstcome.Coupon
	for n := range decisions {
		d := &decisions[n]
		if waiting = max(waiting, d.InLine); d.Outcome == firstcome.Issued {
			issued, last = issued+1, d.Coupon
		}
	}
	if issued == 0 {
		return nil
	}
	about, detail := entry{campaign: id}, map[string]any{"issued": issued, "last_number": last.Number, "waiting": waiting}
	if issued == 1 {
		about.user, about.number = last.User, last.Number
	}
	if order.Reason != "" {
		detail["reason"] = order.Reason
	}
	return addLogJSON(t, decisions[0].At, order.Actor, CouponIssue, detail, about)
}

// decide decides the claims of one call. holds has the coupons of its users, and decide adds the coupons that it issues. waits has
// their tickets, and decide adds the tickets that it assigns. waits is nil if the campaign has no line.
func (g *Gate) decide(w *writes, c *claims, holds map[firstcome.UserID]*firstcome.Coupon, waits map[firstcome.UserID]int64) {
	s := remembered(w.Tx, c.id)
	now := g.rows.decidesAt(s)
	before := s
	if w.endLine(&s, now) {
		clear(waits)
	}
	seen, quarantined := s.seen(), s.quarantined.coupons
	opened := seen.Opened(now)
	if c.direct != nil {
		seen = seen.Direct()
	} else if seen.Pace != nil && !s.quarantined.soldOut {
		quarantined = 0 // a user who joins the line waits until the stock has left quarantine
	}
	seen.OpenedAt = opened
	c.decisions = make([]firstcome.Decision, len(c.users))
	issued := make([]firstcome.Coupon, 0, len(c.users)) // must never be reallocated: holds points into it
	for n, user := range c.users {
		coupon := holds[user]
		ticket := waits[user]
		var undecided error
		outcome := firstcome.Decide(seen, now, s.inForce+quarantined, coupon != nil, ticket > 0 && c.direct == nil)
		if outcome == firstcome.Waiting && ticket == 0 {
			if ticket = w.joinLine(&s, user, now, g.maxLine); ticket > 0 {
				waits[user] = ticket
			} else {
				outcome, undecided = 0, firstcome.ErrLineFull
			}
		}
		if outcome == firstcome.Issued {
			issued = append(issued, g.issue(&s, user, now))
			seen.SoldOutAt = seen.SoldOut(s.inForce, now)
			coupon = &issued[len(issued)-1]
			coupon.Direct = c.direct != nil
			holds[user] = coupon
			if ticket > 0 {
				w.endTicket(&s, ticket, user, alreadyIssued, now)
				delete(waits, user)
			}
			if w.endLine(&s, now) {
				clear(waits)
			}
		}
		d := &c.decisions[n]
		*d = firstcome.Decision{
			Outcome: outcome, Undecided: undecided, At: now, Version: s.Version, TermsVersion: s.termsVersion, InForce: s.inForce,
			Since: seen.Since(outcome), OpenedAt: seen.OpenedAt, Lease: leaseOf(w.Tx, &s, now, outcome), InLine: s.line.Waiting,
		}
		if c.direct != nil && !outcome.HasCoupon() {
			d.Lease = 0 // a claim may have another outcome
		}
		if outcome == firstcome.Waiting {
			d.Place = seen.Place(s.line, ticket, s.inForce, now)
		}
		if coupon != nil {
			d.Coupon = *coupon
		}
	}
	s.Instants = seen.Instants
	w.stage(before, s, issued, now)
}

// issue takes one coupon from the stock and returns it.
func (g *Gate) issue(s *stock, user firstcome.UserID, now time.Time) firstcome.Coupon {
	s.inForce++
	s.issued++
	s.lastNumber++
	return firstcome.Coupon{
		Campaign: s.ID, Number: s.lastNumber, User: user, Code: g.rows.secret.Code(s.ID, s.lastNumber),
		IssuedAt: now, TermsVersion: s.termsVersion, Recorded: true,
	}
}

// leaseOf returns how long a decision made at now may be repeated. A lease ends when the window changes the answer at the latest. A
// pause gets no lease, because an operator may end it at any time. If nodes share the ledger, there are two more rules: no lease is
// granted while stock is quarantined, and a coupon gets none, because another node may void it.
func leaseOf(t *sqldb.Tx, s *stock, now time.Time, o firstcome.Outcome) time.Duration {
	if t.Dialect.Shared && (o.HasCoupon() || s.isQuarantined()) {
		return 0
	}
	switch {
	case o.HasCoupon():
		return ownLease
	case o == firstcome.NotOpen && s.line.Waiting > 0:
		return 0 // users in line get another answer
	}
	return o.Lasts(now, s.OpensAt, s.ClosesAt, refusalLease)
}
