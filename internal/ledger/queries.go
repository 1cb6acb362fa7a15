package ledger

import "github.com/firstcome/firstcome/internal/sqldb"

import "github.com/firstcome/firstcome"

// A queries is what a kind of database wants otherwise than the others in the statements of campaigns, coupons and tickets.
type queries struct {
	// couponOf finds the coupon in force of a user (first argument) and a campaign.
	couponOf string
	// hasLine is the condition on campaigns that people are in line; waiter and leaver are the columns of tickets with
	// which the indexes of those who wait and of those who left or held a coupon begin.
	hasLine, waiter, leaver string
	// holder is the column of coupons with which the index of P3 begins.
	holder string

	// look calls each with the coupons in force that claimants hold of the campaigns that they ask for.
	look func(t *sqldb.Tx, all []*claims, each func(firstcome.Coupon) error) error
	// insert writes coupons, which are those of one campaign after the other in number order.
	insert func(t *sqldb.Tx, coupons []placed) error
	// lookTickets calls each with the tickets with which claimants are in line.
	lookTickets func(t *sqldb.Tx, all []*claims, each eachTicket) error
	// insertTickets writes tickets that were given.
	insertTickets func(t *sqldb.Tx, tickets []ticket) error
	// update writes the counters of dirty campaigns as the memory has them.
	update func(t *sqldb.Tx) error
}

var queriesSQLite = queries{
	holder: `user_id`, couponOf: lookSQLiteQueries[1], look: lookSQLite, insert: insertSQLite, update: updateSQLite,
	hasLine: `waiting > 0`, waiter: `user_id`, leaver: `user_id`, lookTickets: lookTicketsSQLite, insertTickets: insertTicketsSQLite,
}

var queriesMySQL = queries{
	// A unique index takes no condition here, so P3 is kept by a column that is NULL in
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

// queriesOf returns those of a dialect.
func queriesOf(d *sqldb.Dialect) *queries {
	return map[*sqldb.Dialect]*queries{&sqldb.SQLite: &queriesSQLite, &sqldb.MySQL: &queriesMySQL, &sqldb.PostgreSQL: &queriesPostgreSQL}[d]
}
