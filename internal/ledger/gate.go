package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
)

// refusalLease is how long a node may repeat a refusal: DESIGN's 200 ms, at most
// five calls of the gate a second for a campaign that is sold out.
const refusalLease = 200 * time.Millisecond

// ownLease is how long this process may repeat a coupon to its user: every
// change passes through it, and it forgets when one comes, so any long time does.
const ownLease = 24 * time.Hour

// gateKind is what a campaign whose claims are decided here says of its gate.
const gateKind = "ledger"

// Claim decides claims in one transaction: see flow.Gate. The coupons issued are
// on the disk when it returns.
func (l *Ledger) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	var decisions []firstcome.Decision
	err := l.update(ctx, func(t *tx) (err error) {
		decisions, err = l.decide(t, id, users)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("decide %d claims of %s: %w", len(users), id, err)
	}
	return decisions, nil
}

// Holders reads who holds a coupon in force: see flow.Gate.
func (l *Ledger) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	snapshot, err := l.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, fmt.Errorf("read the holders of %s: %w", id, err)
	}
	defer func() { _ = snapshot.Rollback() }()
	err = snapshot.QueryRowContext(ctx, `SELECT version FROM campaigns WHERE id = ?`, id).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, firstcome.ErrNoCampaign
	}
	if err != nil {
		return 0, fmt.Errorf("read the holders of %s: %w", id, err)
	}
	rows, err := snapshot.QueryContext(ctx, `SELECT user_id FROM coupons WHERE campaign_id = ? AND voided_at IS NULL`, id)
	if err != nil {
		return 0, fmt.Errorf("read the holders of %s: %w", id, err)
	}
	defer rows.Close()
	for rows.Next() {
		var user firstcome.UserID
		if err := rows.Scan(&user); err != nil {
			return 0, fmt.Errorf("read the holders of %s: %w", id, err)
		}
		each(user)
	}
	return version, rows.Err()
}

// A stock is the part of a campaign's row that decides.
type stock struct {
	firstcome.Campaign
	termsVersion int64
	inForce      int64
	issued       int64
	lastNumber   int64
	position     int64
	decidedAt    time.Time
}

const stockColumns = `quantity, opens_at, closes_at, paused, closed, version, terms_version,
	gate, secret, in_force, issued, last_number, position, decided_at`

// stock reads what decides the campaign's claims, and refuses a campaign that
// another gate or another secret decides.
func (l *Ledger) stock(t *tx, id firstcome.CampaignID) (stock, error) {
	s := stock{Campaign: firstcome.Campaign{ID: id}}
	var quantity, opensAt, closesAt, decidedAt sql.NullInt64
	var gate, secret string
	err := t.row(`SELECT `+stockColumns+` FROM campaigns WHERE id = ?`, id).Scan(
		&quantity, &opensAt, &closesAt, &s.Paused, &s.Closed, &s.Version, &s.termsVersion,
		&gate, &secret, &s.inForce, &s.issued, &s.lastNumber, &s.position, &decidedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return s, firstcome.ErrNoCampaign
	}
	if err != nil {
		return s, err
	}
	if gate != gateKind || secret != l.fingerprint {
		return s, fmt.Errorf("%w: it is decided by the gate %q with the secret of fingerprint %s, this node has the gate %q and %s",
			firstcome.ErrGateMismatch, gate, secret, gateKind, l.fingerprint)
	}
	s.Quantity = unlimited(quantity)
	s.OpensAt, s.ClosesAt, s.decidedAt = instant(opensAt), instant(closesAt), instant(decidedAt)
	return s, nil
}

// unlimited returns the quantity that a column holds.
func unlimited(quantity sql.NullInt64) int64 {
	if !quantity.Valid {
		return firstcome.Unlimited
	}
	return quantity.Int64
}

// decidesAt returns the gate's time for a campaign: the clock, in whole
// microseconds, unless the campaign has seen a later instant.
func (l *Ledger) decidesAt(s stock) time.Time {
	now := l.clock().UTC().Truncate(time.Microsecond)
	if now.Before(s.decidedAt) {
		return s.decidedAt
	}
	return now
}

// decide is Claim within the writer's transaction.
func (l *Ledger) decide(t *tx, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	s, err := l.stock(t, id)
	if err != nil {
		return nil, err
	}
	now := l.decidesAt(s)
	// Claimants are rarely holders while coupons are left: then the schema finds the
	// few in the insert, and the writer comes again to look first.
	holds := make(map[firstcome.UserID]firstcome.Coupon, len(users))
	everyoneIssued := firstcome.Decide(s.Campaign, now, s.inForce+int64(len(users))-1, false) == firstcome.Issued
	if t.lookFirst || !everyoneIssued {
		if err := t.couponsOf(id, users, holds); err != nil {
			return nil, err
		}
	}
	before := s
	decisions := make([]firstcome.Decision, len(users))
	var issued []firstcome.Coupon
	for n, user := range users {
		coupon, held := holds[user]
		outcome := firstcome.Decide(s.Campaign, now, s.inForce, held)
		if outcome == firstcome.Issued {
			coupon = l.issue(&s, user, now)
			holds[user] = coupon
			issued = append(issued, coupon)
		}
		decisions[n] = firstcome.Decision{Outcome: outcome, Coupon: coupon, At: now, Version: s.Version, Lease: lease(s, now, outcome)}
	}
	return decisions, t.keep(before, s, issued, now)
}

// issue takes one coupon from the stock.
func (l *Ledger) issue(s *stock, user firstcome.UserID, now time.Time) firstcome.Coupon {
	s.inForce++
	s.issued++
	s.lastNumber++
	return firstcome.Coupon{
		Campaign: s.ID, Number: s.lastNumber, User: user, Code: l.secret.Code(s.ID, s.lastNumber),
		IssuedAt: now, TermsVersion: s.termsVersion, Recorded: true,
	}
}

// lease returns how long a decision made at now may be repeated: none past the
// instant at which the window answers otherwise, and none for a pause, which an
// operator ends at any time.
func lease(s stock, now time.Time, o firstcome.Outcome) time.Duration {
	switch o {
	case firstcome.Issued, firstcome.AlreadyIssued:
		return ownLease
	case firstcome.NotOpen:
		return min(refusalLease, s.OpensAt.Sub(now))
	case firstcome.SoldOut:
		if !s.ClosesAt.IsZero() {
			return min(refusalLease, s.ClosesAt.Sub(now))
		}
		return refusalLease
	case firstcome.Closed:
		return refusalLease
	}
	return 0
}

// keep writes what was issued at now, and the campaign's counters.
func (t *tx) keep(before, s stock, issued []firstcome.Coupon, now time.Time) error {
	if len(issued) > 0 {
		s.position += int64(len(issued))
		if err := t.insertCoupons(issued, before.position+1); err != nil {
			return err
		}
		if err := t.addFacts(s.ID, before.position+1, len(issued), firstcome.CouponIssued, issued[0].Number); err != nil {
			return err
		}
	} else if phase(s, now) == phase(s, before.decidedAt) {
		return nil // what the window answers is the same by the instant kept
	}
	_, err := t.change(`UPDATE campaigns SET in_force = ?, issued = ?, last_number = ?, position = ?, decided_at = ? WHERE id = ?`,
		s.inForce, s.issued, s.lastNumber, s.position, now.UnixMicro(), s.ID)
	return err
}

// phase returns what the window alone answers at an instant.
func phase(s stock, at time.Time) firstcome.Outcome {
	return firstcome.Decide(firstcome.Campaign{Terms: firstcome.Terms{
		OpensAt: s.OpensAt, ClosesAt: s.ClosesAt, Quantity: math.MaxInt64,
	}}, at, 0, false)
}

// Widths of the statements that take many rows: the widest that fits is taken,
// again and again. A statement of 64 rows costs half as much a row as one of 1;
// wider ones gain nothing.
var widths = [...]int{64, 8, 1}

// inWidths calls do with the first and the end of each part of n rows.
func inWidths(n int, do func(from, width int) error) error {
	for from := 0; from < n; {
		for _, width := range widths {
			if from+width <= n {
				if err := do(from, width); err != nil {
					return err
				}
				from += width
				break
			}
		}
	}
	return nil
}

// repeated returns query with its %s replaced by width copies of part, with commas.
func repeated(query, part string, width int) string {
	return strings.Replace(query, "%s", part+strings.Repeat(","+part, width-1), 1)
}

// inEveryWidth returns, for each width, query with its %s replaced by as many parts.
func inEveryWidth(query, part string) map[int]string {
	queries := map[int]string{}
	for _, width := range widths {
		queries[width] = repeated(query, part, width)
	}
	return queries
}

const insertColumns = ` INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES %s`

// The two inserts differ in what a refused row takes along. OR ROLLBACK, the
// whole transaction: SQLite need not keep what it would take to undo the one
// statement, which is a quarter of the time of an insert.
var (
	insertOrRollbackQueries = inEveryWidth(`INSERT OR ROLLBACK`+insertColumns, `(?,?,?,?,?,?,?,?)`)
	insertQueries           = inEveryWidth(`INSERT`+insertColumns, `(?,?,?,?,?,?,?,?)`)
	lookQueries             = inEveryWidth(`SELECT `+couponColumns+` FROM coupons
		WHERE user_id IN (%s) AND campaign_id = ? AND voided_at IS NULL`, `?`)
)

// couponsOf adds the coupons in force that users hold to into.
func (t *tx) couponsOf(id firstcome.CampaignID, users []firstcome.UserID, into map[firstcome.UserID]firstcome.Coupon) error {
	args := make([]any, 0, widths[0]+1)
	return inWidths(len(users), func(from, width int) error {
		args = args[:0]
		for _, user := range users[from : from+width] {
			args = append(args, string(user))
		}
		rows, err := t.query(lookQueries[width], append(args, string(id))...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return scanCoupons(rows, func(c firstcome.Coupon) error {
			into[c.User] = c
			return nil
		})
	})
}

// insertCoupons inserts coupons with ascending numbers, whose facts have the
// positions from the given one on.
func (t *tx) insertCoupons(coupons []firstcome.Coupon, position int64) error {
	queries := insertOrRollbackQueries
	if t.savepoints {
		queries = insertQueries
	}
	args := make([]any, 0, widths[0]*8)
	return inWidths(len(coupons), func(from, width int) error {
		args = args[:0]
		for n, c := range coupons[from : from+width] {
			at := c.IssuedAt.UnixMicro()
			args = append(args, string(c.Campaign), c.Number, string(c.User), c.Code, c.TermsVersion, at, at, position+int64(from+n))
		}
		_, err := t.change(queries[width], args...)
		return err
	})
}
