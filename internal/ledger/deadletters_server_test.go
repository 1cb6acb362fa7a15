//go:build !check

package ledger_test

import (
	"database/sql"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestARecordingReadsNoMoreWhenManyDeadLettersAreOpen counts the rows that the server
// reads and the bytes that it sends and gets for a batch and a burial.
func TestARecordingReadsNoMoreWhenManyDeadLettersAreOpen(t *testing.T) {
	server := services.MariaDB.Server(t, services.MariaDB.Fast()...) // of its own: what is served counts for all of its databases
	name, err := server.Database(t.Context())
	stage.Must(t, err)
	l, db := remote(t, name, firstcome.Unlimited), services.Beside(t, name)
	told := int64(0)
	by := func(first, last int64) record.Batch { // of a source that has told the gate of whatever it heard
		b := given(stage.Coupons("c", first, last)...)
		b.LettersKnownThrough, told = told, last
		return b
	}
	buries := func(first, last int64) {
		stage.Must(t, stage.Err(l.Recorder.Bury(t.Context(), by(first, last), "refused")))
	}
	work := func(from int64) (rows, bytes int64) {
		t.Helper()
		rowsBefore, bytesBefore := served(t, db)
		stage.Must(t, stage.Err(l.Recorder.Record(t.Context(), by(from, from+9))))
		buries(from+10, from+10)
		rows, bytes = served(t, db)
		return rows - rowsBefore, bytes - bytesBefore
	}
	recordIn(t, l, stage.Coupons("c", 1, 10)...)
	buries(11, 20)
	fewRows, fewBytes := work(21)
	for first := int64(32); first < 1032; first += 100 { // few enough for a transaction on a busy machine
		buries(first, first+99)
	}
	manyRows, manyBytes := work(1032)
	// A number has more digits; the rows of the status itself are few and always the same.
	if manyRows > fewRows+20 || manyBytes > fewBytes+500 {
		t.Errorf("%d rows and %d bytes with 11 dead letters, %d and %d with 1,011", fewRows, fewBytes, manyRows, manyBytes)
	}
}

// served returns how many rows the server has read, and the bytes on its connections.
func served(t *testing.T, db *sql.DB) (rows, bytes int64) {
	t.Helper()
	const sum = `SELECT CAST(sum(variable_value) AS SIGNED) FROM information_schema.global_status WHERE variable_name LIKE `
	stage.Must(t, db.QueryRow(`SELECT (`+sum+`'Handler\_read%'), (`+sum+`'Bytes%')`).Scan(&rows, &bytes))
	return rows, bytes
}
