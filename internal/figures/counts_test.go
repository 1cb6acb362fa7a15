package figures_test

import (
	"context"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestHowManyAskedIsKeptOverARestart restarts nodes, also under another name, and after another node took over their row. Each claim is always
// counted once.
func TestHowManyAskedIsKeptOverARestart(t *testing.T) {
	for kind, of := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := of(t)
			l, err := ledger.Open(t.Context(), name, ledger.Options{Owner: "a test", Secret: stage.Secret()})
			stage.Must(t, err)
			stage.Serve(t, l)
			ended, end := context.WithCancel(t.Context())
			end()
			asks := func(when string, at *figures.Board, more int, want uint64) {
				t.Helper()
				for range more {
					at.Counter.Claimed("spring", firstcome.SoldOut, time.Millisecond)
				}
				stage.Must(t, at.Run(ended)) // its last row
				stage.Same(t, when, want, figures.NewWatcher(l.Reads, nil, at).Claims(t.Context(), "spring")["sold_out"])
			}
			first := boardOn(l.Deployment, "a")
			asks("some asked", first, 3, 3)
			asks("more asked", first, 2, 5)
			asks("it began again", boardOn(l.Deployment, "a"), 1, 6)
			again := boardOn(l.Deployment, "a")
			asks("it began once more", again, 0, 6)
			other := boardOn(l.Deployment, "b")
			asks("another one began", other, 10, 16)
			stage.Must(t, stage.Err(services.Beside(t, name).ExecContext(t.Context(), `UPDATE nodes SET seen_at = seen_at - 3601000000 WHERE host = 'a'`)))
			asks("the first one is gone for good", other, 0, 16)
			asks("a third one took its row", boardOn(l.Deployment, "c"), 100, 116)
			back := again
			if kind == services.SQLite { // only one is there at a time
				back = other
			}
			asks("it finds that it has no row", back, 0, 116)
			asks("it has one again", back, 1, 117)
		})
	}
}
