package sqlgate

import "github.com/firstcome/firstcome/internal/sqldb"

// A queries holds the gate's statements that differ between kinds of databases.
type queries struct {
	// hasLine is the condition of campaigns with users in line. waiter is the first column of the index of open
	// tickets. leaver is the first column of the index of tickets whose users left or already held a coupon.
	hasLine, waiter, leaver string

	// lookTickets calls each with the tickets of claimants who are in line.
	lookTickets func(t *sqldb.Tx, all []*claims, each eachTicket) error
	// insertTickets writes new tickets.
	insertTickets func(t *sqldb.Tx, tickets []ticket) error
}

// queriesOf has the gate's queries of each dialect.
var queriesOf = map[*sqldb.Dialect]*queries{
	&sqldb.SQLite: {
		hasLine: `waiting > 0`, waiter: `user_id`, leaver: `user_id`,
		lookTickets: lookTicketsSQLite, insertTickets: insertTicketsSQLite,
	},
	&sqldb.MySQL: {
		hasLine: `has_line`, waiter: `waiter`, leaver: `leaver`,
		lookTickets: lookTicketsMySQL, insertTickets: insertTicketsMySQL,
	},
	&sqldb.PostgreSQL: {
		hasLine: `has_line`, waiter: `user_id`, leaver: `user_id`,
		lookTickets: lookTicketsPostgreSQL, insertTickets: insertTicketsPostgreSQL,
	},
}
