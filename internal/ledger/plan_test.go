package ledger

import (
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestVoidsOfAUserAreReadByTheirIndex has a campaign with thousands of voids, of which a user has few.
func TestVoidsOfAUserAreReadByTheirIndex(t *testing.T) {
	for kind, at := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			l := opened(t, at(t), "")
			services.FillVoids(t, l.db.Write, 3000)
			plan, err := services.Explain(t.Context(), l.db.Write, l.db.Dialect.Rebind(voidsOfQuery), "user-7", "c", 0, maxFound)
			stage.Must(t, err)
			if !strings.Contains(plan, "audit_log_user") || strings.Contains(plan, "audit_log_campaign") {
				t.Errorf("the voids are read by:\n%s", plan)
			}
		})
	}
}
