package ledger_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
)

// buryAll buries the coupons with the numbers from first to last, at once.
func buryAll(t testing.TB, l *ledger.Ledger, first, last int64) flow.Drained {
	t.Helper()
	return must(t, l)(l.Bury(context.Background(), given(between(t, first, last)...), "refused"))
}

// TestWhatIsRecordedNamesItsDeadLettersEachTime has a recorder die between the ledger and the gate, so that another one gives
// its entries again, before and after an operator replayed one.
func TestWhatIsRecordedNamesItsDeadLettersEachTime(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		same(t, "before any dead letter", drained(t, 2), record(t, l, between(t, 1, 2)...))
		for range 2 {
			same(t, "two dead letters", drained(t, 4, 3, 4), buryAll(t, l, 3, 4))
		}
		for range 2 {
			same(t, "the whole again", drained(t, 6, 3, 4), record(t, l, between(t, 1, 6)...))
		}
		if err := l.Replay(t.Context(), "op", letters(t, l, ledger.Letters{})[0].ID); err != nil {
			t.Fatal(err)
		}
		same(t, "after a replay", drained(t, 6, 4), record(t, l, between(t, 1, 6)...))
		same(t, "buried after it", drained(t, 6, 4), buryAll(t, l, 3, 4))
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
			same(t, "drained", flow.Drained{Through: 3, Letters: []firstcome.Coupon{twice}, Twice: true},
				must(t, l)(l.Bury(t.Context(), given(twice, decided(t, 3)), "given twice")))
		}
		same(t, "dead letters", 1, len(letters(t, l, ledger.Letters{})))
		has, err := l.Has(t.Context(), "c", []firstcome.Coupon{decided(t, 2), twice, decided(t, 3), decided(t, 4)})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "it has", []bool{true, false, true, false}, has)
	})
}

// TestARecordingReadsNoMoreWhenManyDeadLettersAreOpen counts the rows that the server
// reads and the bytes that it sends and gets for a batch and a burial.
func TestARecordingReadsNoMoreWhenManyDeadLettersAreOpen(t *testing.T) {
	name := services.MariaDB.Database(t)
	l, db := remote(t, name, firstcome.Unlimited), rawServer(t, name)
	work := func(from int64) (rows, bytes int64) {
		t.Helper()
		rowsBefore, bytesBefore := served(t, db)
		if _, err := l.Record(t.Context(), given(between(t, from, from+9)...)); err != nil {
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
