package campaign

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// The statements that write have OR ROLLBACK: if SQLite refuses a row, it rolls back the whole transaction. So it
// need not save how to undo the one statement. In a trial that took a quarter of the time of an insert.
var (
	// With CROSS JOIN and INDEXED BY, SQLite seeks each user in the index. If somebody ran ANALYZE while the ledger was
	// nearly empty, it would otherwise read the whole campaign by its primary key, or join from coupons to users.
	lookSQLiteQueries = sqldb.InEveryWidth(`SELECT `+CouponColumns+` FROM (VALUES %s) AS claim
		CROSS JOIN coupons INDEXED BY coupons_p3_one_per_user
		ON user_id = claim.column1 AND campaign_id = claim.column2 WHERE voided_at IS NULL`, `(?,?)`)
	insertCoupons = sqldb.InEveryWidth(`INSERT OR ROLLBACK INTO coupons `+issuedParts+` VALUES %s`, aCoupon)
	insertServed  = sqldb.InEveryWidth(`INSERT OR ROLLBACK INTO coupons `+servedParts+` VALUES %s`, aServed)
)

// updateRows raises the counters of campaigns by the coupons that were issued. It finds a row only if the
// row has not changed since the claims were decided: see sqldb.ErrRowMoved.
var updateRows = func() map[int]string {
	queries := sqldb.InEveryWidth(`UPDATE OR ROLLBACK campaigns
		SET in_force = in_force + s.column1, issued = issued + s.column1, last_number = last_number + s.column1, position = position + s.column1, decided_at = s.column2,
			opened_at = s.column6, sold_out_at = s.column7
		FROM (VALUES %s) AS s WHERE campaigns.id = s.column3 AND version = s.column4 AND last_number = s.column5`, `(?,?,?,?,?,?,?)`)
	// Most transactions claim from one campaign. The statement for one row needs no join.
	queries[1] = `UPDATE OR ROLLBACK campaigns
		SET in_force = in_force + ?1, issued = issued + ?1, last_number = last_number + ?1, position = position + ?1, decided_at = ?2,
			opened_at = ?6, sold_out_at = ?7
		WHERE id = ?3 AND version = ?4 AND last_number = ?5`
	return queries
}()

// Holders returns the coupons in force that claimants hold in the campaigns that they claim.
func Holders(t *sqldb.Tx, all []Claimants) (map[firstcome.CampaignID]map[firstcome.UserID]*firstcome.Coupon, error) {
	holders := make(map[firstcome.CampaignID]map[firstcome.UserID]*firstcome.Coupon, len(all))
	for _, c := range all {
		if holders[c.Campaign] == nil {
			holders[c.Campaign] = make(map[firstcome.UserID]*firstcome.Coupon, len(c.Users))
		}
	}
	return holders, byDialect[t.Dialect].look(t, all, func(c firstcome.Coupon) error {
		holders[c.Campaign][c.User] = &c
		return nil
	})
}

// lookSQLite implements queries.look.
func lookSQLite(t *sqldb.Tx, all []Claimants, each func(firstcome.Coupon) error) error {
	users := 0
	for _, c := range all {
		users += len(c.Users)
	}
	args := make([]any, 0, 2*users)
	for _, c := range all {
		var id any = string(c.Campaign) // allocated once for all
		for _, user := range c.Users {
			args = append(args, string(user), id)
		}
	}
	return sqldb.InFewest(args, 2, func(width int, args []any) error {
		rows, err := t.Query(lookSQLiteQueries[width], args...)
		return ScanCoupons(rows, err, each)
	})
}

// WriteCoupons inserts coupons. They are grouped by campaign, and in number order.
func WriteCoupons(t *sqldb.Tx, coupons []Placed) error {
	return byDialect[t.Dialect].insert(t, coupons)
}

// Claimants are users of one campaign whose coupons are looked up.
type Claimants struct {
	Campaign firstcome.CampaignID
	Users    []firstcome.UserID
}

// A Placed is a coupon to insert, with the position of the fact of its issue.
type Placed struct {
	firstcome.Coupon
	Position   int64
	RecordedAt int64 // microseconds
}

// These are the columns and arguments of inserted coupons. A statement omits the columns of tickets and direct
// issues if none of its coupons has a ticket or was issued directly. A recorder may have coupons of both kinds.
const (
	issuedParts = `(campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)`
	aCoupon     = `(?,?,?,?,?,?,?,?)`
	servedParts = `(campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position, generation, ticket, direct)`
	aServed     = `(?,?,?,?,?,?,?,?,?,?,?)`
)

// anyServed reports whether any coupon was issued to a ticket, or directly.
func anyServed(coupons []Placed) bool {
	return slices.ContainsFunc(coupons, func(c Placed) bool { return c.Ticket > 0 || c.Direct })
}

func couponArgs(args []any, coupons []Placed, served bool) []any {
	for n := range coupons {
		c := &coupons[n]
		args = append(args, string(c.Campaign), c.Number, string(c.User), c.Code, c.TermsVersion, c.IssuedAt.UnixMicro(), c.RecordedAt, c.Position)
		if served {
			args = append(args, sql.NullInt64{Int64: c.Generation, Valid: c.Generation > 0}, sql.NullInt64{Int64: c.Ticket, Valid: c.Ticket > 0}, c.Direct)
		}
	}
	return args
}

// insertSQLite implements queries.insert.
func insertSQLite(t *sqldb.Tx, coupons []Placed) error {
	columns, queries := strings.Count(aCoupon, "?"), insertCoupons
	served := anyServed(coupons)
	if served {
		columns, queries = strings.Count(aServed, "?"), insertServed
	}
	args := make([]any, 0, columns*min(len(coupons), sqldb.Widths[0]))
	return sqldb.InWidths(len(coupons), func(from, width int) error {
		args = couponArgs(args[:0], coupons[from:from+width], served)
		_, err := t.Change(queries[width], args...)
		return err
	})
}

// updateSQLite implements queries.update. It raises the counters and does not set them. So the schema checks P1
// against the file, even if this process remembers wrong counters.
func updateSQLite(t *sqldb.Tx, changed map[*Row]inRow) error {
	args := make([]any, 0, 7*len(changed))
	for s, was := range changed {
		if s.Line != was.line {
			if err := updateLine(t, s, was.line); err != nil {
				return err
			}
		}
		args = append(args, s.LastNumber-was.lastNumber, s.DecidedAt.UnixMicro(), string(s.ID), s.Version, was.lastNumber, sqldb.Micros(s.OpenedAt), sqldb.Micros(s.SoldOutAt))
	}
	return sqldb.InWidths(len(changed), func(from, width int) error {
		raised, err := t.Change(updateRows[width], args[7*from:7*(from+width)]...)
		if err == nil && raised != int64(width) {
			err = sqldb.ErrRowMoved
		}
		return err
	})
}

// updateLine writes a campaign's line. It finds the row only if the line has not changed since the claims were
// decided: see sqldb.ErrRowMoved.
func updateLine(t *sqldb.Tx, s *Row, was firstcome.Line) error {
	moved, err := t.Change(`UPDATE OR ROLLBACK campaigns SET generation = ?, last_ticket = ?, served_through = ?, served = ?, waiting = ?, due_at = ?
		WHERE id = ? AND generation = ? AND last_ticket = ? AND waiting = ?`,
		s.Line.Generation, s.Line.LastTicket, s.Line.ServedThrough, s.Line.Served, s.Line.Waiting, sqldb.Micros(s.Line.Due),
		string(s.ID), was.Generation, was.LastTicket, was.Waiting)
	if err == nil && moved != 1 {
		err = sqldb.ErrRowMoved
	}
	return err
}
