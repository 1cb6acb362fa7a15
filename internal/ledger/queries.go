package ledger

import "github.com/firstcome/firstcome/internal/sqldb"

import "github.com/firstcome/firstcome"

// A queries holds the statements about campaigns, coupons and tickets that differ between kinds of databases.
type queries struct {
	// couponOf finds the coupon in force of a user (first argument) in a campaign (second argument).
	couponOf string
	// hasLine is the condition of campaigns with users in line. waiter is the first column of the index of open
	// tickets. leaver is the first column of the index of tickets whose users left or already held a coupon.
	hasLine, waiter, leaver string
	// holder is the first column of the index of coupons for P3.
	holder string

	// look calls each with the coupons in force that claimants hold in the campaigns that they claim.
	look func(t *sqldb.Tx, all []*claims, each func(firstcome.Coupon) error) error
	// insert writes coupons. They are grouped by campaign, and in number order.
	insert func(t *sqldb.Tx, coupons []placed) error
	// lookTickets calls each with the tickets of claimants who are in line.
	lookTickets func(t *sqldb.Tx, all []*claims, each eachTicket) error
	// insertTickets writes new tickets.
	insertTickets func(t *sqldb.Tx, tickets []ticket) error
	// update writes the counters of dirty campaigns from the memory.
	update func(t *sqldb.Tx) error
}

var queriesSQLite = queries{
	holder: `user_id`, couponOf: lookSQLiteQueries[1], look: lookSQLite, insert: insertSQLite, update: updateSQLite,
	hasLine: `waiting > 0`, waiter: `user_id`, leaver: `user_id`, lookTickets: lookTicketsSQLite, insertTickets: insertTicketsSQLite,
}

var queriesMySQL = queries{
	// A unique index cannot have a condition in MySQL. So the unique index of P3 is on a column that is NULL in
	// voided coupons.
	holder:   `holder`,
	couponOf: `SELECT ` + couponColumns + ` FROM coupons WHERE holder = ? AND campaign_id = ? AND voided_at IS NULL`,
	look:     lookMySQL, insert: insertMySQL, update: updateEach,
	hasLine: `has_line`, waiter: `waiter`, leaver: `leaver`, lookTickets: lookTicketsMySQL, insertTickets: insertTicketsMySQL,
}

var queriesPostgreSQL = queries{
	holder:   `user_id`,
	couponOf: `SELECT ` + couponColumns + ` FROM coupons WHERE user_id = ? AND campaign_id = ? AND voided_at IS NULL`,
	look:     lookPostgreSQL, insert: insertPostgreSQL, update: updateEach,
	hasLine: `waiting > 0`, waiter: `user_id`, leaver: `user_id`, lookTickets: lookTicketsPostgreSQL, insertTickets: insertTicketsPostgreSQL,
}

// queriesOf returns the queries of a dialect.
func queriesOf(d *sqldb.Dialect) *queries {
	return map[*sqldb.Dialect]*queries{&sqldb.SQLite: &queriesSQLite, &sqldb.MySQL: &queriesMySQL, &sqldb.PostgreSQL: &queriesPostgreSQL}[d]
}
