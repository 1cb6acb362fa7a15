package ledger

import (
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
)

// widths are how many rows one statement may take. A list of rows is cut into the widest that fit, one after the other.
// A wider statement costs less a row (in a trial 5.3 µs at 1, 3.6 at 32, 2.7 at 64). Each is prepared once.
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

// inFewest calls do with parts of args, which are rows of so many columns, for queries. It fills the last part up to the
// next width with rows of NULL. NULL equals nothing, and the spare rows cost less than another query would.
func inFewest(args []any, columns int, do func(width int, args []any) error) error {
	for part := range slices.Chunk(args, columns*widths[0]) {
		width := 1
		for columns*width < len(part) {
			width *= 2
		}
		part = append(part, make([]any, columns*width-len(part))...)
		if err := do(width, part); err != nil {
			return err
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

// The statements that write say OR ROLLBACK: if SQLite refuses a row, it rolls back the whole transaction. So it need not
// keep what would undo the one statement. In a trial keeping that was a quarter of the time of an insert.
var (
	// CROSS JOIN and INDEXED BY have SQLite seek each user in the index. By itself it would read the whole campaign by its
	// primary key, or join from coupons to users.
	lookSQLiteQueries = inEveryWidth(`SELECT `+couponColumns+` FROM (VALUES %s) AS claim
		CROSS JOIN coupons INDEXED BY coupons_p3_one_per_user
		ON user_id = claim.column1 AND campaign_id = claim.column2 WHERE voided_at IS NULL`, `(?,?)`)
	insertCoupons = inEveryWidth(`INSERT OR ROLLBACK INTO coupons `+issuedParts+` VALUES %s`, aCoupon)
	insertServed  = inEveryWidth(`INSERT OR ROLLBACK INTO coupons `+servedParts+` VALUES %s`, aServed)
	// updateStocks raises the counters of campaigns by the coupons that were issued. It finds a row only if that is still as
	// it was when the claims were decided: see errRowMoved.
	updateStocks = inEveryWidth(`UPDATE OR ROLLBACK campaigns
		SET in_force = in_force + s.column1, issued = issued + s.column1, last_number = last_number + s.column1, position = position + s.column1, decided_at = s.column2,
			opened_at = s.column6, sold_out_at = s.column7
		FROM (VALUES %s) AS s WHERE campaigns.id = s.column3 AND version = s.column4 AND last_number = s.column5`, `(?,?,?,?,?,?,?)`)
)

// The claims of a transaction are mostly of one campaign, whose row needs no join.
func init() {
	updateStocks[1] = `UPDATE OR ROLLBACK campaigns
		SET in_force = in_force + ?1, issued = issued + ?1, last_number = last_number + ?1, position = position + ?1, decided_at = ?2,
			opened_at = ?6, sold_out_at = ?7
		WHERE id = ?3 AND version = ?4 AND last_number = ?5`
}

// holdersOf returns the coupons in force that claimants hold of the campaigns that they ask for.
func holdersOf(t *tx, all []*claims) (map[firstcome.CampaignID]map[firstcome.UserID]*firstcome.Coupon, error) {
	holders := make(map[firstcome.CampaignID]map[firstcome.UserID]*firstcome.Coupon, len(all))
	for _, c := range all {
		if holders[c.id] == nil {
			holders[c.id] = make(map[firstcome.UserID]*firstcome.Coupon, len(c.users))
		}
	}
	return holders, t.dialect.look(t, all, func(c firstcome.Coupon) error {
		holders[c.Campaign][c.User] = &c
		return nil
	})
}

// lookSQLite is dialect.look.
func lookSQLite(t *tx, all []*claims, each func(firstcome.Coupon) error) error {
	users := 0
	for _, c := range all {
		users += len(c.users)
	}
	args := make([]any, 0, 2*users)
	for _, c := range all {
		var id any = string(c.id) // allocated once for all
		for _, user := range c.users {
			args = append(args, string(user), id)
		}
	}
	return inFewest(args, 2, func(width int, args []any) error {
		rows, err := t.query(lookSQLiteQueries[width], args...)
		return scanCoupons(rows, err, each)
	})
}

// A placed coupon is one to be inserted, with the position of the fact that it
// was issued.
type placed struct {
	firstcome.Coupon
	position   int64
	recordedAt int64 // microseconds
}

// flush writes what the claims of the transaction decided. Many campaigns'
// claims become a few wide statements.
func flush(t *tx) error {
	if len(t.coupons) > 0 {
		if err := t.dialect.insert(t, t.coupons); err != nil {
			return err
		}
	}
	if len(t.joins)+len(t.ends)+len(t.past) > 0 {
		if err := flushLines(t); err != nil {
			return err
		}
	}
	return t.dialect.update(t)
}

// The columns of a coupon that is inserted, and its arguments. Coupons of which none names a ticket or was issued directly leave
// out what they do not have; a recorder may have some of each.
const (
	issuedParts = `(campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)`
	aCoupon     = `(?,?,?,?,?,?,?,?)`
	servedParts = `(campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position, generation, ticket, direct)`
	aServed     = `(?,?,?,?,?,?,?,?,?,?,?)`
)

// anyServed reports whether any of coupons was issued to a ticket, or directly.
func anyServed(coupons []placed) bool {
	return slices.ContainsFunc(coupons, func(c placed) bool { return c.Ticket > 0 || c.Direct })
}

func couponArgs(args []any, coupons []placed, served bool) []any {
	for n := range coupons {
		c := &coupons[n]
		args = append(args, string(c.Campaign), c.Number, string(c.User), c.Code, c.TermsVersion, c.IssuedAt.UnixMicro(), c.recordedAt, c.position)
		if served {
			args = append(args, sql.NullInt64{Int64: c.Generation, Valid: c.Generation > 0}, sql.NullInt64{Int64: c.Ticket, Valid: c.Ticket > 0}, c.Direct)
		}
	}
	return args
}

// insertSQLite is dialect.insert.
func insertSQLite(t *tx, coupons []placed) error {
	columns, queries := strings.Count(aCoupon, "?"), insertCoupons
	served := anyServed(coupons)
	if served {
		columns, queries = strings.Count(aServed, "?"), insertServed
	}
	args := make([]any, 0, columns*min(len(coupons), widths[0]))
	return inWidths(len(coupons), func(from, width int) error {
		args = couponArgs(args[:0], coupons[from:from+width], served)
		_, err := t.change(queries[width], args...)
		return err
	})
}

// errRowMoved says that somebody else wrote a campaign's row: it is not the one that this process remembers. The
// transaction is rolled back, and its claims are decided again by the row in the file.
var errRowMoved = errors.New("the campaign's row was changed by somebody else")

// updateSQLite is dialect.update. It raises the counters and does not set them. So the schema checks P1 against the
// file, whatever this process remembers.
func updateSQLite(t *tx) error {
	args := make([]any, 0, 7*len(t.dirty))
	for id, was := range t.dirty {
		s := t.stocks[id]
		if s.line != was.line {
			if err := updateLine(t, &s, was.line); err != nil {
				return err
			}
		}
		args = append(args, s.lastNumber-was.lastNumber, s.decidedAt.UnixMicro(), string(id), s.Version, was.lastNumber, micros(s.OpenedAt), micros(s.SoldOutAt))
	}
	return inWidths(len(t.dirty), func(from, width int) error {
		raised, err := t.change(updateStocks[width], args[7*from:7*(from+width)]...)
		if err == nil && raised != int64(width) {
			err = errRowMoved
		}
		return err
	})
}

// updateLine writes a campaign's line, if it is still the one that decided: see errRowMoved.
func updateLine(t *tx, s *stock, was firstcome.Line) error {
	moved, err := t.change(`UPDATE OR ROLLBACK campaigns SET generation = ?, last_ticket = ?, served_through = ?, served = ?, waiting = ?, due_at = ?
		WHERE id = ? AND generation = ? AND last_ticket = ? AND waiting = ?`,
		s.line.Generation, s.line.LastTicket, s.line.ServedThrough, s.line.Served, s.line.Waiting, micros(s.line.Due),
		string(s.ID), was.Generation, was.LastTicket, was.Waiting)
	if err == nil && moved != 1 {
		err = errRowMoved
	}
	return err
}
