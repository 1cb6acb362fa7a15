package ledger

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
)

// widths are those of the statements that take many rows: the widest that fits is
// taken, again and again. Wider statements cost less a row
// (in a trial 5.3 µs at 1, 3.6 at 32, 2.7 at 64), and each is prepared once.
var widths = [...]int{64, 32, 16, 8, 4, 2, 1}

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

// A wide statement writes many rows. Its two forms differ in what a refused row
// takes along. OR ROLLBACK, the whole transaction: SQLite need not keep what it
// would take to undo the one statement, which was a quarter of the time of an
// insert in a trial. OR ABORT, the statement.
type wide struct{ orRollback, orAbort map[int]string }

// newWide returns the statement that begins with verb and goes on with query.
func newWide(verb, query, part string) wide {
	return wide{inEveryWidth(verb+` OR ROLLBACK `+query, part), inEveryWidth(verb+` OR ABORT `+query, part)}
}

var (
	// SQLite would rather read the whole campaign by its primary key than seek many
	// users in the index.
	lookQueries = inEveryWidth(`SELECT `+couponColumns+` FROM coupons INDEXED BY coupons_p3_one_per_user
		WHERE user_id IN (%s) AND campaign_id = ? AND voided_at IS NULL`, `?`)
	insertCoupons = newWide(`INSERT`, `INTO coupons
		(campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES %s`, `(?,?,?,?,?,?,?,?)`)
	// The rows of campaigns, by how many coupons were issued of them, if they are still the rows that
	// decided: see errRowMoved.
	updateStocks = newWide(`UPDATE`, `campaigns
		SET in_force = in_force + s.column1, issued = issued + s.column1, last_number = last_number + s.column1, position = position + s.column1, decided_at = s.column2,
			opened_at = s.column6, sold_out_at = s.column7
		FROM (VALUES %s) AS s WHERE campaigns.id = s.column3 AND version = s.column4 AND last_number = s.column5`, `(?,?,?,?,?,?,?)`)
	// One campaign at a time is what there mostly is, and needs no join.
	updateStock = newWide(`UPDATE`, `campaigns
		SET in_force = in_force + ?1, issued = issued + ?1, last_number = last_number + ?1, position = position + ?1, decided_at = ?2,
			opened_at = ?6, sold_out_at = ?7
		WHERE id = ?3 AND version = ?4 AND last_number = ?5`, ``)
)

// couponsOf adds the coupons in force that users hold to into.
func (t *tx) couponsOf(id firstcome.CampaignID, users []firstcome.UserID, into map[firstcome.UserID]*firstcome.Coupon) error {
	if t.dirty[id] {
		if err := t.flush(); err != nil {
			return err
		}
	}
	return t.dialect.look(t, id, users, func(c firstcome.Coupon) error {
		into[c.User] = &c
		return nil
	})
}

// lookSQLite is dialect.look.
func lookSQLite(t *tx, id firstcome.CampaignID, users []firstcome.UserID, each func(firstcome.Coupon) error) error {
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
		return scanCoupons(rows, each)
	})
}

// A placed coupon is one to be inserted, with the position of the fact that it
// was issued.
type placed struct {
	firstcome.Coupon
	position   int64
	recordedAt int64 // microseconds
}

// flush writes what the claims of the transaction decided so far. Many campaigns'
// claims become a few wide statements.
func (t *tx) flush() error {
	defer t.forget()
	if len(t.coupons) > 0 {
		if err := t.dialect.insert(t, t.coupons); err != nil {
			return err
		}
	}
	if err := t.dialect.update(t, slices.Collect(maps.Keys(t.dirty))); err != nil {
		return err
	}
	for id := range t.dirty {
		s := t.stocks[id]
		s.rowNumber = s.lastNumber
		t.stocks[id] = s
	}
	return nil
}

// insertSQLite is dialect.insert.
func insertSQLite(t *tx, coupons []placed) error {
	args := make([]any, 0, widths[0]*8)
	return inWidths(len(coupons), func(from, width int) error {
		args = args[:0]
		for _, c := range coupons[from : from+width] {
			args = append(args, string(c.Campaign), c.Number, string(c.User), c.Code, c.TermsVersion, c.IssuedAt.UnixMicro(), c.recordedAt, c.position)
		}
		return t.write(insertCoupons, width, args)
	})
}

// errRowMoved says that a campaign's row in the file is not the one remembered, by which its claims
// were decided: somebody else wrote it. What they decided is rolled back, and they are decided again by the row.
var errRowMoved = errors.New("the campaign's row was changed by somebody else")

// updateSQLite is dialect.update. The rows are raised, not set: so the schema holds P1 against what is in
// the file, whatever this process remembers.
func updateSQLite(t *tx, ids []firstcome.CampaignID) error {
	args := make([]any, 0, widths[0]*7)
	return inWidths(len(ids), func(from, width int) error {
		args = args[:0]
		for _, id := range ids[from : from+width] {
			s := t.stocks[id]
			args = append(args, s.lastNumber-s.rowNumber, s.decidedAt.UnixMicro(), string(id), s.Version, s.rowNumber, micros(s.OpenedAt), micros(s.SoldOutAt))
		}
		update := updateStocks
		if width == 1 {
			update = updateStock
		}
		return t.write(update, width, args)
	})
}

// forget drops what flush has written.
func (t *tx) forget() {
	t.coupons = t.coupons[:0]
	clear(t.dirty)
}

// write runs the statement that writes so many rows, in the form that the transaction needs.
func (t *tx) write(s wide, width int, args []any) error {
	queries := s.orRollback
	if t.savepoints {
		queries = s.orAbort
	}
	written, err := t.change(queries[width], args...)
	if err == nil && written != int64(width) {
		err = errRowMoved
	}
	return err
}
