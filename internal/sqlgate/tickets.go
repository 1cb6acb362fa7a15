package sqlgate

import (
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// ticketsOf returns the tickets of claimants who are in line. It runs no query about campaigns without a line.
func (g *Gate) ticketsOf(t *sqldb.Tx, all []*claims) (map[firstcome.CampaignID]map[firstcome.UserID]int64, error) {
	var tickets map[firstcome.CampaignID]map[firstcome.UserID]int64
	var ask []*claims
	for _, c := range all {
		if !c.row.Lined() {
			continue
		}
		if tickets == nil {
			tickets = map[firstcome.CampaignID]map[firstcome.UserID]int64{}
		}
		if tickets[c.Campaign] == nil {
			tickets[c.Campaign] = make(map[firstcome.UserID]int64, len(c.Users))
		}
		if c.row.Line.Waiting > 0 {
			ask = append(ask, c)
		}
	}
	if len(ask) == 0 {
		return tickets, nil
	}
	return tickets, g.queries.lookTickets(t, ask, func(id firstcome.CampaignID, user firstcome.UserID, number int64) {
		tickets[id][user] = number
	})
}

// An eachTicket is called with each ticket that is found.
type eachTicket func(id firstcome.CampaignID, user firstcome.UserID, number int64)

// lookTicketsSQLiteQueries seek each user in the index: see campaign.lookSQLiteQueries.
var lookTicketsSQLiteQueries = sqldb.InEveryWidth(`SELECT campaign_id, user_id, ticket FROM (VALUES %s) AS claim
	CROSS JOIN tickets INDEXED BY tickets_p9_one_per_user
	ON user_id = claim.column1 AND campaign_id = claim.column2 AND generation = claim.column3 WHERE ended_at IS NULL`, `(?,?,?)`)

// lookTicketsSQLite implements queries.lookTickets.
func lookTicketsSQLite(t *sqldb.Tx, all []*claims, each eachTicket) error {
	var args []any
	for _, c := range all {
		for _, user := range c.Users {
			args = append(args, string(user), string(c.Campaign), c.row.Line.Generation)
		}
	}
	return sqldb.InFewest(args, 3, func(width int, args []any) error {
		return forTickets(t, each, lookTicketsSQLiteQueries[width], args...)
	})
}

// lookTicketsMySQLQuery needs its hint for the same reason as lookTicketsSQLiteQueries.
const lookTicketsMySQLQuery = `SELECT campaign_id, user_id, ticket FROM tickets FORCE INDEX (tickets_p9_one_per_user)
	WHERE waiter IN (%s) AND campaign_id = ? AND generation = ? AND ended_at IS NULL`

// lookTicketsMySQL implements queries.lookTickets.
func lookTicketsMySQL(t *sqldb.Tx, all []*claims, each eachTicket) error {
	return ticketsInChunks(t, all, each, func(c *claims, users []firstcome.UserID) (query string, args []any) {
		for _, user := range users {
			args = append(args, string(user))
		}
		return sqldb.Repeated(lookTicketsMySQLQuery, `?`, len(users)), append(args, string(c.Campaign), c.row.Line.Generation)
	})
}

// lookTicketsPostgreSQL implements queries.lookTickets.
func lookTicketsPostgreSQL(t *sqldb.Tx, all []*claims, each eachTicket) error {
	return ticketsInChunks(t, all, each, func(c *claims, users []firstcome.UserID) (query string, args []any) {
		return `SELECT campaign_id, user_id, ticket FROM unnest(?::text[]) AS claimant CROSS JOIN LATERAL (SELECT * FROM tickets
			WHERE user_id = claimant COLLATE "C" AND campaign_id = ? AND generation = ? AND ended_at IS NULL LIMIT 1) AS waits`,
			[]any{sqldb.Texts(users), string(c.Campaign), c.row.Line.Generation}
	})
}

// ticketsInChunks runs one query for each chunk of users.
func ticketsInChunks(t *sqldb.Tx, all []*claims, each eachTicket, of func(*claims, []firstcome.UserID) (query string, args []any)) error {
	for _, c := range all {
		err := sqldb.InChunks(c.Users, func(users []firstcome.UserID) error {
			query, args := of(c, users)
			return forTickets(t, each, query, args...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forTickets calls each with the tickets that a query finds.
func forTickets(t *sqldb.Tx, each eachTicket, query string, args ...any) error {
	rows, err := t.Query(query, args...)
	return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var id firstcome.CampaignID
		var user firstcome.UserID
		var number int64
		err := take(&id, &user, &number)
		if err == nil {
			each(id, user, number)
		}
		return err
	})
}

const (
	ticketColumns = `campaign_id, generation, ticket, user_id, joined_at`
	aTicket       = `(?,?,?,?,?)`
)

var insertTicketsSQLiteQueries = sqldb.InEveryWidth(`INSERT OR ROLLBACK INTO tickets (`+ticketColumns+`) VALUES %s`, aTicket)

// insertTicketsSQLite implements queries.insertTickets.
func insertTicketsSQLite(t *sqldb.Tx, tickets []ticket) error {
	return sqldb.InWidths(len(tickets), func(from, width int) error {
		_, err := t.Change(insertTicketsSQLiteQueries[width], ticketArgs(tickets[from:from+width])...)
		return err
	})
}

// insertTicketsMySQL implements queries.insertTickets.
func insertTicketsMySQL(t *sqldb.Tx, tickets []ticket) error {
	return sqldb.InChunks(tickets, func(tickets []ticket) error {
		_, err := t.Change(sqldb.Repeated(`INSERT INTO tickets (`+ticketColumns+`) VALUES %s`, aTicket, len(tickets)), ticketArgs(tickets)...)
		return err
	})
}

func ticketArgs(tickets []ticket) []any {
	args := make([]any, 0, 5*len(tickets))
	for _, n := range tickets {
		args = append(args, string(n.campaign), n.generation, n.number, string(n.user), n.at)
	}
	return args
}

// insertTicketsPostgreSQL implements queries.insertTickets.
func insertTicketsPostgreSQL(t *sqldb.Tx, tickets []ticket) error {
	return sqldb.InChunks(tickets, func(tickets []ticket) error {
		n := len(tickets)
		campaigns, users := make([]string, n), make([]string, n)
		generations, numbers, at := make([]int64, n), make([]int64, n), make([]int64, n)
		for k, given := range tickets {
			campaigns[k], generations[k], numbers[k], users[k], at[k] = string(given.campaign), given.generation, given.number, string(given.user), given.at
		}
		_, err := t.Change(`INSERT INTO tickets (`+ticketColumns+`)
			SELECT * FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::bigint[])`, campaigns, generations, numbers, users, at)
		return err
	})
}

// flushLines writes the transaction's new tickets, ended tickets and ended lines.
func (w *writes) flushLines() error {
	if len(w.joins) > 0 {
		if err := w.queries.insertTickets(w.Tx, w.joins); err != nil {
			return err
		}
	}
	if err := w.endTickets(); err != nil {
		return err
	}
	for _, p := range w.past {
		if err := campaign.InsertPast(w.Tx, p.campaign, p.PastLine); err != nil {
			return err
		}
	}
	return nil
}

// endTickets writes which tickets ended. All users who were in line between the first and the last ticket that got
// a coupon also got a coupon, so one statement ends that range. The other tickets are few.
func (w *writes) endTickets() error {
	var first, last *ticket
	served := int64(0)
	for k := range w.ends {
		end := &w.ends[k]
		if end.outcome != issued {
			if err := endRange(w.Tx, end, end, 1); err != nil {
				return err
			}
			continue
		}
		if first == nil {
			first = end
		}
		last = end
		served++
	}
	if first == nil {
		return nil
	}
	return endRange(w.Tx, first, last, served)
}

const endRangeQuery = `UPDATE tickets SET ended_at = ?, outcome = ?
	WHERE campaign_id = ? AND generation = ? AND ticket >= ? AND ticket <= ? AND ended_at IS NULL`

// endRange ends the tickets from first to last that have not ended. Their number must be want.
func endRange(t *sqldb.Tx, first, last *ticket, want int64) error {
	ended, err := t.Change(endRangeQuery,
		first.at, first.outcome, string(first.campaign), first.generation, first.number, last.number)
	if err == nil && ended != want {
		err = fmt.Errorf("%d open tickets from %d to %d, expected %d: see firstcome audit", ended, first.number, last.number, want)
	}
	return err
}
