//go:build !check

package services_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

// TestAStandbyLagsCatchesUpAndIsPromoted writes to a primary and reads from its standby.
func TestAStandbyLagsCatchesUpAndIsPromoted(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			primary := kind.Primary(t)
			name, err := primary.Database(t.Context())
			must(t, err)
			must(t, put(t.Context(), name, "before"))
			standby := primary.Standby(t)
			copied, err := standby.At(name)
			must(t, err)
			has := func(want int) {
				t.Helper()
				db, err := services.Open(copied)
				must(t, err)
				defer db.Close()
				var got int
				if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM kept").Scan(&got); err != nil || got != want {
					t.Errorf("the standby has %d rows, %v, and should have %d", got, err, want)
				}
			}
			has(1)
			must(t, standby.Lag(t.Context()))
			must(t, put(t.Context(), name, "behind"))
			has(1)
			must(t, standby.CatchUp(t.Context()))
			has(2)
			must(t, primary.Demote(t.Context()))
			must(t, standby.Promote(t.Context()))
			must(t, put(t.Context(), copied, "written"))
			has(3)
		})
	}
}
