package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A DeadLetter is a coupon or an entry that the ledger refused. It is open until an operator replays or voids
// it; until then its coupon takes stock.
type DeadLetter struct {
	ID         int64
	Campaign   firstcome.CampaignID // empty if unknown
	Number     int64                // 0 if the entry could not be read, or its number is invalid
	User       firstcome.UserID
	Source     string // identifies the coupon or the entry
	Payload    string // the coupon as JSON, or the unreadable entry
	Cause      string
	CauseCode  string // one of CauseCodes, for Cause
	CreatedAt  time.Time
	ResolvedAt time.Time // zero while it is open
	ResolvedBy Resolution
}

// A Resolution is what an operator did with a dead letter.
type Resolution string

// The resolutions.
const (
	Replayed Resolution = "replayed" // its coupon is in the ledger
	Voided   Resolution = "voided"   // its coupon will never be in the ledger, and its stock returned
)

// Letters selects a page of dead letters, in the order of their IDs.
type Letters struct {
	Campaign firstcome.CampaignID // if empty, of all campaigns
	Cause    string               // one of CauseCodes; if empty, any
	After    int64                // only IDs above this one
	Through  int64                // only IDs up to this one; if 0, there is no upper limit
	Limit    int                  // the most letters to return; if 0, all
	Resolved bool                 // also the resolved letters
}

// letterSource returns the source of a coupon's dead letter. It depends only on the coupon, so a coupon that arrives again, in
// any way, gets the same source.
func letterSource(c firstcome.Coupon) string {
	return fmt.Sprintf(couponSource+"%x", sha256.Sum256([]byte(campaign.JSON(campaign.StoredCouponOf(c, 0)))))
}

// couponSource is the prefix of the source of every coupon's dead letter.
const couponSource = "coupon/"

// Bury stores a batch's garbage and coupons as dead letters, in one transaction. The coupons get the given cause. Bury returns how
// far the campaign is then drained: see Record. Burying a coupon again changes nothing. Bury skips a coupon that the ledger has
// recorded since it refused it.
func (rc *Recorder) Bury(ctx context.Context, b record.Batch, cause string) (record.Result, error) {
	var drained record.Result
	err := rc.db.Repeat(ctx, func(t *sqldb.Tx) (err error) {
		drained, err = rc.bury(t, b, cause)
		return rc.ofOne(err)
	})
	if err != nil { // the writer may still be writing drained
		return record.Result{}, sqldb.Wrap(err, "bury %d dead letters of %s", len(b.Coupons)+len(b.Garbage), b.Campaign)
	}
	return drained, nil
}

func (rc *Recorder) bury(t *sqldb.Tx, b record.Batch, cause string) (record.Result, error) {
	r, err := rc.recordingOf(t, b)
	known := !errors.Is(err, firstcome.ErrNoCampaign)
	if err == nil {
		err = r.fence()
	}
	if err != nil && known {
		return record.Result{}, err
	}
	now, err := rc.db.Now(t)
	if err != nil {
		return record.Result{}, err
	}
	for _, g := range b.Garbage {
		if err := insertLetter(t, DeadLetter{Campaign: b.Campaign, Source: g.Source, Payload: g.Payload, Cause: g.Cause, CreatedAt: now}); err != nil {
			return record.Result{}, err
		}
	}
	for _, c := range b.Coupons {
		d := DeadLetter{Campaign: b.Campaign, User: c.User, Source: letterSource(c), Cause: cause, CreatedAt: now}
		s := campaign.StoredCouponOf(c, b.Epoch)
		// The gate may have assigned this number. A number above the ceiling is forged or damaged, and must not raise last_number. A number of an
		// ended epoch has its fate already, or it may be another user's in this epoch.
		if known && c.Number <= r.Ceiling && b.Epoch == r.Epoch {
			s.BuriedIn = r.Epoch
			if c.Campaign == b.Campaign {
				d.Number = max(c.Number, 0)
			}
		}
		d.Payload = campaign.JSON(s)
		if err := buryCoupon(t, r, d, c); err != nil {
			return record.Result{}, err
		}
	}
	if !known {
		return record.Result{}, nil
	}
	return r.do()
}

// buryCoupon inserts a coupon's dead letter, unless the ledger has the coupon.
func buryCoupon(t *sqldb.Tx, r *recording, d DeadLetter, c firstcome.Coupon) error {
	if d.Number > 0 {
		// Another node may have recorded the coupon since the ledger refused it.
		switch known, err := campaign.CouponAt(t, d.Campaign, d.Number); {
		case err == nil && letterSource(known) == d.Source:
			return nil
		case err == nil:
			r.Twice = true
		case !errors.Is(err, firstcome.ErrNoCoupon):
			return err
		}
		r.Letters = append(r.Letters, c)
	}
	return insertLetter(t, d)
}

// insertLetter inserts a dead letter, unless one with the same source exists.
func insertLetter(t *sqldb.Tx, d DeadLetter) error {
	exists, err := t.Exists(`SELECT count(*) FROM dead_letters WHERE source = ?`, d.Source)
	if err == nil && !exists && d.Number > 0 {
		_, err = t.Change(`UPDATE campaigns SET dead_letters = dead_letters + 1 WHERE id = ?`, string(d.Campaign))
	}
	if err != nil || exists {
		return err
	}
	_, err = t.Change(`INSERT INTO dead_letters (campaign_id, number, user_id, source, payload, cause, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		null(string(d.Campaign)), sql.NullInt64{Int64: d.Number, Valid: d.Number > 0},
		null(storable(string(d.User), firstcome.MaxUserID)), d.Source,
		storable(d.Payload, maxPayload), storable(d.Cause, maxCause), d.CreatedAt.UnixMicro())
	return err
}

// null returns the column value of a text: NULL if the text is empty.
func null(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

const (
	// maxPayload is the maximum size of a payload in bytes. The smallest text column of the databases holds 65,535 bytes.
	maxPayload = 60_000
	maxCause   = 1000
)

// storable changes a text so that every database accepts it: valid UTF-8, without NUL, and at most limit bytes long.
func storable(text string, limit int) string {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		text = strconv.QuoteToASCII(text)
	}
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

// lettersOf returns, for each number of the coupons, the sources of the dead letters with this number.
func (r *recording) lettersOf(coupons []firstcome.Coupon) (map[int64][]string, error) {
	letters := map[int64][]string{}
	for _, run := range runs(coupons) {
		if run[0].Number > r.LastNumber {
			break // no dead letter has a number above lastNumber
		}
		rows, err := r.Query(`SELECT number, source FROM dead_letters WHERE campaign_id = ? AND number >= ? AND number <= ?`,
			string(r.ID), run[0].Number, run[len(run)-1].Number)
		err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
			var number int64
			var source string
			err := take(&number, &source)
			letters[number] = append(letters[number], source)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// tellAtOnce bounds the dead letters in one answer. A gate takes some milliseconds to flag so many.
const tellAtOnce = 1000

// tell adds to Letters the dead letters up to Through that the gate may not know. If there are more than tellAtOnce, it lowers
// Through.
func (r *recording) tell() error {
	if r.DeadLetters == 0 && len(r.Letters) == 0 || r.LettersKnownThrough >= r.Through {
		return nil
	}
	rows, err := r.Query(`SELECT number, user_id FROM dead_letters WHERE campaign_id = ? AND number > ? AND number <= ?
		AND (resolved_by IS NULL OR resolved_by <> ?) ORDER BY number `+r.Dialect.Limit, string(r.ID), r.LettersKnownThrough, r.Through, string(Replayed), tellAtOnce+1)
	letters, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (firstcome.Coupon, error) {
		c := firstcome.Coupon{Campaign: r.ID}
		err := take(&c.Number, sqldb.OrZero(&c.User))
		return c, err
	})
	if len(letters) > tellAtOnce {
		r.Through = letters[tellAtOnce].Number - 1
	}
	known := r.Letters
	for _, c := range letters {
		is := func(k firstcome.Coupon) bool { return k.Number == c.Number && k.User == c.User }
		if c.Number <= r.Through && !slices.ContainsFunc(known, is) {
			r.Letters = append(r.Letters, c)
		}
	}
	return err
}

var letterColumns = `id, campaign_id, number, user_id, source, payload, cause, ` + causeCode + `, created_at, resolved_at, resolved_by`

func scanLetter(take sqldb.Scan) (d DeadLetter, err error) {
	err = take(&d.ID, sqldb.OrZero(&d.Campaign), sqldb.OrZero(&d.Number), sqldb.OrZero(&d.User), &d.Source, &d.Payload, &d.Cause, &d.CauseCode,
		sqldb.Time(&d.CreatedAt), sqldb.Time(&d.ResolvedAt), sqldb.OrZero(&d.ResolvedBy))
	return d, err
}

// DeadLetters returns a page of dead letters, oldest first.
func (rd *Reads) DeadLetters(ctx context.Context, p Letters) ([]DeadLetter, error) {
	return deadLetters(ctx, rd.db.Read, p)
}

// where returns the SQL condition that selects the letters, and its arguments. It ignores Limit.
func (p Letters) where() (where string, args []any) {
	where, args = `id > ?`, []any{p.After}
	if p.Campaign != "" {
		where, args = where+` AND campaign_id = ?`, append(args, string(p.Campaign))
	}
	if p.Cause != "" {
		where, args = where+` AND `+causeCode+` = ?`, append(args, p.Cause)
	}
	if p.Through != 0 {
		where, args = where+` AND id <= ?`, append(args, p.Through)
	}
	if !p.Resolved {
		where += ` AND resolved_at IS NULL`
	}
	return where, args
}

// DeadLetter returns the dead letter with an id, or firstcome.ErrNoDeadLetter.
func (rd *Reads) DeadLetter(ctx context.Context, id int64) (DeadLetter, error) {
	found, err := deadLetters(ctx, rd.db.Conclude, Letters{After: id - 1, Limit: 1, Resolved: true})
	if err != nil {
		return DeadLetter{}, err
	}
	if len(found) == 0 || found[0].ID != id {
		return DeadLetter{}, firstcome.ErrNoDeadLetter
	}
	return found[0], nil
}

func deadLetters(ctx context.Context, from *sqldb.Pool, page Letters) ([]DeadLetter, error) {
	where, args := page.where()
	query := `SELECT ` + letterColumns + ` FROM dead_letters WHERE ` + where + ` ORDER BY id`
	if page.Limit > 0 {
		query, args = query+` LIMIT ?`, append(args, page.Limit)
	}
	rows, err := from.QueryContext(ctx, query, args...)
	all, err := sqldb.AllRows(rows, err, scanLetter)
	return all, sqldb.Wrap(err, "read the dead letters")
}
