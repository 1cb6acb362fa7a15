package firstcome_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

var (
	opens  = time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)
	closes = opens.Add(time.Hour)
)

// campaign returns a campaign with a window and one coupon, changed by edit.
func campaign(edit func(*firstcome.Campaign)) firstcome.Campaign {
	c := firstcome.Campaign{Terms: firstcome.Terms{Quantity: 1, OpensAt: opens, ClosesAt: closes}}
	if edit != nil {
		edit(&c)
	}
	return c
}

func TestDecideGivesEachOutcome(t *testing.T) {
	paused := campaign(func(c *firstcome.Campaign) { c.Paused = true })
	closed := campaign(func(c *firstcome.Campaign) { c.Closed = true })
	unlimited := campaign(func(c *firstcome.Campaign) { c.Quantity = firstcome.Unlimited })
	nothing := campaign(func(c *firstcome.Campaign) { c.Quantity = 0 })
	noWindow := firstcome.Campaign{Terms: firstcome.Terms{Quantity: 1}}
	tests := []struct {
		name    string
		c       firstcome.Campaign
		now     time.Time
		inForce int64
		holds   bool
		want    firstcome.Outcome
	}{
		{"a nanosecond before opening", campaign(nil), opens.Add(-1), 0, false, firstcome.NotOpen},
		{"at opening", campaign(nil), opens, 0, false, firstcome.Issued},
		{"a nanosecond before closing", campaign(nil), closes.Add(-1), 0, false, firstcome.Issued},
		{"at closing", campaign(nil), closes, 0, false, firstcome.Closed},
		{"a nanosecond after closing", campaign(nil), closes.Add(1), 0, false, firstcome.Closed},
		{"no window, long ago", noWindow, time.Unix(0, 0), 0, false, firstcome.Issued},
		{"closed by an operator", closed, opens, 0, false, firstcome.Closed},
		{"closed by an operator before opening", closed, opens.Add(-1), 0, false, firstcome.Closed},
		{"paused", paused, opens, 0, false, firstcome.Paused},
		{"the last coupon is in force", campaign(nil), opens, 1, false, firstcome.SoldOut},
		{"one over", campaign(nil), opens, 2, false, firstcome.SoldOut},
		{"no coupons at all", nothing, opens, 0, false, firstcome.SoldOut},
		{"unlimited", unlimited, opens, 1 << 60, false, firstcome.Issued},
		{"a holder", campaign(nil), opens, 1, true, firstcome.AlreadyIssued},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := firstcome.Decide(test.c, test.now, test.inForce, test.holds, false); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestTheFirstOutcomeThatAppliesIsTheAnswer removes the causes one by one, in order of precedence: the rest decides.
func TestTheFirstOutcomeThatAppliesIsTheAnswer(t *testing.T) {
	for causes := range 1 << 5 {
		holds, early, closed, paused, soldOut := causes&1 != 0, causes&2 != 0, causes&4 != 0, causes&8 != 0, causes&16 != 0
		c := campaign(func(c *firstcome.Campaign) { c.Closed, c.Paused = closed, paused })
		now, inForce := opens, int64(0)
		if early {
			now = opens.Add(-1)
		}
		if soldOut {
			inForce = 1
		}
		want := firstcome.Issued
		switch {
		case holds:
			want = firstcome.AlreadyIssued
		case closed:
			want = firstcome.Closed
		case early:
			want = firstcome.NotOpen
		case paused:
			want = firstcome.Paused
		case soldOut:
			want = firstcome.SoldOut
		}
		if got := firstcome.Decide(c, now, inForce, holds, false); got != want {
			t.Errorf("causes %05b: got %v, want %v", causes, got, want)
		}
	}
}

func TestOutcomesHaveWordsThatParse(t *testing.T) {
	for _, o := range firstcome.Outcomes() {
		got, err := firstcome.ParseOutcome(o.String())
		if err != nil || got != o {
			t.Errorf("%v parses as %v, %v", o, got, err)
		}
	}
	for _, word := range []string{"", "Issued", "Outcome(0)"} {
		if o, err := firstcome.ParseOutcome(word); err == nil {
			t.Errorf("%q parses as %v", word, o)
		}
	}
}

func TestARefusalLastsUntilTheWindowAnswersOtherwise(t *testing.T) {
	const most = time.Minute
	never := time.Time{}
	for _, test := range []struct {
		outcome    firstcome.Outcome
		now        time.Time
		opens, end time.Time
		want       time.Duration
	}{
		{firstcome.NotOpen, opens.Add(-time.Second), opens, closes, time.Second},
		{firstcome.NotOpen, opens.Add(-time.Hour), opens, closes, most},
		{firstcome.NotOpen, opens.Add(time.Second), opens, closes, 0}, // a gate that has not heard of an earlier opening
		{firstcome.SoldOut, closes.Add(-time.Second), opens, closes, time.Second},
		{firstcome.SoldOut, closes, opens, never, most},
		{firstcome.Closed, closes, opens, closes, most},
		{firstcome.Paused, opens, opens, closes, 0},
		{firstcome.Waiting, opens, opens, closes, 0},
		{firstcome.Issued, opens, opens, closes, 0},
		{firstcome.AlreadyIssued, opens, opens, closes, 0},
		{0, opens, opens, closes, 0},
	} {
		if got := test.outcome.Lasts(test.now, test.opens, test.end, most); got != test.want {
			t.Errorf("%v at %v lasts %v, want %v", test.outcome, test.now, got, test.want)
		}
	}
}
