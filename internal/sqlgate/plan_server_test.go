//go:build !check && (!race || soak)

package sqlgate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestMariaDBLooksTicketsUpInTheIndexToo is campaign's TestServersLookUsersUpInTheIndexToo for tickets.
func TestMariaDBLooksTicketsUpInTheIndexToo(t *testing.T) {
	d := analysed(t, services.MariaDB.Database(t), `ANALYZE TABLE tickets`)
	args := []any{}
	for n := range 64 {
		args = append(args, fmt.Sprint("user-", n))
	}
	plan, err := services.Explain(t.Context(), d.Write, sqldb.Repeated(lookTicketsMySQLQuery, `?`, len(args)), append(args, "c", 1)...)
	stage.Must(t, err)
	if !strings.Contains(plan, "tickets_p9_one_per_user") {
		t.Errorf("tickets are looked up by:\n%s", plan)
	}
}
