package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestACoursePassesOverWhatWasLost spreads over the numbers that were given.
func TestACoursePassesOverWhatWasLost(t *testing.T) {
	for _, c := range []struct {
		lost []firstcome.Range
		last int64
		most int
		want string
	}{
		{nil, 0, 5, "[] map[]"},
		{nil, 3, 5, "[1 2 3] map[1:1 2:2 3:3]"},
		{[]firstcome.Range{{First: 2, Count: 1}}, 4, 5, "[1 3 4] map[1:1 3:2 4:3]"},
		{[]firstcome.Range{{First: 1, Count: 100}}, 102, 5, "[101 102] map[101:1 102:2]"},
		{[]firstcome.Range{{First: 3, Count: 1000}, {First: 1003, Count: 5}}, 1010, 3, "[1 1008 1010] map[1:1 1008:3 1010:5]"},
		{[]firstcome.Range{{First: 4, Count: 1000}}, 3, 5, "[1 2 3] map[1:1 2:2 3:3]"}, // lost after the last coupon
		{[]firstcome.Range{{First: 4, Count: 1000}}, 10, 5, "[1 2 3] map[1:1 2:2 3:3]"},
	} {
		numbers, nth := spreadAround(c.lost, c.last, c.most)
		if got := fmt.Sprint(numbers, nth); got != c.want {
			t.Errorf("up to %d without %v: %s, want %s", c.last, c.lost, got, c.want)
		}
	}
}

// TestTheCourseOfVoidsIsThatOfTheCoupons voids every third coupon of 30, the last ones first.
func TestTheCourseOfVoidsIsThatOfTheCoupons(t *testing.T) {
	for kind, of := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := opened(t, of(t), "")
			stage.Run(t, l.Run)
			quantity(t, l, firstcome.Unlimited)
			(&planned{t: t}).claims(l, 30)
			if steps, err := l.Reads.Voids(t.Context(), "c", 5); err != nil || len(steps) != 0 {
				t.Errorf("before: %v, %v", steps, err)
			}
			at := map[int64]time.Time{}
			for n := int64(10); n > 0; n-- {
				c, err := l.Campaigns.Void(t.Context(), "test", "c", 3*n, "test")
				stage.Must(t, err)
				at[11-n] = c.VoidedAt
			}
			for most, want := range map[int]string{20: "1 2 3 4 5 6 7 8 9 10 ", 4: "1 4 7 10 "} {
				steps, err := l.Reads.Voids(t.Context(), "c", most)
				stage.Must(t, err)
				got := ""
				for _, s := range steps {
					got += fmt.Sprint(s.Nth, " ")
					if !s.At.Equal(at[s.Nth]) {
						t.Errorf("the void %d was at %v, want %v", s.Nth, s.At, at[s.Nth])
					}
				}
				if got != want {
					t.Errorf("of at most %d: %s, want %s", most, got, want)
				}
			}
			steps, err := l.Reads.Course(t.Context(), "c", 30, 4)
			stage.Must(t, err)
			got := ""
			for _, s := range steps {
				got += fmt.Sprint(s.Number, ":", s.Nth, " ")
			}
			if want := "1:1 10:10 20:20 30:30 "; got != want {
				t.Errorf("the course is %s, want %s", got, want)
			}
		})
	}
}
