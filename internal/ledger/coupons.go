package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/firstcome/firstcome"
)

const couponColumns = `campaign_id, number, user_id, code, terms_version, issued_at, voided_at`

// scanCoupons calls each with the coupon of every row, until it returns an error. What else a
// row has is scanned into more.
func scanCoupons(rows *sql.Rows, each func(firstcome.Coupon) error, more ...any) error {
	var c firstcome.Coupon
	var issuedAt, voidedAt sql.NullInt64
	into := append([]any{&c.Campaign, &c.Number, &c.User, &c.Code, &c.TermsVersion, &issuedAt, &voidedAt}, more...)
	for rows.Next() {
		c = firstcome.Coupon{Recorded: true}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		c.IssuedAt, c.VoidedAt = instant(issuedAt), instant(voidedAt)
		if err := each(c); err != nil {
			return err
		}
	}
	return rows.Err()
}

// coupon returns the coupon of a number, or ErrNoCoupon.
func (t *tx) coupon(id firstcome.CampaignID, number int64) (firstcome.Coupon, error) {
	rows, err := t.query(`SELECT `+couponColumns+` FROM coupons WHERE campaign_id = ? AND number = ?`, id, number)
	if err != nil {
		return firstcome.Coupon{}, err
	}
	return only(rows)
}

// only returns the coupon of the one row, or ErrNoCoupon.
func only(rows *sql.Rows) (firstcome.Coupon, error) {
	defer rows.Close()
	var found firstcome.Coupon
	err := scanCoupons(rows, func(c firstcome.Coupon) error {
		found = c
		return nil
	})
	if err == nil && found.Number == 0 {
		err = firstcome.ErrNoCoupon
	}
	return found, err
}

// CouponOf returns the coupon in force that a user holds of a campaign, or ErrNoCoupon.
func (l *Ledger) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	rows, err := l.conclude.QueryContext(ctx, l.dialect.couponOf, user, id)
	if err != nil {
		return firstcome.Coupon{}, fmt.Errorf("read a coupon of %s: %w", id, err)
	}
	return only(rows)
}

// A Page is a part of a campaign's coupons: those with numbers above After, at
// most Limit of them (0: all), and the voided ones too or not.
type Page struct {
	After  int64
	Limit  int
	Voided bool
}

// Coupons calls each with the coupons of a page, in number order, as they are at
// one instant, until it returns an error.
func (l *Ledger) Coupons(ctx context.Context, id firstcome.CampaignID, p Page, each func(firstcome.Coupon) error) error {
	return l.Export(ctx, id, p, func(c firstcome.Coupon, _ string) error { return each(c) })
}

// Export is Coupons that also tells why each was voided, "" of one in force.
func (l *Ledger) Export(ctx context.Context, id firstcome.CampaignID, p Page, each func(c firstcome.Coupon, reason string) error) error {
	if p.Limit == 0 {
		p.Limit = math.MaxInt
	}
	rows, err := l.read.QueryContext(ctx, `SELECT `+couponColumns+`, void_reason FROM coupons
		WHERE campaign_id = ? AND number > ? AND (? OR voided_at IS NULL) ORDER BY number LIMIT ?`, id, p.After, p.Voided, p.Limit)
	if err != nil {
		return fmt.Errorf("read the coupons of %s: %w", id, err)
	}
	defer rows.Close()
	var reason sql.NullString
	err = scanCoupons(rows, func(c firstcome.Coupon) error { return each(c, reason.String) }, &reason)
	if err != nil {
		return fmt.Errorf("read the coupons of %s: %w", id, err)
	}
	return nil
}

// Wallet returns at most limit coupons in force of a user, in the order of their
// campaigns' ids, from the campaign behind after on.
func (l *Ledger) Wallet(ctx context.Context, user firstcome.UserID, after firstcome.CampaignID, limit int) ([]firstcome.Coupon, error) {
	rows, err := l.conclude.QueryContext(ctx, `SELECT `+couponColumns+` FROM coupons
		WHERE `+l.dialect.holder+` = ? AND campaign_id > ? AND voided_at IS NULL ORDER BY campaign_id LIMIT ?`, user, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read a wallet: %w", err)
	}
	defer rows.Close()
	var coupons []firstcome.Coupon
	err = scanCoupons(rows, func(c firstcome.Coupon) error {
		coupons = append(coupons, c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read a wallet: %w", err)
	}
	return coupons, nil
}

// Facts calls each with at most limit facts of a campaign with positions above
// after, in their order, until it returns an error. If the ledger has lost the
// coupon of a fact, which is a breach, the fact has its number only.
func (l *Ledger) Facts(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	snapshot, err := l.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("read the facts of %s: %w", id, err)
	}
	defer func() { _ = snapshot.Rollback() }()
	if err := facts(ctx, snapshot, id, after, limit, each); err != nil {
		return fmt.Errorf("read the facts of %s: %w", id, err)
	}
	return nil
}

// A run is count facts of one kind from position on about the numbers from number on.
type run struct {
	position, count, number int64
	kind                    firstcome.FactKind
}

// possible tells whether its positions and numbers are ones.
func (r run) possible() bool {
	return min(r.position, r.count, r.number) >= 1 && max(r.position, r.number) <= math.MaxInt64-r.count
}

// openRun returns the run behind the last position that a run in the ledger holds,
// up to the campaign's position. Its facts are the latest issues, up to the last
// number, so that issuing need not write it.
func openRun(last, position, lastNumber int64) run {
	count := position - last
	return run{last + 1, count, lastNumber - count + 1, firstcome.CouponIssued}
}

func facts(ctx context.Context, snapshot *snapshot, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	after = max(after, 0)
	for limit > 0 && after < math.MaxInt64 { // the largest position has none behind it
		r, err := runAt(ctx, snapshot, id, after+1)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		skip := after + 1 - r.position
		want := run{after + 1, min(r.count-skip, int64(limit)), r.number + skip, r.kind}
		rows, err := snapshot.QueryContext(ctx, `SELECT `+couponColumns+` FROM coupons
			WHERE campaign_id = ? AND number >= ? AND number < ? ORDER BY number`, id, want.number, want.number+want.count)
		if err != nil {
			return err
		}
		err = want.tell(ctx, id, rows, each)
		rows.Close()
		if err != nil {
			return err
		}
		after, limit = after+want.count, limit-int(want.count)
	}
	return nil
}

// runAt returns the run that holds a position, or sql.ErrNoRows.
func runAt(ctx context.Context, snapshot *snapshot, id firstcome.CampaignID, position int64) (run, error) {
	var r run
	err := snapshot.QueryRowContext(ctx, `SELECT position, count, kind, number FROM facts
		WHERE campaign_id = ? AND position <= ? ORDER BY position DESC LIMIT 1`, id, position).Scan(&r.position, &r.count, &r.kind, &r.number)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return run{}, err
	}
	if err == nil && !r.possible() {
		return run{}, fmt.Errorf("the run of facts at position %d cannot be", r.position)
	}
	if err == nil && position < r.position+r.count {
		return r, nil
	}
	last := int64(0)
	if err == nil {
		last = r.position + r.count - 1
	}
	var top, lastNumber int64
	err = snapshot.QueryRowContext(ctx, `SELECT position, last_number FROM campaigns WHERE id = ?`, id).Scan(&top, &lastNumber)
	if err == nil && position > top {
		err = sql.ErrNoRows
	}
	return openRun(last, top, lastNumber), err
}

// NewFacts returns a channel that is closed when the campaign has new facts.
// Whoever asks for facts, finds none, and wants to wait asks for it first. forget
// must be called when nobody waits any more.
func (l *Ledger) NewFacts(id firstcome.CampaignID) (news <-chan struct{}, forget func()) {
	c := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters[id] == nil {
		l.waiters[id] = map[chan struct{}]bool{}
	}
	l.waiters[id][c] = true
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiters[id], c)
		if len(l.waiters[id]) == 0 {
			delete(l.waiters, id)
		}
	}
}

// announce tells who waits for facts of the campaigns.
func (l *Ledger) announce(touched map[firstcome.CampaignID]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiters) == 0 {
		return
	}
	for id := range touched {
		for c := range l.waiters[id] {
			close(c)
		}
		delete(l.waiters, id)
	}
}
