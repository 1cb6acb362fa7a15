package ledger

import (
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestVoidsOfAUserAreReadByTheirIndex has a campaign with one void, where MariaDB would take the index of the campaign, and one with thousands.
func TestVoidsOfAUserAreReadByTheirIndex(t *testing.T) {
	for kind, at := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			for _, voids := range []int{1, 3000} {
				l := opened(t, at(t), "")
				services.FillVoids(t, l.db.Write, voids)
				plan, err := services.Explain(t.Context(), l.db.Write, l.db.Dialect.Rebind(voidsOfQuery), "user-7", "c", 0, maxFound)
				stage.Must(t, err)
				if !strings.Contains(plan, "audit_log_user") || strings.Contains(plan, "audit_log_campaign") {
					t.Errorf("%d voids are read by:\n%s", voids, plan)
				}
			}
		})
	}
}

// TestChangesOfACampaignAreReadByTheirIndex has a campaign with thousands of voids, which a report must not read to find its changes.
func TestChangesOfACampaignAreReadByTheirIndex(t *testing.T) {
	for kind, at := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			l := opened(t, at(t), "")
			services.FillVoids(t, l.db.Write, 3000)
			query, args := (&LogFilter{Campaign: "c", CampaignOnly: true, Limit: 21}).query()
			plan, err := services.Explain(t.Context(), l.db.Write, l.db.Dialect.Rebind(query), args...)
			stage.Must(t, err)
			if !strings.Contains(plan, "audit_log_of_campaign") || strings.Contains(plan, "audit_log_campaign") {
				t.Errorf("changes are read by:\n%s", plan)
			}
		})
	}
}
