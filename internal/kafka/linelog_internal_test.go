package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// BenchmarkReadLineRecord is what a recovery needs for each place that a log has.
func BenchmarkReadLineRecord(b *testing.B) {
	r := lineRecordOf("a-campaign", 0, &flow.LineRecord{
		Logged: firstcome.Logged{Marker: "0f8fad5b-d9cb-469f-a165-70867728950e.12.5d41402abc4b2a76", Epoch: 3, Began: 2, At: time.UnixMicro(1_700_000_000_123_456)},
		Ticket: firstcome.Ticket{Generation: 2, Number: 123_456}, User: firstcome.UserID(fmt.Sprint("user-", 123_456)),
	})
	b.SetBytes(int64(len(r.Value)))
	for b.Loop() {
		if _, ok := readLineRecord("a-campaign", r); !ok {
			b.Fatal("it cannot be read")
		}
	}
}
