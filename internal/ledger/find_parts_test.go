//go:build !check && (!race || soak)

package ledger_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestACodeIsLookedForInParts has a campaign of more numbers than are tried at once. The last one's
// code is found by who goes on. Meanwhile nobody else looks for one.
func TestACodeIsLookedForInParts(t *testing.T) {
	t.Parallel()
	const last = 5_000_001
	name := services.Ledgers[services.SQLite](t) // no database has a part in it
	l, stop := serve(t, name, ledger.Options{})
	create(t, l, "c", firstcome.Unlimited)
	claim(t, l.Gate, "c", "a")
	stop()
	db := services.Beside(t, name)
	for _, change := range []string{
		`UPDATE coupons SET number = 5000001, position = 5000001, code = '` + stage.Secret().Code("c", last) + `'`,
		`UPDATE campaigns SET last_number = 5000001, issued = 1, position = 5000001`,
	} {
		execute(t, db, change)
	}
	l = start(t, name, nil)
	choice := ledger.Choice{Code: stage.Secret().Code("c", last)}
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for ctx.Err() == nil {
			_, _, _ = l.Reads.Find(ctx, "c", choice)
		}
	})
	stage.Await(t, "somebody else's turn", true, func() bool {
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, _, err := l.Reads.Find(soon, "c", choice)
		return errors.Is(err, ledger.ErrSearching) && errors.Is(err, firstcome.ErrBusy)
	})
	cancel()
	busy.Wait()
	found, next, err := l.Reads.Find(t.Context(), "c", choice)
	if err != nil || len(found) != 0 || next != last-1 {
		t.Fatalf("at first it finds %v, next %d, %v", found, next, err)
	}
	choice.After = next
	found, next, err = l.Reads.Find(t.Context(), "c", choice)
	if err != nil || len(found) != 1 || found[0].Number != last || next != 0 {
		t.Errorf("then it finds %v, next %d, %v", found, next, err)
	}
}
