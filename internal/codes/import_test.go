package codes_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/codes"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP11AFrozenImportThatWakesUpBehindAnotherAddsNothing freezes an import until another one of the same list is done.
func TestP11AFrozenImportThatWakesUpBehindAnotherAddsNothing(t *testing.T) {
	for kind, database := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := database(t)
			l, err := ledger.Open(t.Context(), name, ledger.Options{Owner: "a test", Secret: stage.Secret()})
			stage.Must(t, err)
			stage.Serve(t, l)
			stage.Must(t, l.Campaigns.Create(t.Context(), "test", "c", firstcome.Terms{Name: "c", Quantity: 9, Answer: firstcome.Recorded, Imported: true}))
			frozen, err := l.Codes.Freeze(t.Context(), "c", "", []string{"A-1", "A-2"})
			stage.Must(t, err)
			if _, err := l.Codes.Import(t.Context(), "test", "c", "", []string{"B-1"}); !errors.Is(err, firstcome.ErrImportRunning) {
				t.Errorf("another import while the first writes: %v", err)
			}
			stage.Must(t, stage.Err(services.Beside(t, name).Exec(`UPDATE code_lists SET importing_at = 1`))) // it has written nothing for long
			done, err := l.Codes.Import(t.Context(), "test", "c", "", []string{"B-1"})
			stage.Must(t, err)
			stage.Same(t, "the other import", codes.Imported{Added: 1, Entries: 1}, done)
			if appended, ended := frozen.Continue(t.Context()); !errors.Is(appended, firstcome.ErrImportRunning) || !errors.Is(ended, firstcome.ErrImportRunning) {
				t.Errorf("the frozen import: %v, %v", appended, ended)
			}
			done, err = l.Codes.Import(t.Context(), "test", "c", "", []string{"A-1", "A-2"})
			stage.Must(t, err)
			stage.Same(t, "the list", codes.Imported{Added: 2, Entries: 3}, done)
		})
	}
}

// TestEachStepOfAnImportMayBeRepeated repeats each step, as after a commit whose outcome is unknown.
func TestEachStepOfAnImportMayBeRepeated(t *testing.T) {
	for kind, database := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l, err := ledger.Open(t.Context(), database(t), ledger.Options{Owner: "a test", Secret: stage.Secret()})
			stage.Must(t, err)
			stage.Serve(t, l)
			stage.Must(t, l.Campaigns.Create(t.Context(), "test", "c", firstcome.Terms{Name: "c", Quantity: 9, Answer: firstcome.Recorded, Imported: true}))
			twice, err := l.Codes.Freeze(t.Context(), "c", "", []string{"A-1", "A-2"})
			stage.Must(t, err)
			stage.Must(t, twice.Again(t.Context()))
			for range 2 {
				appended, ended := twice.Continue(t.Context())
				stage.Must(t, errors.Join(appended, ended))
			}
			log, err := l.Reads.AuditLog(t.Context(), ledger.LogFilter{Campaign: "c", Limit: 10})
			stage.Must(t, err)
			log = slices.DeleteFunc(log, func(e ledger.LogEntry) bool { return e.Action != "codes.import" })
			stage.Same(t, "lines of the audit log about the import", 1, len(log))
			done, err := l.Codes.Import(t.Context(), "test", "c", "", []string{"B-1"})
			stage.Must(t, err)
			stage.Same(t, "the list after another import", codes.Imported{Added: 1, Entries: 3}, done)
			done, err = l.Codes.Import(t.Context(), "test", "c", "", []string{"A-1", "A-2", "B-1"})
			stage.Must(t, err)
			stage.Same(t, "its codes in their order", codes.Imported{Added: 0, Entries: 3}, done)
		})
	}
}
