package ledger_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

func TestTheCountsAreTheOpenDeadLettersAndTheChangesThatTheGateLacks(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		counts := func(l *ledger.Ledger, what string, want ledger.Counts) {
			t.Helper()
			got, err := l.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			same(t, what, want, got)
		}
		l := remote(t, name, 10)
		counts(l, "at first", ledger.Counts{Pending: 1})
		if err := l.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 1}, false); err != nil {
			t.Fatal(err)
		}
		bury(t, l, "refused", decided(t, 1))
		bury(t, l, "refused", decided(t, 2))
		counts(l, "with two letters", ledger.Counts{Letters: 2})
		if _, err := l.Switch(t.Context(), "test", "c", ledger.Pause); err != nil {
			t.Fatal(err)
		}
		if _, err := beside(t, name).Exec(`UPDATE dead_letters SET resolved_at = 1, resolved_by = 'replayed' WHERE number = 1`); err != nil {
			t.Fatal(err)
		}
		counts(l, "with a pause on its way", ledger.Counts{Letters: 1, Pending: 1})
		if _, err := beside(t, name).Exec(`UPDATE campaigns SET gate = 'redis:other'`); err != nil {
			t.Fatal(err)
		}
		counts(l, "of another gate", ledger.Counts{Letters: 1})
	})
}
