package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
)

// A Status is a campaign with its counters at one instant.
type Status struct {
	firstcome.Campaign
	InForce  int64     // coupons in force
	Issued   int64     // coupons ever issued, voided ones too
	Recorded int64     // those of them that the ledger has
	Position int64     // of the last fact
	Now      time.Time // the gate's time

	Gate       string // the name of what decides
	Applied    int64  // the last change that the gate has: less than Version while one is on its way
	Epoch      int64  // of the gate
	Settled    int64  // see flow.Settled; 0 where the ledger decides
	LastNumber int64  // the highest that the ledger has
	// RetiredAt is when the gate forgot the campaign, so that the ledger answers; zero: it did not.
	RetiredAt time.Time
	// Change is the version that the call which returned this made; 0: it changed nothing.
	Change int64
}

// Remote tells whether another gate than the ledger decides the campaign's claims.
func (s *Status) Remote() bool { return s.Gate != gateKind }

// firstEpoch is the epoch of a campaign whose gate has never lost anything.
const firstEpoch = 1

// Create makes a campaign. ErrCampaignExists says that there is one with its id,
// a joined FieldError that its terms may not stand.
func (l *Ledger) Create(ctx context.Context, actor string, id firstcome.CampaignID, terms firstcome.Terms) (Status, error) {
	if err := terms.Check(); err != nil {
		return Status{}, err
	}
	payload, err := encodeTerms(terms)
	if err != nil {
		return Status{}, err
	}
	err = l.update(ctx, func(t *tx) error {
		var exists bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM campaigns WHERE id = ?)`, id).Scan(&exists); err != nil {
			return err
		}
		if exists {
			return firstcome.ErrCampaignExists
		}
		now, err := l.now(t)
		if err != nil {
			return err
		}
		_, err = t.change(`INSERT INTO campaigns
			(id, quantity, opens_at, closes_at, version, terms_version, applied, gate, epoch, secret, decided_at, created_at)
			VALUES (?, ?, ?, ?, 1, 1, ?, ?, ?, ?, ?, ?)`,
			id, quantityColumn(terms.Quantity), micros(terms.OpensAt), micros(terms.ClosesAt),
			l.appliedAt(1), l.gate, firstEpoch, l.fingerprint, now.UnixMicro(), now.UnixMicro())
		if err != nil {
			return err
		}
		if err := t.insertChange(id, 1, firstcome.ChangeTerms, payload, now); err != nil {
			return err
		}
		return t.log(now, actor, "campaign.create", entry{campaign: id, detail: payload})
	})
	if err != nil {
		return Status{}, fmt.Errorf("create the campaign %s: %w", id, err)
	}
	return l.Campaign(ctx, id)
}

// SetTerms changes a campaign's terms by edit, which may run more than once. If
// version is not 0 and the campaign has another, it is ErrStale.
// ErrBelowInForce and ErrClosed say that the change is not allowed, ErrPending that
// an earlier one has to reach the gate first.
//
// With a remote gate the change is made when Applied says that the gate has it.
// Until then a lower quantity, and the terms it comes with, are only proposed:
// the gate may refuse it, because it has more in force than the ledger knows.
func (l *Ledger) SetTerms(ctx context.Context, actor string, id firstcome.CampaignID, version int64, edit func(*firstcome.Terms) error) (Status, error) {
	var made int64
	err := l.change(ctx, id, func(t *tx, s stock) (err error) {
		made, err = l.setTerms(t, s, actor, version, edit)
		return err
	})
	if err != nil {
		return Status{}, fmt.Errorf("change the terms of %s: %w", id, err)
	}
	return l.changed(ctx, id, made)
}

// changed returns the campaign after a call made a change, or none.
func (l *Ledger) changed(ctx context.Context, id firstcome.CampaignID, made int64) (Status, error) {
	s, err := l.Campaign(ctx, id)
	s.Change = made
	return s, err
}

// setTerms is SetTerms in its transaction; it returns the change's version.
func (l *Ledger) setTerms(t *tx, s stock, actor string, version int64, edit func(*firstcome.Terms) error) (int64, error) {
	if version != 0 && version != s.Version {
		return 0, firstcome.ErrStale
	}
	if s.Closed {
		return 0, firstcome.ErrClosed
	}
	before, err := t.terms(s.ID, s.termsVersion)
	if err != nil {
		return 0, err
	}
	terms, err := decodeTerms(before)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(edit(&terms), terms.Check()); err != nil {
		return 0, err
	}
	if terms.Quantity < s.inForce {
		return 0, fmt.Errorf("%w: %d are", firstcome.ErrBelowInForce, s.inForce)
	}
	payload, err := encodeTerms(terms)
	if err != nil || payload == before {
		return 0, err
	}
	made, err := l.addChange(t, s, firstcome.ChangeTerms, payload)
	if err != nil {
		return 0, err
	}
	if err := t.holdReturned(s, terms, made.At); err != nil {
		return 0, err
	}
	if proposed := l.remote() && terms.Quantity < s.Quantity; !proposed {
		if err := t.putTerms(s.ID, terms, made.Version); err != nil {
			return 0, err
		}
	}
	return made.Version, t.log(made.At, actor, "campaign.update", entry{campaign: s.ID, detail: payload})
}

// putTerms makes the terms of a version effective.
func (t *tx) putTerms(id firstcome.CampaignID, terms firstcome.Terms, version int64) error {
	_, err := t.change(`UPDATE campaigns SET quantity = ?, opens_at = ?, closes_at = ?, terms_version = ? WHERE id = ?`,
		quantityColumn(terms.Quantity), micros(terms.OpensAt), micros(terms.ClosesAt), version, string(id))
	return err
}

// A Switch is a change of a campaign without terms.
type Switch string

// The switches.
const (
	Pause  Switch = "pause"  // claims get paused
	Resume Switch = "resume" // ends a pause
	Close  Switch = "close"  // for good
)

// Switch pauses, resumes or closes a campaign. To do so twice is the same as
// once. A closed campaign can only be closed: else it is ErrClosed. ErrPending
// says that an earlier change has to reach the gate first.
func (l *Ledger) Switch(ctx context.Context, actor string, id firstcome.CampaignID, to Switch) (Status, error) {
	var version int64
	err := l.change(ctx, id, func(t *tx, s stock) error {
		version = 0
		if s.Closed && to != Close {
			return firstcome.ErrClosed
		}
		paused, closed := to == Pause || to == Close && s.Paused, s.Closed || to == Close
		if paused == s.Paused && closed == s.Closed {
			return nil
		}
		made, err := l.addChange(t, s, firstcome.ChangeKind(to), "{}")
		if err != nil {
			return err
		}
		version = made.Version
		if _, err := t.change(`UPDATE campaigns SET paused = ?, closed = ? WHERE id = ?`, paused, closed, string(id)); err != nil {
			return err
		}
		return t.log(made.At, actor, "campaign."+string(to), entry{campaign: id, detail: "{}"})
	})
	if err != nil {
		return Status{}, fmt.Errorf("%s the campaign %s: %w", to, id, err)
	}
	return l.changed(ctx, id, version)
}

// Void takes a coupon back: its stock returns, its number is never given again,
// and its user may claim again. ErrNoCoupon and ErrAlreadyVoided say that
// nothing was done. So does ErrNotRecorded: the ledger does not have the number, and
// only the gate's last number tells whether it may come. ErrPending says that an
// earlier change has to reach the gate first.
func (l *Ledger) Void(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (firstcome.Coupon, error) {
	var voided firstcome.Coupon
	err := l.change(ctx, id, func(t *tx, s stock) (err error) {
		voided, err = l.void(t, s, actor, number, reason)
		return err
	})
	if err != nil {
		return firstcome.Coupon{}, fmt.Errorf("void number %d of %s: %w", number, id, err)
	}
	return voided, nil
}

// void is Void in its transaction.
func (l *Ledger) void(t *tx, s stock, actor string, number int64, reason string) (firstcome.Coupon, error) {
	c, err := t.coupon(s.ID, number)
	if errors.Is(err, firstcome.ErrNoCoupon) && l.remote() {
		err = t.notRecorded(s, number)
	}
	if err != nil {
		return c, err
	}
	if !c.VoidedAt.IsZero() {
		return c, firstcome.ErrAlreadyVoided
	}
	if err := t.addVoidFact(s, number); err != nil {
		return c, err
	}
	made, err := l.addChange(t, s, firstcome.ChangeVoid, voidPayload(number, c.User))
	if err != nil {
		return c, err
	}
	if err := t.holdVoided(s, made.At); err != nil {
		return c, err
	}
	c.VoidedAt = made.At
	_, err = t.change(`UPDATE coupons SET voided_at = ?, void_reason = ? WHERE campaign_id = ? AND number = ?`,
		made.At.UnixMicro(), reason, string(s.ID), number)
	if err != nil {
		return c, err
	}
	_, err = t.change(`UPDATE campaigns SET in_force = ?, position = ? WHERE id = ?`, s.inForce-1, s.position+1, string(s.ID))
	if err != nil {
		return c, err
	}
	return c, t.logReason(made.At, actor, "coupon.void", reason, entry{campaign: s.ID, user: c.User, number: number})
}

// voidPayload is what the change of a void holds.
func voidPayload(number int64, user firstcome.UserID) string {
	text, err := json.Marshal(storedVoid{number, user})
	if err != nil {
		panic(err) // a number and a string are always JSON
	}
	return string(text)
}

// A storedVoid is a void as the ledger keeps it among the changes.
type storedVoid struct {
	Number int64            `json:"number"`
	User   firstcome.UserID `json:"user_id"`
}

// change has the writer do a change of a campaign, which is in the state s. It
// returns when the change is done or refused, and not because ctx ended: whoever
// encloses it in Issuer.Change must not let leases be granted again before a change
// that may yet come.
func (l *Ledger) change(ctx context.Context, id firstcome.CampaignID, do func(t *tx, s stock) error) error {
	return l.locked(ctx, id, func(t *tx, s stock) error {
		if s.pending() {
			return fmt.Errorf("%w: it has %d of %d", firstcome.ErrPending, s.applied, s.Version)
		}
		return do(t, s)
	})
}

// locked is change also while the gate lacks changes.
func (l *Ledger) locked(ctx context.Context, id firstcome.CampaignID, do func(t *tx, s stock) error) error {
	return l.update(context.WithoutCancel(ctx), func(t *tx) error {
		s, err := l.stock(t, id)
		if err != nil {
			return err
		}
		if err := t.flush(); err != nil {
			return err
		}
		delete(t.stocks, id)
		return do(t, s)
	})
}

// An entry is what a line of the audit log is about.
type entry struct {
	campaign firstcome.CampaignID
	user     firstcome.UserID
	number   int64
	detail   string // JSON
}

func (t *tx) log(at time.Time, actor, action string, e entry) error {
	_, err := t.change(`INSERT INTO audit_log (at, actor, action, campaign_id, user_id, number, detail)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		at.UnixMicro(), actor, action, nullable(e.campaign), nullable(e.user), nullable(e.number), e.detail)
	return err
}

// nullable returns the column of a value of which the zero value is none.
func nullable[V comparable](v V) any {
	var none V
	if v == none {
		return nil
	}
	return v
}

// logReason is log with the reason that an operator gave.
func (t *tx) logReason(at time.Time, actor, action, reason string, e entry) error {
	detail, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		return err
	}
	e.detail = string(detail)
	return t.log(at, actor, action, e)
}

// addVoidFact adds the fact that a number was voided, behind the run of those
// issued since the last void, which is written only now.
func (t *tx) addVoidFact(s stock, number int64) error {
	t.touched[s.ID] = true
	var last int64 // position that a run holds
	err := t.row(`SELECT position + count - 1 FROM facts WHERE campaign_id = ? ORDER BY position DESC LIMIT 1`, s.ID).Scan(&last)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	runs := []run{openRun(last, s.position, s.lastNumber), {s.position + 1, 1, number, firstcome.CouponVoided}}
	for _, r := range runs {
		if r.count == 0 {
			continue
		}
		if err := t.addFacts(s.ID, r); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) addFacts(id firstcome.CampaignID, r run) error {
	_, err := t.change(`INSERT INTO facts (campaign_id, position, count, kind, number) VALUES (?, ?, ?, ?, ?)`,
		string(id), r.position, r.count, string(r.kind), r.number)
	return err
}

func (t *tx) terms(id firstcome.CampaignID, version int64) (payload string, err error) {
	err = t.row(`SELECT payload FROM changes WHERE campaign_id = ? AND version = ?`, id, version).Scan(&payload)
	return payload, err
}

// statusQuery returns the query of campaigns' statuses, up to its WHERE.
func (d *dialect) statusQuery() string {
	return `SELECT c.id, c.paused, c.closed, c.version, c.in_force, c.issued, c.position, c.decided_at, c.created_at,
	c.gate, c.applied, c.epoch, c.settled, c.last_number, c.retired_at, t.payload, ` + d.clock + `
	FROM campaigns c JOIN changes t ON t.campaign_id = c.id AND t.version = c.terms_version `
}

// Campaign returns a campaign, or ErrNoCampaign.
func (l *Ledger) Campaign(ctx context.Context, id firstcome.CampaignID) (Status, error) {
	rows, err := l.read.QueryContext(ctx, l.dialect.statusQuery()+`WHERE c.id = ?`, id)
	if err != nil {
		return Status{}, fmt.Errorf("read the campaign %s: %w", id, err)
	}
	all, err := l.scanStatuses(rows)
	if err != nil {
		return Status{}, fmt.Errorf("read the campaign %s: %w", id, err)
	}
	if len(all) == 0 {
		return Status{}, firstcome.ErrNoCampaign
	}
	return all[0], nil
}

// Campaigns returns at most limit campaigns in the order of their ids, from the
// one behind after on.
func (l *Ledger) Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]Status, error) {
	rows, err := l.read.QueryContext(ctx, l.dialect.statusQuery()+`WHERE c.id > ? ORDER BY c.id LIMIT ?`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the campaigns: %w", err)
	}
	all, err := l.scanStatuses(rows)
	if err != nil {
		return nil, fmt.Errorf("read the campaigns: %w", err)
	}
	return all, nil
}

func (l *Ledger) scanStatuses(rows *sql.Rows) ([]Status, error) {
	defer rows.Close()
	var all []Status
	for rows.Next() {
		var s Status
		var decidedAt, createdAt, retiredAt, clock sql.NullInt64
		var payload string
		err := rows.Scan(&s.ID, &s.Paused, &s.Closed, &s.Version, &s.InForce, &s.Issued, &s.Position, &decidedAt, &createdAt,
			&s.Gate, &s.Applied, &s.Epoch, &s.Settled, &s.LastNumber, &retiredAt, &payload, &clock)
		if err != nil {
			return nil, err
		}
		if s.Terms, err = decodeTerms(payload); err != nil {
			return nil, fmt.Errorf("the terms of %s: %w", s.ID, err)
		}
		s.Recorded, s.CreatedAt, s.RetiredAt = s.Issued, instant(createdAt), instant(retiredAt)
		if l.clock != nil {
			clock.Valid = false
		}
		s.Now = l.decidesAt(stock{decidedAt: instant(decidedAt), clock: instant(clock)})
		all = append(all, s)
	}
	return all, rows.Err()
}

// Terms returns the terms of a campaign as of a version, or ErrNoCampaign. They
// never change.
func (l *Ledger) Terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	var payload string
	err := l.read.QueryRowContext(ctx, `SELECT payload FROM changes
		WHERE campaign_id = ? AND version <= ? AND kind = 'terms' AND NOT refused ORDER BY version DESC LIMIT 1`, id, version).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		return firstcome.Terms{}, firstcome.ErrNoCampaign
	}
	if err != nil {
		return firstcome.Terms{}, fmt.Errorf("read the terms of %s: %w", id, err)
	}
	return decodeTerms(payload)
}

// storedTerms are terms as the ledger keeps them: a column's instants and durations.
type storedTerms struct {
	Name       string               `json:"name"`
	Quantity   *int64               `json:"quantity"`
	OpensAt    *int64               `json:"opens_at"`
	ClosesAt   *int64               `json:"closes_at"`
	Answer     firstcome.AnswerWhen `json:"answer"`
	Benefit    json.RawMessage      `json:"benefit"`
	ValidUntil *int64               `json:"valid_until"`
	ValidFor   *int64               `json:"valid_for"`
}

func encodeTerms(t firstcome.Terms) (string, error) {
	validFor := t.ValidFor.Microseconds()
	s := storedTerms{
		Name: t.Name, Answer: t.Answer, Benefit: t.Benefit,
		Quantity: pointer(quantityColumn(t.Quantity)),
		OpensAt:  pointer(micros(t.OpensAt)), ClosesAt: pointer(micros(t.ClosesAt)),
		ValidUntil: pointer(micros(t.ValidUntil)), ValidFor: pointer(sql.NullInt64{Int64: validFor, Valid: validFor != 0}),
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("the benefit is not JSON: %w", err)
	}
	return string(text), nil
}

func decodeTerms(payload string) (firstcome.Terms, error) {
	var s storedTerms
	if err := json.Unmarshal([]byte(payload), &s); err != nil {
		return firstcome.Terms{}, err
	}
	return firstcome.Terms{
		Name: s.Name, Answer: s.Answer, Benefit: s.Benefit, Quantity: unlimited(column(s.Quantity)),
		OpensAt: instant(column(s.OpensAt)), ClosesAt: instant(column(s.ClosesAt)), ValidUntil: instant(column(s.ValidUntil)),
		ValidFor: time.Duration(column(s.ValidFor).Int64) * time.Microsecond,
	}, nil
}

func quantityColumn(quantity int64) sql.NullInt64 {
	return sql.NullInt64{Int64: quantity, Valid: quantity != firstcome.Unlimited}
}

func pointer(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

func column(n *int64) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: *n, Valid: true}
}
