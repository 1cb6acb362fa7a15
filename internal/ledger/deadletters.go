package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// A DeadLetter is what the ledger would not take, until an operator replays or
// voids it. Its coupon's stock stays taken until then.
type DeadLetter struct {
	ID        int64
	Campaign  firstcome.CampaignID // empty: the entry does not say
	Number    int64                // 0: the entry could not be read
	User      firstcome.UserID
	Source    string // names the entry
	Payload   string // the coupon as JSON, or the entry as it was found
	Cause     string
	CreatedAt time.Time
	SettledAt time.Time // zero while it is open
	SettledBy Settling
}

// A Settling is what an operator did with a dead letter.
type Settling string

// What an operator does with a dead letter.
const (
	Replayed Settling = "replayed" // its coupon is in the ledger
	Voided   Settling = "voided"   // its coupon never will be, and its stock returned
)

// Letters are a page of dead letters: those with an ID above After, at most
// Limit of them (0: all), of one campaign or of all, the settled ones too or not.
type Letters struct {
	Campaign firstcome.CampaignID // empty: of all
	After    int64
	Limit    int
	Settled  bool
}

// storedCoupon is a coupon as a dead letter keeps it.
type storedCoupon struct {
	Campaign     firstcome.CampaignID `json:"campaign_id"`
	Number       int64                `json:"number"`
	User         firstcome.UserID     `json:"user_id"`
	Code         string               `json:"code"`
	IssuedAt     int64                `json:"issued_at"` // microseconds since 1970
	TermsVersion int64                `json:"terms_version"`
	Epoch        int64                `json:"epoch"`
	// BuriedIn is the epoch that the campaign was in. A letter whose coupon was not
	// of another epoch then may be replayed in any.
	BuriedIn int64 `json:"buried_in"`
}

func (s storedCoupon) coupon() firstcome.Coupon {
	return firstcome.Coupon{
		Campaign: s.Campaign, Number: s.Number, User: s.User, Code: s.Code,
		IssuedAt: time.UnixMicro(s.IssuedAt).UTC(), TermsVersion: s.TermsVersion, Epoch: s.Epoch,
	}
}

func stored(c firstcome.Coupon) storedCoupon {
	return storedCoupon{
		Campaign: c.Campaign, Number: c.Number, User: c.User, Code: c.Code,
		IssuedAt: c.IssuedAt.UnixMicro(), TermsVersion: c.TermsVersion, Epoch: c.Epoch,
	}
}

// letterSource names the dead letter of a coupon, whichever way and however often
// it came.
func letterSource(c firstcome.Coupon) string {
	s := stored(c)
	s.Epoch = 0
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers are always JSON
	}
	return fmt.Sprintf(couponSource+"%x", sha256.Sum256(text))
}

// couponSource begins the source of every letter of a coupon.
const couponSource = "coupon/"

// Bury keeps dead letters of a campaign, all or none of them, and returns how far
// the campaign is settled then: see Record. To bury one again is the same as once,
// and a coupon that has come into the ledger meanwhile is not buried. One whose number is another
// coupon in the ledger is named each time: see flow.Settled.Twice.
func (l *Ledger) Bury(ctx context.Context, id firstcome.CampaignID, letters []flow.DeadLetter) (flow.Settled, error) {
	var settled flow.Settled
	err := l.repeat(ctx, func(t *tx) (err error) {
		settled, err = l.bury(t, id, letters)
		return l.ofOne(err)
	})
	if err != nil {
		return flow.Settled{}, fmt.Errorf("bury %d dead letters of %s: %w", len(letters), id, err)
	}
	return settled, nil
}

func (l *Ledger) bury(t *tx, id firstcome.CampaignID, letters []flow.DeadLetter) (flow.Settled, error) {
	r, err := l.recordingOf(t, id)
	known := !errors.Is(err, firstcome.ErrNoCampaign)
	if err != nil && known {
		return flow.Settled{}, err
	}
	now, err := l.now(t)
	if err != nil {
		return flow.Settled{}, err
	}
	var marker string
	if known {
		marker = r.marker
	}
	for _, letter := range letters {
		if err := foreign([]firstcome.Coupon{letter.Coupon}, marker); err != nil {
			return flow.Settled{}, err
		}
		row := DeadLetter{Campaign: id, Cause: letter.Cause, CreatedAt: now}
		if letter.Coupon.Number == 0 && letter.Coupon.User == "" {
			row.Source, row.Payload = letter.Garbage.Source, letter.Garbage.Payload
		} else if err := row.hold(letter.Coupon, r); err != nil {
			return flow.Settled{}, err
		}
		var order int64
		if known {
			order = r.letters + 1
		}
		unrecorded, twice, err := t.bury(row, order)
		switch {
		case err != nil:
			return flow.Settled{}, err
		case known && unrecorded:
			r.unrecorded = append(r.unrecorded, row.Number)
		case twice:
			r.twice = append(r.twice, row.Number)
		}
	}
	if !known {
		return flow.Settled{}, nil
	}
	return r.do()
}

// hold makes the letter that of a coupon.
func (d *DeadLetter) hold(c firstcome.Coupon, r *recording) error {
	s := stored(c)
	if r != nil {
		s.BuriedIn = r.epoch
	}
	text, err := json.Marshal(s)
	d.User, d.Source, d.Payload = c.User, letterSource(c), string(text)
	if c.Campaign == d.Campaign {
		d.Number = max(c.Number, 0)
	}
	return err
}

// bury inserts a letter that is not there, with the order of the letters of its
// campaign from then on. unrecorded tells that it is new and has a number that is no coupon, twice
// that its number is another coupon.
func (t *tx) bury(d DeadLetter, order int64) (unrecorded, twice bool, err error) {
	if d.Number > 0 {
		// Another node may have recorded it since it was refused here.
		known, err := t.coupon(d.Campaign, d.Number)
		if err == nil && letterSource(known) == d.Source {
			return false, false, nil
		}
		unrecorded = errors.Is(err, firstcome.ErrNoCoupon)
		if err != nil && !unrecorded {
			return false, false, err
		}
		twice = !unrecorded
	}
	exists, err := t.exists(`SELECT count(*) FROM dead_letters WHERE source = ?`, d.Source)
	if err != nil || exists {
		return false, twice, err
	}
	if !unrecorded {
		order = 0
	}
	_, err = t.change(`INSERT INTO dead_letters (campaign_id, number, user_id, source, payload, cause, created_at, letters_order)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		null(string(d.Campaign)), sql.NullInt64{Int64: d.Number, Valid: d.Number > 0},
		null(storable(string(d.User), firstcome.MaxUserID)), d.Source,
		storable(d.Payload, maxPayload), storable(d.Cause, maxCause), d.CreatedAt.UnixMicro(), order)
	return unrecorded, twice, err
}

// null returns a column's text, NULL if there is none.
func null(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

func (t *tx) exists(query string, args ...any) (bool, error) {
	var n int64
	err := t.row(query, args...).Scan(&n)
	return n > 0, err
}

const (
	// maxPayload keeps what an entry held within the smallest text column of the
	// databases, 65,535 bytes.
	maxPayload = 60_000
	maxCause   = 1000
)

// storable returns text that every database takes: well-formed, without NUL, and
// at most limit bytes long.
func storable(text string, limit int) string {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		text = strconv.QuoteToASCII(text)
	}
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

// lettersOf returns the sources of the dead letters whose numbers are those of coupons.
func (r *recording) lettersOf(coupons []firstcome.Coupon) (map[int64][]string, error) {
	letters := map[int64][]string{}
	for _, run := range runs(coupons) {
		rows, err := r.query(`SELECT number, source FROM dead_letters WHERE campaign_id = ? AND number >= ? AND number <= ?`,
			string(r.ID), run[0].Number, run[len(run)-1].Number)
		if err != nil {
			return nil, err
		}
		for rows.Next() && err == nil {
			var number int64
			var source string
			err = rows.Scan(&number, &source)
			letters[number] = append(letters[number], source)
		}
		if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return letters, nil
}

const letterColumns = `id, campaign_id, number, user_id, source, payload, cause, created_at, settled_at, settled_by`

func scanLetter(scan func(...any) error) (DeadLetter, error) {
	var d DeadLetter
	var campaign, user, settledBy sql.NullString
	var number, createdAt, settledAt sql.NullInt64
	err := scan(&d.ID, &campaign, &number, &user, &d.Source, &d.Payload, &d.Cause, &createdAt, &settledAt, &settledBy)
	d.Campaign, d.User, d.SettledBy = firstcome.CampaignID(campaign.String), firstcome.UserID(user.String), Settling(settledBy.String)
	d.Number, d.CreatedAt, d.SettledAt = number.Int64, instant(createdAt), instant(settledAt)
	return d, err
}

// DeadLetters returns a page of dead letters in the order in which they came.
func (l *Ledger) DeadLetters(ctx context.Context, p Letters) ([]DeadLetter, error) {
	return l.read.deadLetters(ctx, p)
}

func (p *pool) deadLetters(ctx context.Context, page Letters) ([]DeadLetter, error) {
	query, args := `SELECT `+letterColumns+` FROM dead_letters WHERE id > ?`, []any{page.After}
	if page.Campaign != "" {
		query, args = query+` AND campaign_id = ?`, append(args, string(page.Campaign))
	}
	if !page.Settled {
		query += ` AND settled_at IS NULL`
	}
	query += ` ORDER BY id`
	if page.Limit > 0 {
		query, args = query+` LIMIT ?`, append(args, page.Limit)
	}
	rows, err := p.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the dead letters: %w", err)
	}
	defer rows.Close()
	var all []DeadLetter
	for rows.Next() {
		d, err := scanLetter(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("read the dead letters: %w", err)
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

// DeadLetter returns a dead letter, or firstcome.ErrNoDeadLetter.
func (l *Ledger) DeadLetter(ctx context.Context, id int64) (DeadLetter, error) {
	found, err := l.conclude.deadLetters(ctx, Letters{After: id - 1, Limit: 1, Settled: true})
	if err != nil {
		return DeadLetter{}, err
	}
	if len(found) == 0 || found[0].ID != id {
		return DeadLetter{}, firstcome.ErrNoDeadLetter
	}
	return found[0], nil
}
