package api

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/seed"
)

func TestAnInstantHasSixDigits(t *testing.T) {
	random := seed.Rand(t)
	instants := []time.Time{time.Unix(0, 0), time.Unix(1, 999_999_999), time.Unix(1, 1000), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}
	for range 100 {
		instants = append(instants, time.Unix(random.Int64N(200_000_000_000), random.Int64N(1_000_000_000)))
	}
	for _, at := range instants {
		if got, want := string(appendTime([]byte("at: "), at)), `at: "`+at.UTC().Format(client.TimeLayout)+`"`; got != want {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}
}

// TestACouponIsRenderedWithoutAllocating, also with the longest list of prizes and many skips.
func TestACouponIsRenderedWithoutAllocating(t *testing.T) {
	prizes := firstcome.Terms{Skips: []firstcome.Skip{{After: 100, Skipped: 7}, {After: 500, Skipped: 20}}}
	for n := range firstcome.MaxPrizes {
		prizes.Prizes = append(prizes.Prizes, firstcome.Prize{ID: "p", Name: "n", Quantity: int64(n + 1), Benefit: []byte(`{"percent": 20}`)})
	}
	c := firstcome.Coupon{Campaign: "c", Number: 612, User: "u", Code: "7ZK2M0Q9X4T1B8RC", IssuedAt: time.Unix(1, 0)}
	for what, with := range map[string]*terms{"no prizes": render(firstcome.Terms{Benefit: []byte(`{"percent":20}`)}), "prizes": render(prizes)} {
		b := make([]byte, 0, 1024)
		if n := testing.AllocsPerRun(100, func() { b = appendCoupon(b[:0], &c, with) }); n != 0 {
			t.Errorf("with %s it allocates %v times", what, n)
		}
	}
}

// TestWhoIsRefusedAfterAnOpeningThatWasMovedIsToldToComeBack: a gate that does not know of a moved opening still refuses by the old one. The node
// reads the new opening in the terms. The answer must have a Retry-After even if the new opening is over.
func TestWhoIsRefusedAfterAnOpeningThatWasMovedIsToldToComeBack(t *testing.T) {
	opens := time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)
	for n := range 200 {
		late := time.Duration(n) * spread / 100 // up to twice the spread
		wait := retryAfter(firstcome.Decision{Outcome: firstcome.NotOpen, At: opens.Add(late)}, opens)
		if wait <= 0 || wait > spread {
			t.Errorf("%v after the opening: come back in %v, want at most %v", late, wait, spread)
		}
	}
}
