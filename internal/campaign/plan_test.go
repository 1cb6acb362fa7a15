package campaign

import (
	"context"
	"fmt"
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

// insert runs so many statements in one transaction.
func insert(t *testing.T, d *sqldb.DB, count int, statement func(n int) string) {
	t.Helper()
	tx, err := d.Write.BeginTx(t.Context(), nil)
	stage.Must(t, err)
	for n := range count {
		stage.Must(t, stage.Err(tx.Exec(statement(n))))
	}
	stage.Must(t, tx.Commit())
}

// explain returns how the database runs a query.
func explain(t *testing.T, d *sqldb.DB, query string, args ...any) string {
	t.Helper()
	plan, err := services.Explain(t.Context(), d.Write, d.Dialect.Rebind(query), args...)
	stage.Must(t, err)
	return plan
}

// TestUsersAreLookedUpInTheIndex holds the plan of every width. The ledger has statistics of a time when it had one coupon, after which
// SQLite would read the whole campaign without the hints.
func TestUsersAreLookedUpInTheIndex(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "firstcome.db"))
	statements := []string{`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
		VALUES ('c', 1, 'user-1', '0123456789ABCDEF', 1, 1, 1, 1)`, `ANALYZE`}
	insert(t, d, len(statements), func(n int) string { return statements[n] })
	for width, query := range lookSQLiteQueries {
		plan := explain(t, d, query, make([]any, 2*width)...)
		if !strings.Contains(plan, "coupons_p3_one_per_user (user_id=? AND campaign_id=?)") || strings.Contains(plan, "SCAN coupons") {
			t.Errorf("%d users are looked up by:\n%s", width, plan)
		}
	}
}

// TestSQLiteBuildsNoTableForARow holds the statements that write rows and coupons. A CHECK with an IN of three words had SQLite make a
// table of the words for each row: a fifth of the processor time of joining a line and being served.
func TestSQLiteBuildsNoTableForARow(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "firstcome.db"))
	for query, args := range map[string]int{insertCoupons[1]: 8, insertServed[1]: 11, updateRows[1]: 7} {
		if program := services.Program(t, d.Write, query, args); strings.Contains(program, "OpenEphemeral") {
			t.Errorf("a table is built by %s", query)
		}
	}
}

// TestActiveCampaignsAreReadInTheOrderOfTheirIndex looks at what every recorder asks once a
// second, where another gate has most of the campaigns: none of those is read, and nothing is sorted.
func TestActiveCampaignsAreReadInTheOrderOfTheirIndex(t *testing.T) {
	for kind, at := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			d := opened(t, at(t))
			insert(t, d, 3000, func(n int) string {
				gate := "redis:other"
				if n%100 == 0 {
					gate = "redis:another"
				}
				return fmt.Sprintf(`INSERT INTO campaigns (id, version, terms_version, applied, gate, epoch, secret, decided_at, created_at)
					VALUES ('c-%d', 1, 1, 1, '%s', 1, 'print', 1, 1)`, n, gate)
			})
			plan := explain(t, d, atGateQuery(`c.retired_at IS NULL`), 0, 0, "redis:another", "print")
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
