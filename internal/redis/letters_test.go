package redis_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/services"
)

// TestASettlingMovesNoMoreBytesWhenManyDeadLettersAreOpen has somebody listen and wait
// meanwhile.
func TestASettlingMovesNoMoreBytesWhenManyDeadLettersAreOpen(t *testing.T) {
	s := newShop(t, services.Redis.Server(t).URL(), firstcome.Unlimited)
	heard := make(chan flow.Settled, 10)
	watch(t, s.gate, func(_ firstcome.CampaignID, settled flow.Settled) { heard <- settled })
	letter := int64(1)
	settle := func(letters int64) {
		t.Helper()
		settled := flow.Settled{Through: 100_000 + letter, Order: letter + 1, Since: letter, Epoch: 1}
		if letter == 1 {
			settled.Since = 0
		}
		for range letters {
			settled.Unrecorded = append(settled.Unrecorded, 100_000+letter)
			letter++
		}
		settled.Order = letter
		if err := s.gate.Settle(t.Context(), "c", settled); err != nil {
			t.Fatal(err)
		}
		<-heard
	}
	work := func() int64 {
		t.Helper()
		before := s.moved()
		for range 5 {
			settle(1)
			if _, err := s.gate.SettledThrough(t.Context(), "c", []int64{1, 100_001}); err != nil {
				t.Fatal(err)
			}
		}
		return s.moved() - before
	}
	settle(200) // more than a message holds
	few := work()
	settle(20_000)
	many := work()
	// The client says now and then that it is there, and numbers have as many digits.
	if many > few+500 {
		t.Errorf("%d bytes with 200 dead letters, %d with 20,000", few, many)
	}
}

// moved returns the bytes that Redis has read and written.
func (s *shop) moved() (bytes int64) {
	s.t.Helper()
	text, err := s.do("INFO", "stats").ToString()
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "total_net_input_bytes" || name == "total_net_output_bytes" {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			bytes += n
		}
	}
	return bytes
}
