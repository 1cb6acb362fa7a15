package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// buried returns a shop whose gate has issued three coupons, of which the ledger has the
// first two and the third as a dead letter.
func buried(t testing.TB, name string) (s *shop, letter int64) {
	t.Helper()
	s = newShop(t, name, 3)
	s.issue(3)
	recordIn(t, s.a.Ledger, s.Course("c").Journal[:2]...)
	bury(t, s.a.Ledger, "a trial", s.Course("c").Journal[2])
	return s, letters(t, s.a.Ledger, ledger.Letters{})[0].ID
}

func TestF44GarbageIsADeadLetterOnce(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		garbage := record.Garbage{Source: "journal/7-0", Payload: "\x00\xff" + strings.Repeat("x", 100_000), Cause: "unknown version"}
		for range 2 {
			stage.Must(t, stage.Err(l.Recorder.Bury(t.Context(), record.Batch{Campaign: "c", Garbage: []record.Garbage{garbage}}, "")))
			stage.Must(t, stage.Err(l.Recorder.Bury(t.Context(), record.Batch{Campaign: "unknown", Coupons: stage.Coupons("c", 1, 1)}, "no such campaign")))
		}
		found := letters(t, l, ledger.Letters{})
		if len(found) != 2 || found[0].Source != "journal/7-0" || !strings.HasPrefix(found[0].Payload, `"\x00\xffxx`) || len(found[0].Payload) > 60_000 {
			t.Errorf("the dead letters are %.200v", found)
		}
		if err := l.Recorder.Replay(t.Context(), "op", found[0].ID); !errors.Is(err, record.ErrRefused) {
			t.Errorf("garbage was replayed: %v", err)
		}
		stage.Must(t, l.Recorder.VoidLetter(t.Context(), "op", found[0].ID, "looked at"))
		stage.Same(t, "open ones", 1, len(letters(t, l, ledger.Letters{})))
		stage.Same(t, "of the campaign, all", 1, len(letters(t, l, ledger.Letters{Campaign: "c", Resolved: true})))
		stage.Same(t, "all", 2, len(letters(t, l, ledger.Letters{Resolved: true})))
		stage.Same(t, "the first", 1, len(letters(t, l, ledger.Letters{Resolved: true, Limit: 1})))
		stage.Same(t, "behind the first", 1, len(letters(t, l, ledger.Letters{Resolved: true, After: found[0].ID})))
	})
}

func TestF44ADeadLetterIsReplayedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s, letter := buried(t, name)
		third := s.Course("c").Journal[2]
		stage.Must(t, s.a.Recorder.Replay(t.Context(), "op", letter))
		for what, c := range map[string]struct{ err, want error }{
			"replayed twice":               {s.a.Recorder.Replay(t.Context(), "op", letter), firstcome.ErrResolvedLetter},
			"voided after it was replayed": {s.a.Recorder.VoidLetter(t.Context(), "op", letter, ""), firstcome.ErrResolvedLetter},
			"no letter":                    {s.a.Recorder.Replay(t.Context(), "op", letter+1), firstcome.ErrNoDeadLetter},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v", what, c.err)
			}
		}
		stage.Same(t, "its entry comes again", drained(3), recordIn(t, s.a.Ledger, third))
		stage.Same(t, "and is buried", drained(3), bury(t, s.a.Ledger, "a trial", third))
		stage.Same(t, "in force", int64(3), status(t, s.a.Ledger).InForce)
		log, err := s.a.Reads.AuditLog(t.Context(), ledger.LogFilter{Campaign: "c", Limit: 1})
		stage.Must(t, err)
		if last := log[0]; last.Actor != "op" || last.Action != "dead_letter.replay" || last.User != "user-3" || last.Number != 3 {
			t.Errorf("the audit log ends with %+v", last)
		}
	})
}

func TestADeadLetterThatIsReplayedKeepsItsTicket(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 9)
		served := stage.Coupon("c", 1)
		served.Generation, served.Ticket = 2, 7
		bury(t, l, "a trial", served)
		stage.Must(t, l.Recorder.Replay(t.Context(), "op", letters(t, l, ledger.Letters{})[0].ID))
		c, err := l.Gate.CouponOf(t.Context(), "c", served.User)
		if err != nil || c.Number != 1 || c.Generation != 2 || c.Ticket != 7 {
			t.Errorf("it is %+v, %v", c, err)
		}
		stage.Same(t, "its entry comes again", drained(1), recordIn(t, l, served))
	})
}

// replayRefused expects that no open dead letter can be replayed.
func replayRefused(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	open := letters(t, l, ledger.Letters{})
	for _, letter := range open {
		if err := l.Recorder.Replay(t.Context(), "op", letter.ID); !errors.Is(err, record.ErrRefused) {
			t.Errorf("number %d was replayed: %v", letter.Number, err)
		}
	}
	stage.Same(t, "open ones", open, letters(t, l, ledger.Letters{}))
}

// TestADeadLetterThatIsStillRefusedStaysOpen has one over the quantity, and then one of an epoch that is over. A gate
// that was rebuilt has loaded the letters from before as holders, and knows nothing of those that were buried after it.
func TestADeadLetterThatIsStillRefusedStaysOpen(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, db := remote(t, name, 9), services.Beside(t, name)
		recordIn(t, l, stage.Coupons("c", 1, 2)...)
		execute(t, db, `UPDATE campaigns SET quantity = 2 WHERE id = 'c'`)
		bury(t, l, "over the quantity", stage.Coupon("c", 3))
		if found := letters(t, l, ledger.Letters{})[0]; found.Number != 3 || found.User != "user-3" || found.Cause != "over the quantity" {
			t.Errorf("the dead letter is %+v", found)
		}
		replayRefused(t, l)
		stage.Same(t, "in force", int64(2), status(t, l).InForce)

		execute(t, db, `UPDATE campaigns SET epoch = 2, quantity = 9 WHERE id = 'c'`)
		stage.Must(t, l.Recorder.Replay(t.Context(), "op", letters(t, l, ledger.Letters{})[0].ID))
		bury(t, l, "of another epoch", stage.Coupon("c", 4))
		replayRefused(t, l)
		stage.Same(t, "in force in the next epoch", int64(3), status(t, l).InForce)
	})
}

func TestAVoidedDeadLetterGivesTheGateItsStockBack(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s, letter := buried(t, name)
		c := s.Course("c")
		third := c.Journal[2]
		version := s.a.quantity(t, 4)
		if err := s.a.Recorder.VoidLetter(t.Context(), "op", letter, ""); !errors.Is(err, firstcome.ErrPending) {
			t.Errorf("while another change is on its way: %v", err)
		}
		finish(t, s.a, version)
		stage.Must(t, s.a.Recorder.VoidLetter(t.Context(), "op", letter, "the user left"))
		finish(t, s.a, 0)
		stage.Same(t, "holders", 2, len(c.Holders))
		s.agree(4)
		// Its entry comes again, and the user has claimed again since.
		again := stage.Coupon("c", 4)
		again.User = third.User
		c.Journal = []firstcome.Coupon{third, again}
		c.Holders[third.User] = again
		s.record()
		got := books(t, s.a.Ledger)
		stage.Same(t, "in force", int64(3), got.InForce)
		stage.Same(t, "the last coupon's number", int64(4), got.Coupons[2].Number)
		stage.Same(t, "drained", record.Result{Through: 4, Letters: []firstcome.Coupon{third}}, recordIn(t, s.a.Ledger, third))
		if err := s.a.Recorder.VoidLetter(t.Context(), "op", letter, ""); !errors.Is(err, firstcome.ErrResolvedLetter) {
			t.Errorf("voided twice: %v", err)
		}
	})
}

func TestLostNumbersAreDrainedAndOfAnEarlierEpoch(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		recordIn(t, l, stage.Coupons("c", 1, 2)...)
		execute(t, services.Beside(t, name), `INSERT INTO lost VALUES ('c', 3, 4, 2)`, `UPDATE campaigns SET epoch = 2`)
		refused(t, l, "of the epoch before", stage.Coupon("c", 7))
		seventh := given(stage.Coupon("c", 7))
		seventh.Epoch = 2
		stage.Same(t, "drained", drained(7), must(t, l)(l.Recorder.Record(t.Context(), seventh)))
	})
}

func TestTheLedgerHasACouponOnlyIfNumberAndUserAreItsOwn(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		recordIn(t, l, stage.Coupons("c", 1, 2)...)
		other := stage.Coupon("c", 1)
		other.User = "another"
		has, err := l.Recorder.Has(t.Context(), "c", []firstcome.Coupon{stage.Coupon("c", 1), other, stage.Coupon("c", 2), stage.Coupon("c", 3)})
		stage.Must(t, err)
		stage.Same(t, "it has", []bool{true, false, true, false}, has)
	})
}

// TestDeadLettersAreToldSomeAtATime asks as a source that knows of none, or of some.
func TestDeadLettersAreToldSomeAtATime(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, firstcome.Unlimited)
		for last := int64(100); last <= 1500; last += 100 { // few enough for a transaction on a busy machine
			stage.Must(t, stage.Err(l.Recorder.Bury(t.Context(), given(stage.Coupons("c", last-99, last)...), "refused")))
		}
		for _, c := range []struct{ told, letters, through int64 }{{0, 1000, 1000}, {1, 1000, 1001}, {1000, 500, 1500}, {1500, 0, 1500}} {
			got, err := l.Recorder.Record(t.Context(), record.Batch{Campaign: "c", LettersKnownThrough: c.told})
			if err != nil || got.Through != c.through || int64(len(got.Letters)) != c.letters || got.LettersKnownThrough != c.told {
				t.Errorf("above %d it tells of %d up to %d, want %d up to %d: %v", c.told, len(got.Letters), got.Through, c.letters, c.through, err)
			}
		}
	})
}
