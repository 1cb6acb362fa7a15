package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A halting ledger's writer stands still behind the next transaction, for as long as it is told to.
type halting struct {
	*ledger.Ledger
	halt     atomic.Bool
	halts    chan struct{}
	goOn     chan struct{}
	refusals []string // that OnCommit told; whoever reads them waits for the writer first
}

// haltingLedger must be called in a synctest bubble, and so must what it returns.
func haltingLedger(t *testing.T, path string, clock func() time.Time) (l *halting, stop func()) {
	t.Helper()
	l = &halting{halts: make(chan struct{}), goOn: make(chan struct{})}
	var err error
	if l.Ledger, err = ledger.Open(context.Background(), path, ledger.Options{Secret: secret(t), Clock: clock}); err != nil {
		t.Fatal(err)
	}
	l.OnCommit = func(_ int, _ time.Duration, err error) {
		if err != nil {
			l.refusals = append(l.refusals, err.Error())
		}
		if l.halt.CompareAndSwap(true, false) {
			l.halts <- struct{}{}
			<-l.goOn
		}
	}
	return l, run(t, l.Ledger)
}

// during has the writer stand still behind a transaction of begin while each of waiting begins, in this
// order, and returns when all are done.
func (l *halting) during(begin func(), waiting ...func()) {
	var all sync.WaitGroup
	l.halt.Store(true)
	all.Go(begin)
	<-l.halts
	for _, do := range waiting {
		all.Go(do)
		time.Sleep(2 * time.Second) // now it waits for the writer, and rows are due
	}
	l.goOn <- struct{}{}
	all.Wait()
}

// TestALetterFromTheDaysOfAnotherGateLeavesTheRowAsItIs replays a dead letter that another
// gate left behind in the transaction in which the row of a campaign with its id is written.
func TestALetterFromTheDaysOfAnotherGateLeavesTheRowAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "firstcome.db")
		before, err := ledger.Open(context.Background(), path, ledger.Options{Secret: secret(t), Gate: "redis:test"})
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, before)
		bury(t, before, "there is no such campaign", decided(t, 9))
		letter := letters(t, before, ledger.Letters{})[0].ID
		stop()

		l, stop := haltingLedger(t, path, nil)
		defer stop()
		closes := time.Now().Add(time.Minute)
		terms := firstcome.Terms{Name: "Test", Quantity: 5, ClosesAt: closes, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
		if _, err := l.Create(t.Context(), "test", "c", terms); err != nil {
			t.Fatal(err)
		}
		create(t, l.Ledger, "other", 5)
		claim(t, l.Ledger, "c", "a", "b")
		time.Sleep(time.Minute)
		l.during(func() { claim(t, l.Ledger, "other", "a") }, func() {
			same(t, "at the end of the window", "closed:0", claim(t, l.Ledger, "c", "d")) // which writes the row
		}, func() {
			if _, err := l.Replay(context.Background(), "test", letter); !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("the letter was replayed: %v", err)
			}
		})
		same(t, "afterwards", "already_issued:1 closed:0", claim(t, l.Ledger, "c", "a", "e"))
		if s, err := l.Campaign(t.Context(), "c"); err != nil || s.InForce != 2 || s.LastNumber != 2 || s.Now.Before(closes) {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
