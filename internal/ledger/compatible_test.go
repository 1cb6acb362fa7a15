package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF56TheReleaseBeforeServesWhereTheSchemaSaysSo has a newer release expand the schema, then contract it,
// and then lose what says so.
func TestF56TheReleaseBeforeServesWhereTheSchemaSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		db := services.Beside(t, migrated(t, name))
		execute(t, db, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`, `ALTER TABLE coupons ADD COLUMN weight INTEGER NOT NULL DEFAULT 1`)
		migrated(t, name)
		stage.Must(t, reader(t, name).Close())
		for _, c := range []struct{ statement, says string }{
			{`UPDATE compatibility SET compatible_from = 9998`, "9998"},
			{`DROP TABLE compatibility`, "compatible"},
		} {
			execute(t, db, c.statement)
			_, err := ledger.OpenShared(t.Context(), name)
			for _, got := range []string{openError(t, name), fmt.Sprint(err)} {
				if !strings.Contains(got, "run the newer firstcome") || !strings.Contains(got, c.says) {
					t.Errorf("after %s: %s", c.statement, got)
				}
			}
		}
	})
}
