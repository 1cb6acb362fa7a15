package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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
	commits  int      // of OnCommit; who reads these two waits for the writer first
	refusals []string // that it told
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
		l.commits++
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

// TestARowThatIsRefusedKeepsNoOtherBehind has the schema refuse the row of one campaign, and a hand
// delete another, while those of a hundred are behind.
func TestARowThatIsRefusedKeepsNoOtherBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "firstcome.db")
		l, stop := haltingLedger(t, path, nil)
		defer stop()
		db := raw(t, path)
		defer db.Close()
		const campaigns = 100
		for n := range campaigns {
			id := firstcome.CampaignID(fmt.Sprint("c", n))
			create(t, l.Ledger, id, 5)
			claim(t, l.Ledger, id, "a")
		}
		for _, s := range []string{
			`CREATE TRIGGER refuse BEFORE UPDATE ON campaigns WHEN NEW.id = 'c7' BEGIN SELECT RAISE(ABORT, 'not this row'); END`,
			`DELETE FROM campaigns WHERE id = 'c8'`,
		} {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		var follow int
		if err := db.QueryRow(`SELECT sum(last_number) FROM campaigns`).Scan(&follow); err != nil {
			t.Fatal(err)
		}
		same(t, "rows that follow", campaigns-2, follow)
		if len(l.refusals) != 1 || !strings.Contains(l.refusals[0], "the row of c7") || !strings.Contains(l.refusals[0], "not this row") {
			t.Errorf("told: %q", l.refusals)
		}
	})
}

// TestWhoComesWhileTheLastRowsFollowIsAnswered has a claim come while a ledger that is to stop
// brings up its rows.
func TestWhoComesWhileTheLastRowsFollowIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "firstcome.db")
		l, stop := haltingLedger(t, path, nil)
		create(t, l.Ledger, "c", 5)
		claim(t, l.Ledger, "c", "a")
		l.during(stop, func() { same(t, "the last claim", "issued:2", claim(t, l.Ledger, "c", "b")) })
		db := raw(t, path)
		defer db.Close()
		var row int
		if err := db.QueryRow(`SELECT last_number FROM campaigns`).Scan(&row); err != nil || row != 2 {
			t.Errorf("the row has %d: %v", row, err)
		}
	})
}

// TestWhoComesAloneWaitsForNoRow has one user claim after the other while rows are brought up: those are
// nobody who would come again.
func TestWhoComesAloneWaitsForNoRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stop := haltingLedger(t, filepath.Join(t.TempDir(), "firstcome.db"), nil)
		defer stop()
		create(t, l.Ledger, "c", 1000)
		for n := range 20 { // whether the row or the claim that waits comes first is drawn
			ask := func(what string) func() {
				return func() { claim(t, l.Ledger, "c", firstcome.UserID(fmt.Sprint(what, n))) }
			}
			claim(t, l.Ledger, "c", firstcome.UserID(fmt.Sprint(n)))
			l.during(ask("first"), ask("second"))
			came := time.Now()
			ask("third")()
			if waited := time.Since(came); waited != 0 {
				t.Fatalf("in round %d the claim waited for %v", n, waited)
			}
		}
	})
}

// TestARowThatAKillLeftBehindFollowsAnyClaim puts rows back, as a kill leaves them, and has users
// claim who are issued nothing.
func TestARowThatAKillLeftBehindFollowsAnyClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "firstcome.db")
		l, stop := haltingLedger(t, path, nil)
		create(t, l.Ledger, "c", 2)
		claim(t, l.Ledger, "c", "a", "b")
		stop()
		db := raw(t, path)
		defer db.Close()
		if _, err := db.Exec(`UPDATE campaigns SET in_force = 0, issued = 0, last_number = 0, position = 0`); err != nil {
			t.Fatal(err)
		}
		l, stop = haltingLedger(t, path, nil)
		defer stop()
		same(t, "claims", "sold_out:0 already_issued:1", claim(t, l.Ledger, "c", "d", "a"))
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		var row [4]int
		err := db.QueryRow(`SELECT in_force, issued, last_number, position FROM campaigns`).Scan(&row[0], &row[1], &row[2], &row[3])
		if err != nil || slices.Min(row[:]) != 2 || slices.Max(row[:]) != 2 {
			t.Errorf("the row is %v: %v", row, err)
		}

		before := l.commits
		same(t, "a claim", "sold_out:0", claim(t, l.Ledger, "c", "d"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		same(t, "what is written behind a row that is not behind", before, l.commits)
	})
}

// TestRowsFollowWhileClaimsGoOn claims ten times a second: each time the row is as it was a second before.
func TestRowsFollowWhileClaimsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "firstcome.db")
		l, stop := haltingLedger(t, path, nil)
		defer stop()
		create(t, l.Ledger, "c", 1000)
		db := raw(t, path)
		defer db.Close()
		for n := range 50 {
			claim(t, l.Ledger, "c", firstcome.UserID(fmt.Sprint(n)))
			var row int
			if err := db.QueryRow(`SELECT last_number FROM campaigns`).Scan(&row); err != nil || row < n-10 {
				t.Fatalf("the row has %d of %d coupons: %v", row, n+1, err)
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
	})
}

// TestRowsFollowOnceTheyCanBeWritten has SQLite fail to write rows, as on a broken disk, twice: the
// first time it heals, the second time the ledger is stopped meanwhile.
func TestRowsFollowOnceTheyCanBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "firstcome.db")
		l, stop := haltingLedger(t, path, nil)
		create(t, l.Ledger, "c", 9)
		db := raw(t, path)
		defer db.Close()
		broken := func(do func()) {
			for _, s := range []string{`CREATE TRIGGER broken BEFORE UPDATE ON campaigns BEGIN SELECT json('none'); END`, `DROP TRIGGER broken`} {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
				do()
				do = func() {}
			}
		}
		row := func() (number int) {
			if err := db.QueryRow(`SELECT last_number FROM campaigns`).Scan(&number); err != nil {
				t.Fatal(err)
			}
			return number
		}
		broken(func() {
			claim(t, l.Ledger, "c", "a")
			time.Sleep(10500 * time.Millisecond)
			synctest.Wait()
			same(t, "times that it was told", 10, len(l.refusals))
			same(t, "another claim", "issued:2", claim(t, l.Ledger, "c", "b"))
		})
		same(t, "the row", 0, row())
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		same(t, "the row a second after it could be written", 2, row())

		claim(t, l.Ledger, "c", "d")
		broken(stop)
		same(t, "the row that a stop could not write", 2, row())
		l, stop = haltingLedger(t, path, nil)
		defer stop()
		same(t, "claims", "already_issued:3 issued:4", claim(t, l.Ledger, "c", "d", "e"))
	})
}
