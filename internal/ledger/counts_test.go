package ledger_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestTheCountsAreTheOpenDeadLettersAndTheChangesThatTheGateLacks(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		counts := func(l *ledger.Ledger, what string, want ledger.Counts) {
			t.Helper()
			got, err := l.Reads.Counts(t.Context())
			stage.Must(t, err)
			stage.Same(t, what, want, got)
		}
		l := remote(t, name, 10)
		counts(l, "at first", ledger.Counts{Pending: 1})
		stage.Must(t, l.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 1}, false))
		bury(t, l, "refused", stage.Coupon("c", 1))
		bury(t, l, "refused", stage.Coupon("c", 2))
		counts(l, "with two letters", ledger.Counts{Letters: 2})
		stage.Must(t, stage.Err(l.Campaigns.ChangeState(t.Context(), "test", "c", 0, firstcome.ChangePause)))
		execute(t, services.Beside(t, name), `UPDATE dead_letters SET resolved_at = 1, resolved_by = 'replayed' WHERE number = 1`)
		counts(l, "with a pause on its way", ledger.Counts{Letters: 1, Pending: 1})
		execute(t, services.Beside(t, name), `UPDATE campaigns SET gate = 'redis:other'`)
		counts(l, "of another gate", ledger.Counts{Letters: 1})
	})
}
