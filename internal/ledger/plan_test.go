package ledger

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestUsersAreLookedUpInTheIndex holds the plan of every width: without a hint,
// SQLite read the whole campaign for more than one user.
func TestUsersAreLookedUpInTheIndex(t *testing.T) {
	l := opened(t, filepath.Join(t.TempDir(), "firstcome.db"), "")
	for width, query := range lookSQLiteQueries {
		plan := explain(t, l, query, make([]any, 2*width))
		if !strings.Contains(plan, "coupons_p3_one_per_user (user_id=? AND campaign_id=?)") || strings.Contains(plan, "SCAN coupons") {
			t.Errorf("%d users are looked up by:\n%s", width, plan)
		}
	}
}

// TestSQLiteBuildsNoTableForARow holds the statements of claims and lines. A CHECK with an IN of three words had SQLite make a table of
// the words for each row: a fifth of the processor time of joining a line and being served.
func TestSQLiteBuildsNoTableForARow(t *testing.T) {
	l := opened(t, filepath.Join(t.TempDir(), "firstcome.db"), "")
	for query, args := range map[string]int{
		insertCoupons[1]: 8, insertServed[1]: 11, insertTicketsSQLiteQueries[1]: 5, endRangeQuery: 6, updateStocks[1]: 7,
	} {
		rows, err := l.db.Write.Query(`EXPLAIN `+query, make([]any, args)...)
		stage.Must(t, sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
			var opcode string
			var other any
			err := take(&other, &opcode, &other, &other, &other, &other, &other, &other)
			if opcode == "OpenEphemeral" {
				t.Errorf("a table is built by %s", query)
			}
			return err
		}))
	}
}

// TestActiveCampaignsAreReadInTheOrderOfTheirIndex looks at what every recorder asks once a
// second, where another gate has most of the campaigns: none of those is read, and nothing is sorted.
func TestActiveCampaignsAreReadInTheOrderOfTheirIndex(t *testing.T) {
	for kind, at := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			l := opened(t, at(t), "redis:another")
			fill(t, l, 3000)
			plan := explain(t, l, atGateQuery(`c.retired_at IS NULL`), []any{0, 0, l.rows.gate, l.rows.fingerprint})
			if !strings.Contains(plan, "campaigns_at_gate") {
				t.Errorf("the campaigns are read by:\n%s", plan)
			}
			for _, slow := range []string{"Seq Scan", "Sort", "filesort", "TEMP B-TREE"} {
				if strings.Contains(plan, slow) {
					t.Errorf("the campaigns are read with %s:\n%s", slow, plan)
				}
			}
		})
	}
}

// fill makes so many campaigns, of which the ledger's gate has a few.
func fill(t *testing.T, l *Ledger, count int) {
	t.Helper()
	insert(t, l, count, func(n int) string {
		gate := "redis:other"
		if n%100 == 0 {
			gate = l.rows.gate
		}
		return fmt.Sprintf(`INSERT INTO campaigns (id, version, terms_version, applied, gate, epoch, secret, decided_at, created_at)
			VALUES ('c-%d', 1, 1, 1, '%s', 1, '%s', 1, 1)`, n, gate, l.rows.fingerprint)
	})
}

// insert runs so many statements in one transaction.
func insert(t *testing.T, l *Ledger, count int, statement func(n int) string) {
	t.Helper()
	tx, err := l.db.Write.BeginTx(t.Context(), nil)
	stage.Must(t, err)
	for n := range count {
		stage.Must(t, stage.Err(tx.Exec(statement(n))))
	}
	stage.Must(t, tx.Commit())
}

// explain returns what the server says of how it runs a query.
func explain(t *testing.T, l *Ledger, query string, args []any) (plan string) {
	t.Helper()
	how := `EXPLAIN `
	if !l.db.Dialect.Shared {
		how = `EXPLAIN QUERY PLAN `
	}
	rows, err := l.db.Write.Query(how+l.db.Dialect.Rebind(query), args...)
	stage.Must(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	stage.Must(t, err)
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for n := range cells {
			into[n] = &cells[n]
		}
		stage.Must(t, rows.Scan(into...))
		for n, cell := range cells {
			if columns[n] != "possible_keys" {
				plan += cell.String + " "
			}
		}
		plan += "\n"
	}
	return plan
}

// TestVoidsOfAUserAreReadByTheirIndex has a campaign with thousands of voids, of which a user has few.
func TestVoidsOfAUserAreReadByTheirIndex(t *testing.T) {
	for kind, at := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			l := opened(t, at(t), "")
			insert(t, l, 3000, func(n int) string {
				return fmt.Sprintf(`INSERT INTO audit_log (at, actor, action, campaign_id, user_id, number, detail)
					VALUES (1, 'a', 'coupon.void', 'c', 'user-%d', %d, '{}')`, n/3, n+1)
			})
			joined := explain(t, l, joinedQuery(l.Gate.queries), []any{"user-7", "c", "user-7", "c", "c", "user-7", "c"})
			for _, slow := range []string{"Seq Scan on coupons", "SCAN coupons", "Seq Scan on tickets", "SCAN tickets", "audit_log_campaign"} {
				if strings.Contains(joined, slow) {
					t.Errorf("whether a user joined is read with %s:\n%s", slow, joined)
				}
			}
			if plan := explain(t, l, voidsOfQuery, []any{"user-7", "c", 0, maxFound}); !strings.Contains(plan, "audit_log_user") || strings.Contains(plan, "audit_log_campaign") {
				t.Errorf("the voids are read by:\n%s", plan)
			}
		})
	}
}
