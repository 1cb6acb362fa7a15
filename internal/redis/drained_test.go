//go:build !check

package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// settle settles the first entries of the journal, as a recorder does. letters are the dead letters among their coupons.
func (s *shop) settle(through int64, entries int, letters ...firstcome.Coupon) (before int64) {
	s.t.Helper()
	journal, err := s.do("XRANGE", keysOf[2], "-", "+").AsXRange()
	stage.Must(s.t, err)
	var ids []string
	for _, e := range journal[:entries] {
		ids = append(ids, e.ID)
	}
	before, err = s.gate.Settle(s.t.Context(), "c", "", record.Result{Through: through, Letters: letters}, ids...)
	stage.Must(s.t, err)
	return before
}

func letter(number int64, user int) firstcome.Coupon {
	return firstcome.Coupon{Campaign: "c", Number: number, User: crowd(user, 1)[0]}
}

// recorded fails unless exactly the coupons with these numbers are surely recorded by the gate: in the answer to a repeated claim, in CouponOf and in
// Has.
func (s *shop) recorded(what string, numbers int, want ...int64) {
	s.t.Helper()
	var coupons []firstcome.Coupon
	var claimed, read, asked []int64
	for n, d := range s.issue(0, numbers) {
		c, err := s.gate.CouponOf(s.t.Context(), "c", crowd(n, 1)[0])
		if err != nil || c.Number != d.Coupon.Number || c.Buried != d.Coupon.Buried {
			s.t.Fatalf("%s: %+v is read as %+v, %v", what, d.Coupon, c, err)
		}
		if d.Coupon.Recorded {
			claimed = append(claimed, c.Number)
		}
		if c.Recorded {
			read = append(read, c.Number)
		}
		coupons = append(coupons, c)
	}
	has, err := s.gate.Has(s.t.Context(), "c", coupons)
	stage.Must(s.t, err)
	for n, is := range has {
		if is {
			asked = append(asked, coupons[n].Number)
		}
	}
	for how, got := range map[string][]int64{"who claims again": claimed, "who reads": read, "who asks": asked} {
		if diff := cmp.Diff(want, got); diff != "" {
			s.t.Errorf("%s, %s (-want +got):\n%s", what, how, diff)
		}
	}
}

// TestWhatIsDrainedIsPublishedAndNeverGoesBack settles rising numbers, and after each a lower number.
func TestWhatIsDrainedIsPublishedAndNeverGoesBack(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 20)
	s.do("XTRIM", keysOf[2], "MAXLEN", "0")
	heard := make(chan int64, 10)
	watch(t, s.gate, func(_ firstcome.CampaignID, through int64) { heard <- through })
	before := int64(0)
	for _, through := range []int64{10, 12, 20} {
		for _, settled := range []int64{through, through - 1, through, 0} {
			if known := s.settle(settled, 0); known != before {
				t.Errorf("it was drained through %d, told was %d", before, known)
			}
			before = through
		}
		if got, err := s.gate.DrainedThrough(t.Context(), "c"); err != nil || got != through || <-heard != through {
			t.Errorf("it is drained through %d instead of %d, %v", got, through, err)
		}
	}
	if len(heard) > 0 {
		t.Errorf("what is older was heard: %d", <-heard)
	}
}

// TestWhatIsInTheJournalIsNotDrained has recorders whose entries reach the ledger in another order, and a recorder that died before it told the gate.
func TestWhatIsInTheJournalIsNotDrained(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	for n := range 3 {
		s.issue(n, 1)
	}
	s.recorded("at first", 3)
	s.settle(3, 0)
	s.recorded("without its entries", 3)
	s.settle(3, 1)
	s.recorded("the first", 3, 1)
	s.do("XDEL", keysOf[2], lastEntry(t, s))
	s.settle(3, 0)
	s.recorded("behind the second", 3, 1)
	s.settle(3, 1)
	s.recorded("all", 3, 1, 2, 3)
	s.do("XADD", keysOf[2], "*", "by", "somebody")
	s.issue(3, 1)
	s.settle(4, 0)
	s.recorded("with an entry that does not say its numbers", 4, 1, 2, 3)
}

// TestWhatIsSaidOfAnotherEpochChangesNothing: an entry of an earlier epoch may have the same id, and a later epoch has other numbers.
func TestWhatIsSaidOfAnotherEpochChangesNothing(t *testing.T) {
	s := newCeiled(t, 9, firstcome.Terms{Quantity: 9})
	s.issue(0, 2)
	entry := lastEntry(t, s)
	state := func() (all [2]string) {
		for n, command := range [][]string{{"HGETALL", keysOf[0]}, {"XRANGE", keysOf[2], "-", "+"}} {
			answer, err := s.do(command...).ToMessage()
			stage.Must(t, err)
			all[n] = answer.String()
		}
		return all
	}
	before := state()
	for _, epoch := range []int64{2, 3} {
		drained := record.Result{Through: 2, Grant: record.Grant{Epoch: epoch, Ceiling: 100}}
		if through, err := s.gate.Settle(t.Context(), "c", "", drained, entry); err != nil || through != 2 {
			t.Errorf("of epoch %d: %d, %v", epoch, through, err)
		}
		stage.Same(t, "the campaign and its journal", before, state())
	}
	s.grants(1, 100)
	if after := state(); after == before {
		t.Error("what is said of its own epoch changes nothing either")
	}
}

// TestWhatALedgerSaidOfEntriesThatWereLaterIsNotForgotten has two recorders. The one with the ledger's later answer settles first. Its answer still
// counts when the other settles its entries.
func TestWhatALedgerSaidOfEntriesThatWereLaterIsNotForgotten(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 1)
	s.issue(1, 1)
	stage.Must(t, stage.Err(s.gate.Settle(t.Context(), "c", "", record.Result{Through: 2}, lastEntry(t, s))))
	s.recorded("before the first entry", 2)
	s.settle(1, 1)
	s.recorded("when the journal is empty", 2, 1, 2)
	if through, err := s.gate.DrainedThrough(t.Context(), "c"); err != nil || through != 2 {
		t.Errorf("it is drained through %d, %v", through, err)
	}
}

// TestNothingIsDrainedOfWhichTheGateWasNotToldTheDeadLetters has a recorder that overestimates what the gate knows, because the gate lost data. Then
// another recorder tells the gate every dead letter.
func TestNothingIsDrainedOfWhichTheGateWasNotToldTheDeadLetters(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	for n := range 5 {
		s.issue(n, 1)
	}
	first := func() (ids []string) {
		entries, err := s.do("XRANGE", keysOf[2], "-", "+").AsXRange()
		stage.Must(t, err)
		for _, e := range entries {
			ids = append(ids, e.ID)
		}
		return ids
	}
	all := first()
	var knows *record.MissedLettersError
	_, err := s.gate.Settle(t.Context(), "c", "", record.Result{Through: 4, LettersKnownThrough: 2, Letters: []firstcome.Coupon{letter(3, 2)}}, all[:4]...)
	if !errors.As(err, &knows) || knows.Through != 0 || len(first()) != 5 {
		t.Fatalf("%v; %d entries are left", err, len(first()))
	}
	s.recorded("as it does not know", 5)
	stage.Must(t, stage.Err(s.gate.Settle(t.Context(), "c", "", record.Result{Through: 5, Letters: []firstcome.Coupon{letter(2, 1), letter(3, 2)}}, all[:4]...)))
	s.recorded("all but the dead letters, and what is in the journal", 5, 1, 4)
	s.settle(0, 1)
	s.recorded("all but the dead letters", 5, 1, 4, 5)
}

// lastEntry returns the id of the journal's last entry.
func lastEntry(t *testing.T, s *shop) string {
	t.Helper()
	entries, err := s.do("XREVRANGE", keysOf[2], "+", "-", "COUNT", "1").AsXRange()
	if err != nil || len(entries) == 0 {
		t.Fatal("no entry", err)
	}
	return entries[0].ID
}

// TestADeadLetterHasAFlagAtTheHolderOfItsVeryNumber flags three dead letters: one whose user holds its number, one whose user holds another number by
// now, and one whose user holds nothing.
func TestADeadLetterHasAFlagAtTheHolderOfItsVeryNumber(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 4)
	for range 2 { // the second time, the entry is given again
		s.settle(4, 0, letter(2, 1), letter(9, 2), letter(4, 77))
	}
	s.settle(4, 1)
	s.recorded("with a flag", 4, 1, 3, 4)
	if d := s.issue(0, 4); d[0].Coupon.Buried || !d[1].Coupon.Buried || d[2].Coupon.Buried {
		t.Errorf("buried are %v", d)
	}
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeVoid, Number: 2, User: crowd(1, 1)[0]})
	s.issue(1, 1)
	s.settle(5, 1, letter(2, 1)) // by a recorder that was frozen while the coupon was voided
	s.recorded("when it was voided", 4, 1, 5, 3, 4)
}

// TestManyDeadLettersAndEntriesAreSettledAtOnce settles more dead letters and entries than one Redis command takes.
func TestManyDeadLettersAndEntriesAreSettledAtOnce(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	var letters []firstcome.Coupon
	for n := range 2500 {
		s.issue(n, 1)
		letters = append(letters, letter(int64(n+1), n))
	}
	s.settle(2500, 2500, letters[1:]...)
	s.recorded("the first", 2500, 1)
	if entries, err := s.do("XLEN", keysOf[2]).AsInt64(); err != nil || entries > 0 {
		t.Errorf("%d entries are left, %v", entries, err)
	}
}

// TestF18WhoeverRecordedEntriesOfAnEpochThatEndedLeavesOthersUnderTheirIDs stalls a recorder after the ledger has answered it. Meanwhile the gate is
// rebuilt on a server that uses the same entry ids again.
func TestF18WhoeverRecordedEntriesOfAnEpochThatEndedLeavesOthersUnderTheirIDs(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 1)
	journal := keysOf[2]
	old, err := s.do("XRANGE", journal, "-", "+").AsXRange()
	stage.Must(t, err)
	again := make(chan int64, 10)
	rebuilt := sync.OnceFunc(func() {
		s.issue(1, 1)
		late, err := s.do("XRANGE", journal, "("+old[0].ID, "+").AsXRange()
		stage.Must(t, err)
		s.do("DEL", journal)
		s.do("XGROUP", "CREATE", journal, "recorders", "0", "MKSTREAM")
		entry := []string{"XADD", journal, old[0].ID}
		for name, value := range late[0].FieldValues {
			if name == "epoch" {
				value = "2"
			}
			entry = append(entry, name, value)
		}
		s.do(entry...)
		s.do("HSET", keysOf[0], "epoch", "2")
	})
	stop := s.drain(s.journal(), func(ctx context.Context, b record.Batch) (record.Result, error) {
		drained, err := p.Take(ctx, b)
		rebuilt()
		drained.Grant = record.Grant{Epoch: 2, Ceiling: 100}
		if b.Epoch == 2 {
			again <- b.Coupons[0].Number
		}
		return drained, err
	})
	if number := <-again; number != 2 {
		t.Errorf("the next that is recorded is number %d", number)
	}
	s.drained(2)
	stop()
	close(s.alarms)
	for err := range s.alarms {
		if strings.Contains(err.Error(), "are recorded from the gate's holders") {
			t.Error(err)
		}
	}
}

// TestF18AFrozenJournalKeepsEntriesThoughTheirEpochEnded records entries of a campaign that a rebuild has frozen, and answers for the epoch after it. If
// the ledger then fails over and forgets that the epoch ended, the next attempt reads the journal again.
func TestF18AFrozenJournalKeepsEntriesThoughTheirEpochEnded(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 1)
	s.do("HSET", keysOf[0], "frozen", "1")
	again := make(chan struct{}, 10)
	stop := s.drain(s.journal(), func(ctx context.Context, b record.Batch) (record.Result, error) {
		drained, err := p.Take(ctx, b)
		drained.Grant = record.Grant{Epoch: 2, Ceiling: 100}
		select {
		case again <- struct{}{}:
		default:
		}
		return drained, err
	})
	<-again
	<-again // the first answer was sent to the gate
	stop()
	if entries, err := s.do("XLEN", keysOf[2]).AsInt64(); err != nil || entries != 1 {
		t.Errorf("the journal has %d entries, %v; want 1", entries, err)
	}
}
