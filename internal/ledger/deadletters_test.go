package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
)

// bury buries a coupon, and returns what is drained.
func bury(t testing.TB, l *ledger.Ledger, cause string, c firstcome.Coupon) flow.Drained {
	t.Helper()
	return must(t, l)(l.Bury(context.Background(), given(c), cause))
}

// buried makes a campaign whose gate has issued three coupons, of which the ledger has the
// first two and the third as a dead letter.
func buried(t testing.TB, name string) (a node, g *farGate, letter int64) {
	t.Helper()
	a, _, g = shop(t, name, 3)
	g.issue(3)
	record(t, a.Ledger, g.Course("c").Journal[:2]...)
	bury(t, a.Ledger, "a trial", g.Course("c").Journal[2])
	return a, g, letters(t, a.Ledger, ledger.Letters{})[0].ID
}

// beside opens the ledger's database as an intruder would.
func beside(t testing.TB, name string) *sql.DB {
	t.Helper()
	if !ledger.OnServer(name) {
		return raw(t, name)
	}
	db, err := services.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func letters(t testing.TB, l *ledger.Ledger, p ledger.Letters) []ledger.DeadLetter {
	t.Helper()
	all, err := l.DeadLetters(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestADeadLetterDrainsItsNumberAndStaysOne(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		record(t, l, between(t, 1, 2)...)
		record(t, l, decided(t, 4))
		same(t, "drained", drained(t, 4, 3), bury(t, l, "refused", decided(t, 3)))
		same(t, "drained again", drained(t, 4, 3), bury(t, l, "refused again", decided(t, 3)))
		same(t, "drained far above", drained(t, 4, 7), bury(t, l, "refused", decided(t, 7)))
		same(t, "drained between", drained(t, 5), record(t, l, decided(t, 5)))
		same(t, "the one above is given again", drained(t, 5, 7), record(t, l, decided(t, 7)))
		same(t, "drained through both", drained(t, 7, 3, 7), record(t, l, append(between(t, 1, 4), decided(t, 6), decided(t, 7))...))
		// The entry is given again: it stays a dead letter.
		same(t, "drained", drained(t, 7, 3, 7), record(t, l, between(t, 1, 7)...))
		same(t, "in force", int64(5), books(t, l).InForce)
		found := letters(t, l, ledger.Letters{Campaign: "c"})
		if len(found) != 2 || found[0].Number != 3 || found[0].User != "user-3" || found[0].Cause != "refused" {
			t.Errorf("the dead letters are %+v", found)
		}
	})
}

func TestF44GarbageIsADeadLetterOnce(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		garbage := flow.Garbage{Source: "journal/7-0", Payload: "\x00\xff" + strings.Repeat("x", 100_000), Cause: "unknown version"}
		for range 2 {
			if _, err := l.Bury(t.Context(), flow.Batch{Campaign: "c", Garbage: []flow.Garbage{garbage}}, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Bury(t.Context(), flow.Batch{Campaign: "unknown", Coupons: between(t, 1, 1)}, "no such campaign"); err != nil {
				t.Fatal(err)
			}
		}
		found := letters(t, l, ledger.Letters{})
		if len(found) != 2 || found[0].Source != "journal/7-0" || !strings.HasPrefix(found[0].Payload, `"\x00\xffxx`) || len(found[0].Payload) > 60_000 {
			t.Errorf("the dead letters are %.200v", found)
		}
		if err := l.Replay(t.Context(), "op", found[0].ID); !errors.Is(err, flow.ErrRefused) {
			t.Errorf("garbage was replayed: %v", err)
		}
		if id, err := l.VoidLetter(t.Context(), "op", found[0].ID, "looked at"); err != nil || id != "" {
			t.Errorf("voiding garbage: %q, %v", id, err)
		}
		same(t, "open ones", 1, len(letters(t, l, ledger.Letters{})))
		same(t, "all", 2, len(letters(t, l, ledger.Letters{Resolved: true})))
		same(t, "the first", 1, len(letters(t, l, ledger.Letters{Resolved: true, Limit: 1})))
		same(t, "behind the first", 1, len(letters(t, l, ledger.Letters{Resolved: true, After: found[0].ID})))
	})
}

func TestF44ADeadLetterIsReplayedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, g, letter := buried(t, name)
		third := g.Course("c").Journal[2]
		if err := a.Replay(t.Context(), "op", letter); err != nil {
			t.Fatal(err)
		}
		if err := a.Replay(t.Context(), "op", letter); !errors.Is(err, firstcome.ErrResolvedLetter) {
			t.Errorf("replayed twice: %v", err)
		}
		if _, err := a.VoidLetter(t.Context(), "op", letter, ""); !errors.Is(err, firstcome.ErrResolvedLetter) {
			t.Errorf("voided after it was replayed: %v", err)
		}
		if err := a.Replay(t.Context(), "op", letter+1); !errors.Is(err, firstcome.ErrNoDeadLetter) {
			t.Errorf("no letter: %v", err)
		}
		record(t, a.Ledger, third)
		same(t, "in force", int64(3), books(t, a.Ledger).InForce)
		log, err := a.AuditLog(t.Context(), ledger.LogFilter{Campaign: "c", Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if last := log[0]; last.Actor != "op" || last.Action != "dead_letter.replay" || last.User != "user-3" || last.Number != 3 {
			t.Errorf("the audit log ends with %+v", last)
		}
	})
}

func TestADeadLetterThatIsStillRefusedStaysOpen(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 2)
		record(t, l, between(t, 1, 2)...)
		bury(t, l, "over the quantity", decided(t, 3))
		replayRefused(t, l)
		same(t, "in force", int64(2), books(t, l).InForce)
	})
}

func replayRefused(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	open := letters(t, l, ledger.Letters{})
	for _, letter := range open {
		if err := l.Replay(t.Context(), "op", letter.ID); !errors.Is(err, flow.ErrRefused) {
			t.Errorf("number %d was replayed: %v", letter.Number, err)
		}
	}
	same(t, "open ones", open, letters(t, l, ledger.Letters{}))
}

// TestADeadLetterIsReplayedInALaterEpochUnlessItWasOfAnother: the gate that was
// rebuilt has loaded the one as a holder, and knows nothing of the other.
func TestADeadLetterIsReplayedInALaterEpochUnlessItWasOfAnother(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 5)
		bury(t, l, "a trial", decided(t, 1))
		if _, err := beside(t, name).Exec(`UPDATE campaigns SET epoch = 2 WHERE id = 'c'`); err != nil {
			t.Fatal(err)
		}
		if err := l.Replay(t.Context(), "op", letters(t, l, ledger.Letters{})[0].ID); err != nil {
			t.Error(err)
		}
		bury(t, l, "of another epoch", decided(t, 2))
		replayRefused(t, l)
		same(t, "in force", int64(1), books(t, l).InForce)
	})
}

func TestAVoidedDeadLetterGivesTheGateItsStockBack(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, g, letter := buried(t, name)
		third := g.Course("c").Journal[2]
		version := a.quantity(t, 4)
		if _, err := a.VoidLetter(t.Context(), "op", letter, ""); !errors.Is(err, firstcome.ErrPending) {
			t.Errorf("while another change is on its way: %v", err)
		}
		finish(t, a, version)
		id, err := a.VoidLetter(t.Context(), "op", letter, "the user left")
		if err != nil {
			t.Fatal(err)
		}
		finish(t, a, 0)
		same(t, "the campaign whose change has to be finished", "c", string(id))
		same(t, "holders", 2, len(g.Course("c").Holders))
		agree(t, a.Ledger, g, 4)
		// Its entry comes again, and the user has claimed again since.
		g.Course("c").Journal = []firstcome.Coupon{third}
		again := decided(t, 4)
		again.User = third.User
		g.Course("c").Journal = append(g.Course("c").Journal, again)
		g.Course("c").Holders[third.User] = again
		g.record(a.Ledger)
		got := books(t, a.Ledger)
		same(t, "in force", int64(3), got.InForce)
		same(t, "the last coupon's number", int64(4), got.Coupons[2].Number)
		same(t, "drained", flow.Drained{Through: 4, Letters: []firstcome.Coupon{third}}, record(t, a.Ledger, third))
		if _, err := a.VoidLetter(t.Context(), "op", letter, ""); !errors.Is(err, firstcome.ErrResolvedLetter) {
			t.Errorf("voided twice: %v", err)
		}
	})
}

func TestLostNumbersAreDrainedAndOfAnEarlierEpoch(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remoteAt(t, name)
		create(t, l, "c", 10)
		record(t, l, between(t, 1, 2)...)
		db := beside(t, name)
		for _, s := range []string{`INSERT INTO lost VALUES ('c', 3, 4, 2)`, `UPDATE campaigns SET epoch = 2`} {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, l, "of the epoch before", decided(t, 7))
		seventh := given(decided(t, 7))
		seventh.Epoch = 2
		same(t, "drained", drained(t, 7), must(t, l)(l.Record(t.Context(), seventh)))
	})
}
