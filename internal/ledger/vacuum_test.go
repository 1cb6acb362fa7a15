//go:build !check

package ledger_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestATransactionThatIsLeftOpenIsFound has a user read and write in a transaction, and another prepare one, and leave
// it so.
func TestATransactionThatIsLeftOpenIsFound(t *testing.T) {
	t.Parallel()
	server := services.PostgreSQL.Server(t, append(services.PostgreSQL.Fast(), "-c", "max_prepared_transactions=1")...)
	name := database(t, server, true)
	db := services.Beside(t, name)
	l := reader(t, name)
	oldest := func(least time.Duration) string {
		t.Helper()
		who, _, err := l.Reads.OldTransaction(t.Context(), least)
		stage.Must(t, err)
		return who
	}
	const what = "old transactions"
	stage.Same(t, "nothing is open", "", oldest(0))
	examine(t, name).Want(t, doctor.OK, what)
	execute(t, begin(t, db, `SELECT 1`), `SELECT 1`) // which keeps nothing
	stage.Same(t, "it read nothing that is kept", "", oldest(0))
	forgotten := begin(t, db, `CREATE TEMPORARY TABLE forgotten (id int)`)
	if who := oldest(0); !strings.Contains(who, "postgres, process ") || !strings.HasSuffix(who, "idle in transaction") {
		t.Errorf("found is %q", who)
	}
	stage.Same(t, "it is younger than an hour", "", oldest(time.Hour))
	blind := services.User(t, name)
	if found := examine(t, blind)[what]; found.Grade != doctor.Warn || !strings.Contains(found.Found, "unknown") {
		t.Errorf("a user without pg_monitor finds %+v", found)
	}
	stage.Must(t, forgotten.Rollback())
	stage.Same(t, "it has ended", "", oldest(0))
	execute(t, db, `BEGIN; INSERT INTO audit_log (at, actor, action, detail) VALUES (1, 'x', 'x', '{}'); PREPARE TRANSACTION 'left'`)
	stage.Same(t, "prepared", "postgres, prepared transaction left", oldest(0))
	execute(t, db, `ROLLBACK PREPARED 'left'`)
	stage.Same(t, "it has ended", "", oldest(0))
}

// TestClaimsWriteNoIndexOfTheirCampaignsRow looks for columns of PostgreSQL's indexes, and of their conditions, that
// claims or lines write. A version of a row whose indexed columns changed needs an entry in every index.
func TestClaimsWriteNoIndexOfTheirCampaignsRow(t *testing.T) {
	t.Parallel()
	db := services.Beside(t, migrated(t, services.PostgreSQL.Database(t)))
	var columns, options string
	stage.Must(t, db.QueryRowContext(t.Context(), `SELECT string_agg(DISTINCT a.attname, ' ' ORDER BY a.attname)
		FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND (a.attnum = ANY (i.indkey) OR EXISTS (
			SELECT FROM pg_depend d WHERE d.objid = i.indexrelid AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum))
		WHERE i.indrelid = 'campaigns'::regclass`).Scan(&columns))
	stage.Same(t, "columns of indexes", "forgotten_at gate has_line id", columns)
	stage.Must(t, db.QueryRowContext(t.Context(), `SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE oid = 'campaigns'::regclass`).Scan(&options))
	if !strings.Contains(options, "fillfactor=20") || !strings.Contains(options, "autovacuum_vacuum_scale_factor=0") {
		t.Errorf("the table has the options %s", options)
	}
}
