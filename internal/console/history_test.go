package console

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestRatesMissNothing compares the sum over all spans with the number of coupons.
func TestRatesMissNothing(t *testing.T) {
	for _, c := range []struct {
		what   string
		points []point
		want   []tempo
	}{
		{"nothing", nil, []tempo{}},
		{"all at one instant", []point{{10, 1}, {10, 64}}, []tempo{{10, 11, 64}}},
		{"less than a second", []point{{10, 1}, {10.5, 64}}, []tempo{{10, 11, 64}}},
		{"two seconds, and a rest", []point{{10, 1}, {10, 20}, {11, 50}, {12, 80}, {12.5, 85}}, []tempo{{10, 11, 50}, {11, 12.5, 35 / 1.5}}},
		{"a pause", []point{{10, 10}, {11, 20}, {111, 21}}, []tempo{{10, 11, 20}, {11, 111, .01}}},
	} {
		got := rates(c.points)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
		sum := 0.0
		for _, r := range got {
			sum += r[2] * (r[1] - r[0])
			if r[1]-r[0] < narrowest {
				t.Errorf("%s: the span %v is short", c.what, r)
			}
		}
		if n := len(c.points); n > 0 && math.Abs(sum-c.points[n-1][1]) > 1e-6 {
			t.Errorf("%s: the spans add up to %v of %v", c.what, sum, c.points[n-1])
		}
	}
}

// TestRowsOfTheHistoryMissNothing has three kinds of coupons that begin and end at different instants.
func TestRowsOfTheHistoryMissNothing(t *testing.T) {
	h := history{Issued: []point{{100, 1}, {103, 300}, {104, 1000}}, Recorded: []point{{101, 1}, {160, 1000}}, Voided: []point{{500, 1}, {500.2, 7}}}
	rows := rateRows(&h, 10)
	if len(rows) == 0 || len(rows) > 11 {
		t.Fatalf("%d rows", len(rows))
	}
	var issued, recorded, voided float64
	for n, r := range rows {
		seconds := r.To.Sub(r.From).Seconds()
		issued, recorded, voided = issued+r.Issued*seconds, recorded+r.Recorded*seconds, voided+r.Voided*seconds
		if n > 0 && !r.From.Equal(rows[n-1].To) {
			t.Errorf("row %d begins at %v, the one before ended at %v", n, r.From, rows[n-1].To)
		}
	}
	if math.Round(issued) != 1000 || math.Round(recorded) != 1000 || math.Round(voided) != 7 {
		t.Errorf("the rows have %v issued, %v recorded and %v voided", issued, recorded, voided)
	}
	if rows[0].From.Before(time.Unix(100, 0)) || rateRows(&history{}, 10) != nil {
		t.Errorf("the first row is %+v", rows[0])
	}
}
