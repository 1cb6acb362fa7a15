//go:build !check && (!race || soak)

package ledger_test

import (
	"testing"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestALedgerBehindAPoolerOfSessionsServes: PgBouncer refuses a connection that asks for lock_timeout at its start.
func TestALedgerBehindAPoolerOfSessionsServes(t *testing.T) {
	direct := migrated(t, services.PostgreSQL.Database(t))
	pooled := services.PgBouncer(t, direct, "session")
	found := examine(t, pooled)
	found.Want(t, doctor.OK, "settings", "sessions", "server", "writes")
	l, _ := serve(t, pooled, ledger.Options{})
	stage.Must(t, l.Campaigns.Create(t.Context(), "test", "c", stage.Terms(9)))
	stage.Same(t, "a claim", "issued:1", claim(t, l.Gate, "c", "mina"))
}

// TestAPoolerOfTransactionsIsFound: settings of one session would be those of another, and so would be its locks.
func TestAPoolerOfTransactionsIsFound(t *testing.T) {
	direct := migrated(t, services.PostgreSQL.Database(t))
	examine(t, services.PgBouncer(t, direct, "transaction")).Want(t, doctor.Fail, "sessions")
}
