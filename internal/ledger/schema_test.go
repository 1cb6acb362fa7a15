package ledger_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestAFileOfSomethingElseIsRefusedAndStaysAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	theirs := services.Beside(t, path)
	execute(t, theirs, `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT)`)
	wantAdvice(t, openError(t, path), "orders", "name another file")
	var tables int
	if err := theirs.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'`).Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d tables, %v", tables, err)
	}
}

func TestF64ALedgersPasswordIsShownNowhere(t *testing.T) {
	for _, name := range []string{
		"mysql://root:hunter2@127.0.0.1:1/firstcome", "mariadb://root:hunter2@127.0.0.1:1/firstcome?tls=nonsense",
		"mysql://root:hunter2@127.0.0.1:1/firstcome?password=hunter2", "mysql://root:hunt%er2@h/d", "mysql://root:hunter2@127.0.0.1:1",
		"postgres://root:hunter2@127.0.0.1:1/firstcome", "postgresql://root:hunter2@127.0.0.1:1/firstcome?sslmode=nonsense",
		"postgres://root:hunter2@127.0.0.1:port/firstcome", "postgres://127.0.0.1:1/firstcome?user=root&password=hunter2",
	} {
		for what, text := range map[string]string{"opening": openError(t, name), "showing": sqldb.Masked(name)} {
			if strings.Contains(text, "hunter2") || strings.Contains(text, "er2") {
				t.Errorf("%s %s says %q", what, name, text)
			}
		}
	}
	for name, want := range map[string]string{
		"sqlite:firstcome.db":                           "sqlite:firstcome.db",
		"mysql://root:hunter2@db:3306/firstcome":        "mysql://root@db:3306/firstcome",
		"postgres://db/firstcome?password=hunter2":      "postgres://db/firstcome",
		"mysql://root:hunt%er2@db:3306/firstcome":       "a ledger whose name cannot be read",
		(&url.URL{Scheme: "mysql", Host: "h"}).String(): "a ledger whose name cannot be read",
	} {
		stage.Same(t, name, want, sqldb.Masked(name))
	}
}

// TestF57F28UsersAreTheirBytesInTheTablesToo claims with ids that lax columns take for
// the same, and then writes what would break a promise, as an intruder would.
func TestF57F28UsersAreTheirBytesInTheTablesToo(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, db := start(t, name, nil), services.Beside(t, name)
		create(t, l, "c", firstcome.Unlimited)
		ids := users("user1", "User1", "user1 ", "us\u00e9r", "use\u0301r", "007", "7", firstcome.UserID(strings.Repeat("\U0001F380", 32)))
		claim(t, l.Gate, "c", ids...)
		for n, user := range ids {
			c, err := l.Gate.CouponOf(t.Context(), "c", user)
			if err != nil || c.Number != int64(n+1) || c.User != user {
				t.Errorf("%q has %+v, %v", user, c, err)
			}
		}
		const insert = `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES `
		for promise, statement := range map[string]string{
			"P1": `UPDATE campaigns SET quantity = 3 WHERE id = 'c'`,
			"P3": insert + `('c', 99, 'user1', 'x', 1, 1, 1, 99)`,
			"P4": insert + `('c', 2, 'z', 'x', 1, 1, 1, 99)`,
		} {
			if _, err := db.Exec(statement); err == nil {
				t.Errorf("the schema takes what would break %s", promise)
			}
		}
		execute(t, db, insert+`('c', 99, 'USER1', 'x', 1, 1, 1, 99)`) // which is another user
	})
}
