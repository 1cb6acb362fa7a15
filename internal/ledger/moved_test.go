//go:build linux

package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// A mishap takes one of the ledger's names away, and undo gives it back.
type mishap struct{ do, undo func(*testing.T) error }

// mishaps returns what may happen to the file data/firstcome.db in dir, which a server has open by the link link.db.
func mishaps(dir string) map[string]mishap {
	at := func(name string) string { return filepath.Join(dir, name) }
	move := func(from, to string) mishap {
		return mishap{
			func(*testing.T) error { return os.Rename(at(from), at(to)) },
			func(*testing.T) error { return os.Rename(at(to), at(from)) },
		}
	}
	file := move("data/firstcome.db", "elsewhere.db")
	return map[string]mishap{
		"the file is moved":        file,
		"the log is moved":         move("data/firstcome.db-wal", "elsewhere-wal"),
		"the log's index is moved": move("data/firstcome.db-shm", "elsewhere-shm"),
		"the directory is moved":   move("data", "moved"),
		"another file takes its place": {
			func(t *testing.T) error {
				copied, err := os.ReadFile(at("data/firstcome.db"))
				stage.Must(t, err)
				return errors.Join(file.do(t), os.WriteFile(at("data/firstcome.db"), copied, 0o600))
			},
			file.undo,
		},
		"the link leads elsewhere": {
			func(*testing.T) error {
				return errors.Join(os.Remove(at("link.db")), os.Symlink("other.db", at("link.db")))
			},
			func(*testing.T) error {
				return errors.Join(os.Remove(at("link.db")), os.Symlink("data/firstcome.db", at("link.db")))
			},
		},
	}
}

// TestF67AMovedLedgerAnswersNothingUntilItIsBack claims and reads after each mishap: once when the look of each second has
// found it, and once at the same moment. Then everything that was answered is there, also after a restart.
func TestF67AMovedLedgerAnswersNothingUntilItIsBack(t *testing.T) {
	t.Parallel()
	for what := range mishaps("") {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			name := filepath.Join(dir, "link.db")
			stage.Must(t, errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o700), os.Symlink("data/firstcome.db", name)))
			moves := make(chan error, 1)
			l, stop := serve(t, name, ledger.Options{OnMove: func(err error) { moves <- err }})
			create(t, l, "c", 100)
			m, answered := mishaps(dir)[what], map[firstcome.UserID]int64{}
			for n, first := range []string{"look", "claim"} {
				user := firstcome.UserID(first)
				claim(t, l.Gate, "c", user)
				answered[user] = int64(n + 1)
				stage.Must(t, m.do(t))
				if first == "look" {
					wantMove(t, <-moves)
				}
				for _, user := range []firstcome.UserID{user, "another"} {
					if d, err := l.Gate.Claim(t.Context(), "c", []firstcome.UserID{user}); err == nil {
						t.Errorf("%s is answered %v", user, d)
					}
				}
				if first == "claim" {
					wantMove(t, <-moves)
				}
				wantNoReads(t, l)
				stage.Must(t, m.undo(t))
				if err := <-moves; err != nil {
					t.Errorf("the file is back: %v", err)
				}
			}
			sound(t, l, answered)
			stop()
			sound(t, start(t, name, nil), answered)
		})
	}
}

func wantMove(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("nothing is said of the mishap")
	}
	wantAdvice(t, err.Error(), "moved or deleted", "Move it back", "do not stop it")
}

// wantNoReads wants errors of each way to read: a row, rows, and a snapshot.
func wantNoReads(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	_, rows := l.Reads.Campaigns(t.Context(), "", 1)
	for way, err := range map[string]error{
		"a row": l.Ping(t.Context()), "rows": rows,
		"a snapshot": l.Reads.Coupons(t.Context(), "c", ledger.Page{}, func(firstcome.Coupon) error { return nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), "moved or deleted") {
			t.Errorf("%s is read: %v", way, err)
		}
	}
}

// TestF67AFileThatMovesDuringATransactionIsNoAnswer moves the file once a claim's transaction reads the clock.
func TestF67AFileThatMovesDuringATransactionIsNoAnswer(t *testing.T) {
	t.Parallel()
	name := file(t)
	var moves atomic.Bool
	l := start(t, name, func() time.Time {
		if moves.CompareAndSwap(true, false) {
			stage.Must(t, os.Rename(name, name+".elsewhere"))
		}
		return time.Now()
	})
	create(t, l, "c", 2)
	moves.Store(true)
	if d, err := l.Gate.Claim(t.Context(), "c", []firstcome.UserID{"u"}); err == nil {
		t.Errorf("it is answered %v", d)
	}
	stage.Must(t, os.Rename(name+".elsewhere", name))
	if got := claim(t, l.Gate, "c", "u", "v"); got != "already_issued:1 issued:2" {
		t.Errorf("once the file is back: %s", got) // the claim was committed, so the answer was unknown
	}
}

// TestF67ADeletedLogIsCopiedWhenTheServerStops deletes the log, which alone has the coupons.
func TestF67ADeletedLogIsCopiedWhenTheServerStops(t *testing.T) {
	t.Parallel()
	name := file(t)
	l, stop := serve(t, name, ledger.Options{})
	create(t, l, "c", 1)
	claim(t, l.Gate, "c", "u")
	stage.Must(t, errors.Join(os.Remove(name+"-wal"), os.Remove(name+"-shm")))
	if d, err := l.Gate.Claim(t.Context(), "c", []firstcome.UserID{"v"}); err == nil {
		t.Errorf("it is answered %v", d)
	}
	stop()
	sound(t, start(t, name, nil), map[firstcome.UserID]int64{"u": 1})
}

// TestF67AStartBesideTheLogOfAMissingFileIsRefused stops a server whose file is elsewhere, which leaves the log.
func TestF67AStartBesideTheLogOfAMissingFileIsRefused(t *testing.T) {
	t.Parallel()
	name := file(t)
	l, stop := serve(t, name, ledger.Options{})
	create(t, l, "c", 1)
	claim(t, l.Gate, "c", "u")
	stage.Must(t, os.Rename(name, name+".elsewhere"))
	stop()
	for range 2 { // the first refusal leaves no file
		wantAdvice(t, openError(t, name), name+"-wal is there", "Put the file back")
	}
	stage.Must(t, os.Rename(name+".elsewhere", name))
	sound(t, start(t, name, nil), map[firstcome.UserID]int64{"u": 1})
}
