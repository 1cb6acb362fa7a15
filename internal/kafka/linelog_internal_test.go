package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
)

// BenchmarkReadLineRecord measures a recovery's cost for each place of a log whose records have one place each, the worst case.
func BenchmarkReadLineRecord(b *testing.B) {
	r := lineRecordsOf("a-campaign", []line.Record{{
		Logged: firstcome.Logged{CampaignUID: "0f8fad5b-d9cb-469f-a165-70867728950e.12.5d41402abc4b2a76", Epoch: 3, Began: 2, At: time.UnixMicro(1_700_000_000_123_456)},
		Ticket: firstcome.Ticket{Generation: 2, Number: 123_456}, User: firstcome.UserID(fmt.Sprint("user-", 123_456)),
	}}, mostBytes)[0]
	b.SetBytes(int64(len(r.Value)))
	for b.Loop() {
		read := 0
		if _ = readLineRecord("a-campaign", r, func(line.Record) error { read++; return nil }); read != 1 {
			b.Fatal("it cannot be read")
		}
	}
}

// TestPlacesOfOneAnswerAreOneRecord has places that differ only in user and ticket, and others.
func TestPlacesOfOneAnswerAreOneRecord(t *testing.T) {
	logged := firstcome.Logged{CampaignUID: "m", Epoch: 3, Began: 2, At: time.UnixMicro(1_700_000_000_123_456).UTC()}
	later := logged
	later.At = later.At.Add(time.Microsecond)
	var places []line.Record
	add := func(many int, at firstcome.Logged, generation int64, left bool) {
		for range many {
			n := int64(len(places) + 1)
			places = append(places, line.Record{Logged: at, Ticket: firstcome.Ticket{Generation: generation, Number: n}, User: firstcome.UserID(fmt.Sprint("user-", n)), Left: left})
		}
	}
	add(2*placesInRecord+5, logged, 2, false)
	add(3, later, 2, false)
	add(3, later, 3, false)
	add(1, later, 3, true)
	records := lineRecordsOf("c", places, mostBytes)
	var got []line.Record
	for _, r := range records {
		if err := readLineRecord("c", r, func(one line.Record) error { got = append(got, one); return nil }); err != nil {
			t.Error(err)
		}
		if err := readLineRecord("other", r, func(line.Record) error { t.Error("another campaign's is read"); return nil }); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(places, got); diff != "" || len(records) != 6 {
		t.Errorf("%d records, and they say (-want +got):\n%s", len(records), diff)
	}
}
