//go:build !check && (!race || soak)

package campaign

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
)

// TestServersLookUsersUpInTheIndexToo has planners that take the campaign for a small one, and would rather read all of it: MariaDB has
// statistics of a time when there was one coupon, and PostgreSQL has none.
func TestServersLookUsersUpInTheIndexToo(t *testing.T) {
	queries := map[services.Kind]string{
		services.MariaDB: sqldb.Repeated(lookMySQLQuery, `?`, 64), services.PostgreSQL: lookPostgreSQLQuery,
	}
	for kind, query := range queries {
		t.Run(string(kind), func(t *testing.T) {
			d := opened(t, kind.Database(t))
			rows := 2000
			if kind == services.MariaDB {
				rows = 1
			}
			insert(t, d, rows, func(n int) string {
				return fmt.Sprintf(`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
					VALUES ('c', %d, 'user-%d', '0123456789ABCDEF', 1, 1, 1, %d)`, n+1, n, n+1)
			})
			if kind == services.MariaDB {
				insert(t, d, 1, func(int) string { return `ANALYZE TABLE coupons` })
			}
			args := []any{}
			for n := range 64 {
				args = append(args, fmt.Sprint("user-", n))
			}
			if kind == services.PostgreSQL {
				args = []any{[]string{"user-1", "user-2"}}
			}
			if plan := explain(t, d, query, append(args, "c")...); !strings.Contains(plan, "coupons_p3_one_per_user") || strings.Contains(plan, "Seq Scan on coupons") {
				t.Errorf("users are looked up by:\n%s", plan)
			}
		})
	}
}
