package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// refusalLease is how long a node may repeat a refusal: at most
// five calls of the gate a second for a campaign that is sold out.
const refusalLease = 200 * time.Millisecond

// ownLease is how long this process may repeat a coupon to its user: every
// change passes through it, and it forgets when one comes, so any long time does.
const ownLease = 24 * time.Hour

// gateKind is what a campaign whose claims are decided here says of its gate.
const gateKind = "ledger"

// GateName returns what the campaigns that this node decides call their gate.
func (l *Ledger) GateName() string { return l.rows.gate }

// remote tells whether another gate than the ledger decides this node's campaigns.
func (r *rows) remote() bool { return r.gate != gateKind }

// A Gate decides the claims of campaigns whose gate the ledger is, and serves their lines. It also answers for campaigns that are retired,
// whichever gate decided them.
type Gate struct {
	db       *sqldb.DB
	rows     *rows
	maxLine  int64                                      // people in line of a campaign
	existing *lru.Cache[firstcome.CampaignID, struct{}] // campaigns that this node has seen
}

// A claims is one call of Claim.
type claims struct {
	id        firstcome.CampaignID
	users     []firstcome.UserID
	direct    *gate.Order          // whose direct issue it is; nil: claims
	decisions []firstcome.Decision // once they are made, of each of users
	err       error                // why nothing is decided here
}

// Claim decides claims in one transaction: see gate.Decider. The coupons issued are
// on the disk when it returns.
func (g *Gate) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decisions(ctx, &claims{id: id, users: users})
}

// decisions returns those of claims.
func (g *Gate) decisions(ctx context.Context, c *claims) ([]firstcome.Decision, error) {
	err := g.claim(ctx, c)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		g.existing.Remove(c.id) // somebody has deleted it
	}
	if err != nil { // the writer may still be at c
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

// Attempted is what the transactions of one call of Claim issued. After one whose commit
// is unknown the next finds its coupons: this very call issued them.
type attempted map[firstcome.UserID]firstcome.Coupon

// claim takes the decisions of one more run, and answers issued for what an earlier run issued.
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

// Holders reads who holds a coupon in force: see gate.Decider.
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

// decideTogether is decideAll of what callers share a transaction for.
func (g *Gate) decideTogether(t *sqldb.Tx, work []sqldb.Shared) error {
	all := make([]*claims, len(work))
	for n := range work {
		all[n] = work[n].(*claims)
	}
	return g.decideAll(t, all)
}

// decideAll is Claim within a transaction, of several calls in their order. It looks all of their users up
// at once, decides in memory, and writes all at once.
func (g *Gate) decideAll(t *sqldb.Tx, all []*claims) error {
	ours := make([]*claims, 0, len(all))
	for _, c := range all {
		_, c.err = g.rows.stock(t, c.id)
		switch {
		case c.err == nil:
			ours = append(ours, c)
		case t.Dialect.Classify(c.err) != sqldb.NotOurs:
			return c.err
		}
	}
	holders, err := holdersOf(t, ours)
	if err != nil {
		return err
	}
	tickets, err := ticketsOf(t, ours)
	if err != nil {
		return err
	}
	for _, c := range ours {
		g.decide(t, c, holders[c.id], tickets[c.id])
		if err := logDirect(t, c); err != nil {
			return err
		}
	}
	return flush(t)
}

// LogDirect notes in the audit log what was issued directly at another gate, if anything was.
func (rc *Recorder) LogDirect(ctx context.Context, order gate.Order, id firstcome.CampaignID, decisions []firstcome.Decision) error {
	err := rc.db.Update(ctx, func(t *sqldb.Tx) error {
		return logDirect(t, &claims{id: id, direct: &order, decisions: decisions})
	})
	return sqldb.Wrap(err, "log a direct issue of %s", id)
}

// CouponIssue is the action of a line of the audit log about a direct issue.
const CouponIssue = "coupon.issue"

// logDirect notes in the audit log what a direct issue issued, and how many people in line that passed.
func logDirect(t *sqldb.Tx, c *claims) error {
	if c.direct == nil {
		return nil
	}
	issued, waiting := int64(0), int64(0)
	var last firstcome.Coupon
	for n := range c.decisions {
		d := &c.decisions[n]
		if waiting = max(waiting, d.InLine); d.Outcome == firstcome.Issued {
			issued, last = issued+1, d.Coupon
		}
	}
	if issued == 0 {
		return nil
	}
	about, detail := entry{campaign: c.id}, map[string]any{"issued": issued, "last_number": last.Number, "waiting": waiting}
	if issued == 1 {
		about.user, about.number = last.User, last.Number
	}
	if c.direct.Reason != "" {
		detail["reason"] = c.direct.Reason
	}
	return addLogJSON(t, c.decisions[0].At, c.direct.Actor, CouponIssue, detail, about)
}

// decide decides the claims of one call. holds are the coupons of its users, and gets those that it issues; waits are
// their tickets, and gets those that it gives. It is nil where the campaign has no line.
func (g *Gate) decide(t *sqldb.Tx, c *claims, holds map[firstcome.UserID]*firstcome.Coupon, waits map[firstcome.UserID]int64) {
	s := memoryOf(t).stocks[c.id]
	now := g.rows.decidesAt(s)
	before := s
	if endLine(t, &s, now) {
		clear(waits)
	}
	campaign, quarantined := s.seen(), s.quarantined.coupons
	opened := campaign.Opened(now)
	if c.direct != nil {
		campaign = campaign.Direct()
	} else if campaign.Pace != nil && !s.quarantined.soldOut {
		quarantined = 0 // whoever joins waits until that has left quarantine
	}
	campaign.OpenedAt = opened
	c.decisions = make([]firstcome.Decision, len(c.users))
	issued := make([]firstcome.Coupon, 0, len(c.users)) // never grows: holds points into it
	for n, user := range c.users {
		coupon := holds[user]
		ticket := waits[user]
		var undecided error
		outcome := firstcome.Decide(campaign, now, s.inForce+quarantined, coupon != nil, ticket > 0 && c.direct == nil)
		if outcome == firstcome.Waiting && ticket == 0 {
			if ticket = joinLine(t, &s, user, now, g.maxLine); ticket > 0 {
				waits[user] = ticket
			} else {
				outcome, undecided = 0, firstcome.ErrLineFull
			}
		}
		if outcome == firstcome.Issued {
			issued = append(issued, g.issue(&s, user, now))
			campaign.SoldOutAt = campaign.SoldOut(s.inForce, now)
			coupon = &issued[len(issued)-1]
			coupon.Direct = c.direct != nil
			holds[user] = coupon
			if ticket > 0 {
				endTicket(t, &s, ticket, user, alreadyIssued, now)
				delete(waits, user)
			}
			if endLine(t, &s, now) {
				clear(waits)
			}
		}
		d := &c.decisions[n]
		*d = firstcome.Decision{
			Outcome: outcome, Undecided: undecided, At: now, Version: s.Version, TermsVersion: s.termsVersion, InForce: s.inForce,
			Since: campaign.Since(outcome), OpenedAt: campaign.OpenedAt, Lease: leaseOf(t, &s, now, outcome), InLine: s.line.Waiting,
		}
		if c.direct != nil && !outcome.HasCoupon() {
			d.Lease = 0 // others may hear otherwise
		}
		if outcome == firstcome.Waiting {
			d.Place = campaign.Place(s.line, ticket, s.inForce, now)
		}
		if coupon != nil {
			d.Coupon = *coupon
		}
	}
	s.Instants = campaign.Instants
	stageIssued(t, before, s, issued, now)
}

// issue takes one coupon from the stock.
func (g *Gate) issue(s *stock, user firstcome.UserID, now time.Time) firstcome.Coupon {
	s.inForce++
	s.issued++
	s.lastNumber++
	return firstcome.Coupon{
		Campaign: s.ID, Number: s.lastNumber, User: user, Code: g.rows.secret.Code(s.ID, s.lastNumber),
		IssuedAt: now, TermsVersion: s.termsVersion, Recorded: true,
	}
}

// leaseOf returns how long a decision made at now may be repeated: none past the
// instant at which the window answers otherwise, and none for a pause, which an
// operator ends at any time. Where nodes share the ledger, none is granted while stock
// is quarantined, and none of a coupon, which another node may void.
func leaseOf(t *sqldb.Tx, s *stock, now time.Time, o firstcome.Outcome) time.Duration {
	if t.Dialect.Shared && (o.HasCoupon() || s.isQuarantined()) {
		return 0
	}
	switch {
	case o.HasCoupon():
		return ownLease
	case o == firstcome.NotOpen && s.line.Waiting > 0:
		return 0 // nor to those in line
	}
	return o.Lasts(now, s.OpensAt, s.ClosesAt, refusalLease)
}

// stageIssued has flush write what was issued at now, and the campaign's
// counters.
func stageIssued(t *sqldb.Tx, before, s stock, issued []firstcome.Coupon, now time.Time) {
	if len(issued) > 0 || s.line != before.line || phase(s, now) != phase(s, before.decidedAt) || s.Instants != before.Instants {
		s.decidedAt = now
	} else if !s.quarantineMoved {
		return // what the window answers is the same by the instant kept
	}
	for _, c := range issued {
		s.position++
		memoryOf(t).coupons = append(memoryOf(t).coupons, placed{c, s.position, now.UnixMicro()})
	}
	if len(issued) > 0 {
		memoryOf(t).touched[s.ID] = true // the facts are those between the last run and the campaign's position
	}
	memoryOf(t).stocks[s.ID] = s
	if _, dirty := memoryOf(t).dirty[s.ID]; !dirty {
		memoryOf(t).dirty[s.ID] = inRow{before.lastNumber, before.line}
	}
}
