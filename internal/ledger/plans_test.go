//go:build !check && (!race || soak)

package ledger

import (
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAPlanMadeForAFewCouponsIsNotKeptForMany has the server analyse a ledger with a small test
// campaign, alone and beside others, then small batches, of which it keeps plans, and then large ones: rows that are read follow the
// claims, and not the size of the table.
func TestAPlanMadeForAFewCouponsIsNotKeptForMany(t *testing.T) {
	t.Parallel()
	for kind, analyze := range map[services.Kind]string{services.PostgreSQL: `ANALYZE`, services.MariaDB: `ANALYZE TABLE coupons, campaigns, changes, dead_letters, tickets`} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := kind.Server(t, append(kind.Fast(), map[services.Kind][]string{services.MariaDB: {"--userstat=1"}}[kind]...)...)
			for beside, statements := range map[string][]string{"alone": {analyze}, "beside others": {others, analyze}} {
				for what, gate := range map[string]string{"claims": "", "lines": "", "records": "redis:test"} {
					name, err := server.Database(t.Context())
					stage.Must(t, err)
					p := &planned{t: t}
					write := map[string]func(*Ledger, int){"claims": p.claims, "lines": p.lines, "records": p.records}[what]
					first := opened(t, name, gate)
					quantity(t, first, firstcome.Unlimited)
					write(first, 60)
					stage.Must(t, services.Execute(t.Context(), name, statements...))
					before, coupons := rowsRead(t, kind, name, first), int64(0)
					l := opened(t, name, gate) // on connections of its own
					for range 12 {
						write(l, 5)
						p.reads(l, 1)
					}
					for range 6 { // after five, PostgreSQL keeps a plan
						write(l, 256)
						p.reads(l, 256)
						coupons += 256
					}
					most := map[string]int64{"claims": 3, "lines": 6, "records": 3}[what] // a ticket is read to be found again, to be served, and to end
					if read := rowsRead(t, kind, name, l) - before; read > most*coupons {
						t.Errorf("%s %s: %d rows were read for %d coupons", what, beside, read, coupons)
					}
				}
			}
		})
	}
}

// others makes campaigns of one coupon each, whose users have long ids: so the key of coupons, which begins with the campaign, is
// smaller than the index of users, and to a plan for any campaign, of which most have one coupon, it looks better for a look-up.
const others = `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
	WITH RECURSIVE other AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM other WHERE n < 150)
	SELECT concat('other-', n), 1, concat('user-', n, repeat('x', 110)), '0123456789ABCDEF', 1, 1, 1, 1 FROM other`

// rowsRead closes ledgers, with which the server counts what their connections read, and returns how many
// rows of the ledger's tables were read until now.
func rowsRead(t *testing.T, kind services.Kind, name string, ledgers ...*Ledger) (rows int64) {
	t.Helper()
	for _, l := range ledgers {
		stage.Must(t, l.Close())
	}
	db, err := services.Open(name)
	stage.Must(t, err)
	defer db.Close()
	open, read := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'firstcome'`,
		`SELECT sum(seq_tup_read)::bigint + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes) FROM pg_stat_user_tables`
	if kind == services.MariaDB {
		open = `SELECT count(*) - 1 FROM information_schema.processlist WHERE db = database()`
		read = `SELECT sum(rows_read) FROM information_schema.table_statistics WHERE table_schema = database()`
	}
	for there := 1; there > 0; {
		stage.Must(t, db.QueryRowContext(t.Context(), open).Scan(&there))
	}
	stage.Must(t, db.QueryRowContext(t.Context(), read).Scan(&rows))
	return rows
}

// TestAPageReadsItsOwnRows reads pages of a campaign that has just sold out, of which the server has no statistics yet.
func TestAPageReadsItsOwnRows(t *testing.T) {
	t.Parallel()
	const coupons, limit = 20_000, 50
	pages := map[string]Page{"first": {}, "deep": {After: coupons / 2}, "with voided ones": {After: coupons / 2, Voided: true}, "voided only, which there are none of": {After: coupons - 1000, Voided: true, OnlyVoided: true}}
	for _, kind := range []services.Kind{services.PostgreSQL, services.MariaDB} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := kind.Server(t, append(kind.Fast(), map[services.Kind][]string{services.MariaDB: {"--userstat=1"}}[kind]...)...)
			name, err := server.Database(t.Context())
			stage.Must(t, err)
			first := opened(t, name, "")
			quantity(t, first, firstcome.Unlimited)
			stage.Must(t, services.Execute(t.Context(), name, fmt.Sprintf(`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
				WITH d AS (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9),
					n AS (SELECT 1 + a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n AS value FROM d a, d b, d c, d, d e)
				SELECT 'c', value, concat('user-', value), '0123456789ABCDEF', 1, 1, 1, value FROM n WHERE value <= %d`, coupons)))
			before := rowsRead(t, kind, name, first)
			for what, p := range pages {
				l, got := opened(t, name, ""), 0
				p.Limit = limit
				stage.Must(t, l.Reads.Coupons(t.Context(), "c", p, func(firstcome.Coupon) error { got++; return nil }))
				after := rowsRead(t, kind, name, l)
				if read := after - before; got != limit && !p.OnlyVoided || read > 2000 {
					t.Errorf("%s: %d coupons, %d rows were read", what, got, read)
				}
				before = after
			}
		})
	}
}
