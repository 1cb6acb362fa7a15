package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
)

// TestUsersAreLookedUpInTheIndex holds the plan of every width: without a hint,
// SQLite read the whole campaign for more than one user.
func TestUsersAreLookedUpInTheIndex(t *testing.T) {
	secret, err := firstcome.NewSecret(make([]byte, firstcome.MinSecret))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(context.Background(), filepath.Join(t.TempDir(), "firstcome.db"), Options{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for width, query := range lookQueries {
		var id, parent, unused int
		var plan string
		args := make([]any, width+1)
		if err := l.read.db.QueryRow(`EXPLAIN QUERY PLAN `+query, args...).Scan(&id, &parent, &unused, &plan); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, "coupons_p3_one_per_user (user_id=? AND campaign_id=?)") {
			t.Errorf("%d users are looked up by: %s", width, plan)
		}
	}
}

// TestServersLookUsersUpInTheIndexToo fills a campaign without telling the server's
// planner, which would then rather read all of it.
func TestServersLookUsersUpInTheIndexToo(t *testing.T) {
	queries := map[services.Kind]string{
		services.MariaDB: repeated(lookMySQLQuery, `?`, 64), services.PostgreSQL: postgreSQL.rebind(lookPostgreSQLQuery),
	}
	for kind, query := range queries {
		t.Run(string(kind), func(t *testing.T) {
			secret, err := firstcome.NewSecret(make([]byte, firstcome.MinSecret))
			if err != nil {
				t.Fatal(err)
			}
			l, err := Open(t.Context(), kind.Database(t), Options{Secret: secret})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if _, err := l.Create(t.Context(), "test", "c", firstcome.Terms{Name: "Test", Quantity: firstcome.Unlimited, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}); err != nil {
				t.Fatal(err)
			}
			users := make([]firstcome.UserID, 2000)
			for n := range users {
				users[n] = firstcome.UserID(fmt.Sprint("user-", n))
			}
			if _, err := l.Claim(t.Context(), "c", users); err != nil {
				t.Fatal(err)
			}
			args := []any{}
			for _, user := range users[:64] {
				args = append(args, string(user))
			}
			if kind == services.PostgreSQL {
				args = []any{[]string{"user-1", "user-2"}}
			}
			if plan := explain(t, l, query, append(args, "c")); !strings.Contains(plan, "coupons_p3_one_per_user") || strings.Contains(plan, "Seq Scan on coupons") {
				t.Errorf("users are looked up by:\n%s", plan)
			}
		})
	}
}

// explain returns what the server says of how it runs a query.
func explain(t *testing.T, l *Ledger, query string, args []any) (plan string) {
	t.Helper()
	rows, err := l.write.Query(`EXPLAIN `+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for n := range cells {
			into[n] = &cells[n]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for n, cell := range cells {
			if columns[n] != "possible_keys" {
				plan += cell.String + " "
			}
		}
		plan += "\n"
	}
	return plan
}
