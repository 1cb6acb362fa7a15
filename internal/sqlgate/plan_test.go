package sqlgate

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// opened opens the database of a ledger.
func opened(t *testing.T, name string) *sqldb.DB {
	t.Helper()
	d, err := sqldb.Open(context.Background(), name, "")
	stage.Must(t, err)
	t.Cleanup(func() { stage.Must(t, d.Close()) })
	return d
}

// TestSQLiteBuildsNoTableForATicket is campaign's TestSQLiteBuildsNoTableForARow for the statements that write tickets.
func TestSQLiteBuildsNoTableForATicket(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "firstcome.db"))
	for query, args := range map[string]int{insertTicketsSQLiteQueries[1]: 5, endRangeQuery: 6} {
		if program := services.Program(t, d.Write, query, args); strings.Contains(program, "OpenEphemeral") {
			t.Errorf("a table is built by %s", query)
		}
	}
}

// analysed opens the database of a ledger that was analysed when it had one ticket.
func analysed(t *testing.T, name, analyse string) *sqldb.DB {
	t.Helper()
	d := opened(t, name)
	for _, statement := range []string{`INSERT INTO tickets (campaign_id, generation, ticket, user_id, joined_at) VALUES ('c', 1, 1, 'user-1', 1)`, analyse} {
		stage.Must(t, stage.Err(d.Write.ExecContext(t.Context(), statement)))
	}
	return d
}

// TestTicketsAreLookedUpInTheIndex is campaign's TestUsersAreLookedUpInTheIndex for tickets.
func TestTicketsAreLookedUpInTheIndex(t *testing.T) {
	d := analysed(t, filepath.Join(t.TempDir(), "firstcome.db"), `ANALYZE`)
	for width, query := range lookTicketsSQLiteQueries {
		plan, err := services.Explain(t.Context(), d.Write, query, make([]any, 3*width)...)
		stage.Must(t, err)
		if !strings.Contains(plan, "tickets_p9_one_per_user (user_id=? AND campaign_id=? AND generation=?)") || strings.Contains(plan, "SCAN tickets") {
			t.Errorf("the tickets of %d users are looked up by:\n%s", width, plan)
		}
	}
}

// TestWhetherAUserJoinedIsReadByIndexes has a campaign with one void, where MariaDB would take the index of the campaign, and one with thousands.
func TestWhetherAUserJoinedIsReadByIndexes(t *testing.T) {
	for kind, at := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			for _, voids := range []int{1, 3000} {
				d := opened(t, at(t))
				services.FillVoids(t, d.Write, voids)
				plan, err := services.Explain(t.Context(), d.Write, d.Dialect.Rebind(joinedQuery(queriesOf[d.Dialect])), "user-7", "c", "user-7", "c", "c", "user-7", "c")
				stage.Must(t, err)
				for _, slow := range []string{"Seq Scan on coupons", "SCAN coupons", "Seq Scan on tickets", "SCAN tickets", "audit_log_campaign"} {
					if strings.Contains(plan, slow) {
						t.Errorf("with %d voids, whether a user joined is read with %s:\n%s", voids, slow, plan)
					}
				}
			}
		})
	}
}
