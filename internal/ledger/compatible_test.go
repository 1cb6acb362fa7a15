package ledger_test

import (
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF56OnServersTheReleaseBeforeServesWhereTheSchemaSaysSo has a newer release
// expand the schema, and then contract it.
func TestF56OnServersTheReleaseBeforeServesWhereTheSchemaSaysSo(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			name := kind.Database(t)
			open := func() error {
				l, err := ledger.Open(t.Context(), name, ledger.Options{Owner: "test", Secret: secret(t)})
				if err == nil {
					err = l.Close()
				}
				return err
			}
			stage.Must(t, open())
			db, err := services.Open(name)
			stage.Must(t, err)
			defer db.Close()
			alter := func(statements ...string) {
				t.Helper()
				for _, statement := range statements {
					if _, err := db.ExecContext(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				}
			}
			alter(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`, `ALTER TABLE coupons ADD COLUMN weight BIGINT NOT NULL DEFAULT 1`)
			if err := open(); err != nil {
				t.Errorf("on an expanded schema: %v", err)
			}
			alter(`UPDATE compatibility SET compatible_from = 9999`)
			if err := open(); err == nil || !strings.Contains(err.Error(), "run the newer firstcome") {
				t.Errorf("on a contracted schema: %v", err)
			}
		})
	}
}
