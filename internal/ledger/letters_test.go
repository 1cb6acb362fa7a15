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

// buryAll buries the coupons with the numbers from first to last, at once.
func buryAll(t testing.TB, l *ledger.Ledger, first, last int64) flow.Settled {
	t.Helper()
	var dead []flow.DeadLetter
	for _, c := range between(t, first, last) {
		dead = append(dead, flow.DeadLetter{Coupon: c, Cause: "refused"})
	}
	settled, err := l.Bury(context.Background(), "c", dead)
	if err != nil {
		t.Fatal(err)
	}
	return settled
}

func since(t testing.TB, l *ledger.Ledger, order int64) flow.Settled {
	t.Helper()
	settled, err := l.SettledSince(context.Background(), "c", order)
	if err != nil {
		t.Fatal(err)
	}
	return settled
}

func TestWhatIsSettledTellsWhatChangedAndInWhichOrder(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		said := func(settled flow.Settled, err error) flow.Settled {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return settled
		}
		same(t, "before any dead letter", flow.Settled{Through: 2, Epoch: 1}, said(l.Record(t.Context(), "c", between(t, 1, 2))))
		same(t, "two dead letters", flow.Settled{Through: 4, Order: 1, Unrecorded: []int64{3, 4}, Epoch: 1}, buryAll(t, l, 3, 4))
		same(t, "the same again", flow.Settled{Through: 4, Order: 1, Since: 1, Epoch: 1}, buryAll(t, l, 3, 4))
		same(t, "no dead letters", flow.Settled{Through: 6, Order: 1, Since: 1, Epoch: 1}, said(l.Record(t.Context(), "c", between(t, 1, 6))))
		same(t, "a third", flow.Settled{Through: 7, Order: 2, Since: 1, Unrecorded: []int64{7}, Epoch: 1}, buryAll(t, l, 7, 7))
		letter := letters(t, l, ledger.Letters{})[0].ID
		same(t, "a replay", flow.Settled{Through: 7, Order: 3, Since: 2, Recorded: []int64{3}, Epoch: 1}, said(l.Replay(t.Context(), "op", letter)))

		same(t, "since the first", flow.Settled{Through: 7, Order: 3, Unrecorded: []int64{4, 7}, Recorded: []int64{3}, Epoch: 1}, since(t, l, 0))
		same(t, "since the second", flow.Settled{Through: 7, Order: 3, Since: 1, Unrecorded: []int64{7}, Recorded: []int64{3}, Epoch: 1}, since(t, l, 1))
		same(t, "since the last", flow.Settled{Through: 7, Order: 3, Since: 3, Epoch: 1}, since(t, l, 3))
		same(t, "of some", flow.Settled{Through: 7, Order: 3, Since: 3, Unrecorded: []int64{4, 7}, Epoch: 1},
			said(l.SettledThrough(t.Context(), "c", []int64{1, 3, 4, 7, 8})))
		if _, err := l.SettledSince(t.Context(), "unknown", 0); !errors.Is(err, firstcome.ErrNoCampaign) {
			t.Errorf("of no campaign: %v", err)
		}
	})
}

// TestANumberThatNamesTwoCouponsIsNamedEachTime buries a coupon whose number is somebody else's.
func TestANumberThatNamesTwoCouponsIsNamedEachTime(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		record(t, l, between(t, 1, 3)...)
		twice := decided(t, 2)
		twice.User = "another"
		for range 2 {
			settled, err := l.Bury(t.Context(), "c", []flow.DeadLetter{{Coupon: twice, Cause: "given twice"}, {Coupon: decided(t, 3), Cause: "a mistake"}})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "settled", flow.Settled{Through: 3, Twice: []int64{2}, Epoch: 1}, settled)
		}
		same(t, "dead letters", 1, len(letters(t, l, ledger.Letters{})))
		has, err := l.Has(t.Context(), "c", []firstcome.Coupon{decided(t, 2), twice, decided(t, 3), decided(t, 4)})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "it has", []bool{true, false, true, false}, has)
	})
}

// TestALedgerThatIsAskedForALaterOrderThanItsOwnGoesOnBehindThat is one that was replaced by an older copy.
func TestALedgerThatIsAskedForALaterOrderThanItsOwnGoesOnBehindThat(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		record(t, l, between(t, 1, 2)...)
		buryAll(t, l, 3, 4)
		want := flow.Settled{Through: 4, Order: 8, Since: 7, Unrecorded: []int64{3, 4}, Epoch: 1}
		for range 2 {
			same(t, "since order 7", want, since(t, l, 7))
		}
		same(t, "the next", flow.Settled{Through: 5, Order: 9, Since: 8, Unrecorded: []int64{5}, Epoch: 1}, buryAll(t, l, 5, 5))
	})
}

func TestManyChangesAreReadInParts(t *testing.T) {
	l := remote(t, t.TempDir()+"/firstcome.db", firstcome.Unlimited)
	const each, times = 3000, 5
	for n := range int64(times) {
		buryAll(t, l, n*each+1, (n+1)*each)
	}
	first := since(t, l, 0)
	same(t, "the first part", flow.Settled{Order: 4, Unrecorded: first.Unrecorded}, first)
	same(t, "its numbers", 4*each, len(first.Unrecorded))
	second := since(t, l, first.Order)
	same(t, "the second part", flow.Settled{Through: times * each, Order: 5, Since: 4, Unrecorded: second.Unrecorded, Epoch: 1}, second)
	same(t, "its numbers", each, len(second.Unrecorded))
}

// TestARecordingReadsNoMoreWhenManyDeadLettersAreOpen counts the rows that the server
// reads and the bytes that it sends and gets for a batch and a burial.
func TestARecordingReadsNoMoreWhenManyDeadLettersAreOpen(t *testing.T) {
	name := services.MariaDB.Database(t)
	l, db := remote(t, name, firstcome.Unlimited), rawServer(t, name)
	work := func(from int64) (rows, bytes int64) {
		t.Helper()
		rowsBefore, bytesBefore := served(t, db)
		if _, err := l.Record(t.Context(), "c", between(t, from, from+9)); err != nil {
			t.Fatal(err)
		}
		buryAll(t, l, from+10, from+10)
		rows, bytes = served(t, db)
		return rows - rowsBefore, bytes - bytesBefore
	}
	record(t, l, between(t, 1, 10)...)
	buryAll(t, l, 11, 20)
	fewRows, fewBytes := work(21)
	buryAll(t, l, 32, 2031)
	manyRows, manyBytes := work(2032)
	// A number has more digits; the rows of the status itself are few and always the same.
	if manyRows > fewRows+20 || manyBytes > fewBytes+500 {
		t.Errorf("%d rows and %d bytes with 11 dead letters, %d and %d with 2,011", fewRows, fewBytes, manyRows, manyBytes)
	}
}

// served returns how many rows the server has read, and the bytes on its connections.
func served(t *testing.T, db *sql.DB) (rows, bytes int64) {
	t.Helper()
	status, err := db.Query(`SHOW GLOBAL STATUS WHERE variable_name LIKE 'Handler\_read%' OR variable_name LIKE 'Bytes%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer status.Close()
	for status.Next() {
		var name string
		var value int64
		if err := status.Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "Bytes") {
			bytes += value
		} else {
			rows += value
		}
	}
	if err := status.Err(); err != nil {
		t.Fatal(err)
	}
	return rows, bytes
}
