package campaign

import (
	"fmt"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// lookInChunks runs one query for each chunk of users, and calls each with the coupons that it finds.
func lookInChunks(t *sqldb.Tx, all []Claimants, each func(firstcome.Coupon) error, of func(firstcome.CampaignID, []firstcome.UserID) (query string, args []any)) error {
	for _, c := range all {
		err := sqldb.InChunks(c.Users, func(users []firstcome.UserID) error {
			query, args := of(c.Campaign, users)
			rows, err := t.Query(query, args...)
			return ScanCoupons(rows, err, each)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// updateEach implements queries.update with a statement for each campaign, because most transactions on a server
// have one campaign. It writes a line only if the line has changed.
func updateEach(t *sqldb.Tx, changed map[*Row]inRow) error {
	for s, was := range changed {
		line, args := "", append(make([]any, 0, 20), // room for all arguments, including those of a line
			s.InForce, s.Issued, s.LastNumber, s.Position, s.DecidedAt.UnixMicro(), sqldb.Micros(s.OpenedAt), sqldb.Micros(s.SoldOutAt),
			s.Quarantined.Coupons, s.Quarantined.Until.UnixMicro(), sqldb.Micros(s.Quarantined.OpensAt), sqldb.Micros(s.Quarantined.ClosesAt), s.Quarantined.SoldOut)
		if s.Line != was.line {
			line = `, generation = ?, last_ticket = ?, served_through = ?, served = ?, waiting = ?, due_at = ?`
			args = append(args, s.Line.Generation, s.Line.LastTicket, s.Line.ServedThrough, s.Line.Served, s.Line.Waiting, sqldb.Micros(s.Line.Due))
		}
		_, err := t.Change(`UPDATE campaigns SET in_force = ?, issued = ?, last_number = ?, position = ?, decided_at = ?,
			opened_at = ?, sold_out_at = ?, quarantined = ?, quarantined_until = ?, was_opens_at = ?, was_closes_at = ?, was_sold_out = ?`+line+` WHERE id = ?`,
			append(args, s.ID)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// lookMySQLQuery finds coupons by the index of P3. Without the hint, the server would read the whole campaign by
// its primary key if its statistics say that the campaign is small.
const lookMySQLQuery = `SELECT ` + CouponColumns + ` FROM coupons FORCE INDEX (coupons_p3_one_per_user)
	WHERE holder IN (%s) AND campaign_id = ? AND voided_at IS NULL`

// lookMySQL implements queries.look.
func lookMySQL(t *sqldb.Tx, all []Claimants, each func(firstcome.Coupon) error) error {
	return lookInChunks(t, all, each, func(id firstcome.CampaignID, users []firstcome.UserID) (query string, args []any) {
		args = make([]any, 0, len(users)+1)
		for _, user := range users {
			args = append(args, string(user))
		}
		return sqldb.Repeated(lookMySQLQuery, `?`, len(users)), append(args, string(id))
	})
}

// insertMySQL implements queries.insert.
func insertMySQL(t *sqldb.Tx, coupons []Placed) error {
	return sqldb.InChunks(coupons, func(coupons []Placed) error {
		columns, part, served := issuedParts, aCoupon, anyServed(coupons)
		if served {
			columns, part = servedParts, aServed
		}
		_, err := t.Change(sqldb.Repeated(`INSERT INTO coupons `+columns+` VALUES %s`, part, len(coupons)), couponArgs(nil, coupons, served)...)
		return err
	})
}

// lookPostgreSQLQuery seeks each user in the index. Without LIMIT, the planner prefers to read the whole campaign by
// its primary key.
const lookPostgreSQLQuery = `SELECT ` + CouponColumns + ` FROM unnest(?::text[]) AS claimant
	CROSS JOIN LATERAL (SELECT * FROM coupons WHERE user_id = claimant COLLATE "C" AND campaign_id = ? AND voided_at IS NULL LIMIT 1) AS held`

// lookPostgreSQL implements queries.look.
func lookPostgreSQL(t *sqldb.Tx, all []Claimants, each func(firstcome.Coupon) error) error {
	return lookInChunks(t, all, each, func(id firstcome.CampaignID, users []firstcome.UserID) (query string, args []any) {
		return lookPostgreSQLQuery, []any{sqldb.Texts(users), string(id)}
	})
}

// insertPostgreSQLQuery inserts coupons. It omits the column direct if none of them was issued directly.
const insertPostgreSQLQuery = `INSERT INTO coupons
	(campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position, generation, ticket%s)
	SELECT a, b, c, d, e, f, g, h, nullif(i, 0), nullif(j, 0)%s FROM unnest(?::text[], ?::bigint[], ?::text[], ?::text[],
		?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[]%s) AS of(a, b, c, d, e, f, g, h, i, j%s)`

var (
	insertClaimedPostgreSQL = fmt.Sprintf(insertPostgreSQLQuery, "", "", "", "")
	insertDirectPostgreSQL  = fmt.Sprintf(insertPostgreSQLQuery, ", direct", ", k", ", ?::boolean[]", ", k")
)

// insertPostgreSQL implements queries.insert. It passes each column as an array, so that one prepared statement
// serves any number of rows.
func insertPostgreSQL(t *sqldb.Tx, coupons []Placed) error {
	return sqldb.InChunks(coupons, func(coupons []Placed) error {
		n := len(coupons)
		campaigns, users, codes := make([]string, n), make([]string, n), make([]string, n)
		numbers, versions, at, positions := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
		recorded := make([]int64, n)
		generations, tickets := make([]int64, n), make([]int64, n)
		for k, c := range coupons {
			campaigns[k], numbers[k], users[k], codes[k] = string(c.Campaign), c.Number, string(c.User), c.Code
			versions[k], at[k], recorded[k], positions[k] = c.TermsVersion, c.IssuedAt.UnixMicro(), c.RecordedAt, c.Position
			generations[k], tickets[k] = c.Generation, c.Ticket
		}
		query, args := insertClaimedPostgreSQL, []any{campaigns, numbers, users, codes, versions, at, recorded, positions, generations, tickets}
		if slices.ContainsFunc(coupons, func(c Placed) bool { return c.Direct }) {
			direct := make([]bool, n)
			for k := range coupons {
				direct[k] = coupons[k].Direct
			}
			query, args = insertDirectPostgreSQL, append(args, direct)
		}
		_, err := t.Change(query, args...)
		return err
	})
}
