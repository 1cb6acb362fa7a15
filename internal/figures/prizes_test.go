package figures_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// prized is the status of a campaign of 10 coupons: 2 with the first prize, 3 with the second. last is its last number, of which voided were voided.
func prized(last, voided int64) (s ledger.Status) {
	s.ID, s.Quantity, s.Prizes = "spring", 10, []firstcome.Prize{{ID: "drink", Quantity: 2}, {ID: "sale", Quantity: 3}, {ID: "rest"}}
	s.LastNumber, s.Issued, s.InForce = last, last, last-voided
	return s
}

// TestTheStockOfPrizesFollowsFromTheLastNumber: ranks of voided coupons are not given again, and their stock goes to the last prize.
func TestTheStockOfPrizesFollowsFromTheLastNumber(t *testing.T) {
	b := &board{}
	w := figures.NewWatcher(b, nil, b)
	for _, c := range []struct {
		last, voided int64
		given, of    [3]int64
	}{
		{0, 0, [3]int64{0, 0, 0}, [3]int64{2, 3, 5}},
		{1, 0, [3]int64{1, 0, 0}, [3]int64{2, 3, 5}},
		{2, 1, [3]int64{2, 0, 0}, [3]int64{2, 3, 6}},
		{5, 0, [3]int64{2, 3, 0}, [3]int64{2, 3, 5}},
		{6, 0, [3]int64{2, 3, 1}, [3]int64{2, 3, 5}},
		{12, 2, [3]int64{2, 3, 7}, [3]int64{2, 3, 7}},
	} {
		b.status = prized(c.last, c.voided)
		s, err := w.Now(t.Context(), "spring")
		stage.Must(t, err)
		for n, p := range s.Prizes {
			if *p.Given != c.given[n] || *p.Of != c.of[n] {
				t.Errorf("after %d numbers %d of %d are given of prize %d, want %d of %d", c.last, *p.Given, *p.Of, n, c.given[n], c.of[n])
			}
		}
	}
	b.status = prized(7, 0)
	b.status.Quantity, b.status.Skips = firstcome.Unlimited, []firstcome.Skip{{After: 4, Skipped: 3}}
	s, err := w.Now(t.Context(), "spring")
	stage.Must(t, err)
	if *s.Ranks != 4 || *s.Prizes[1].Given != 2 || *s.Prizes[2].Given != 0 || s.Prizes[2].Of != nil {
		t.Errorf("after skipped numbers, without a limit: %+v", s.Prizes)
	}
	b.status = ledger.Status{}
	if s, err = w.Now(t.Context(), "spring"); err != nil || s.Prizes != nil {
		t.Errorf("without prizes: %+v, %v", s.Prizes, err)
	}
}

// TestWhenAPrizeRanOutIsReadOnce, once the ledger knows it, however often the campaign is read.
func TestWhenAPrizeRanOutIsReadOnce(t *testing.T) {
	b := &board{}
	w := figures.NewWatcher(b, nil, b)
	first, second := time.Unix(1000, 0).UTC(), time.Unix(1012, 0).UTC()
	reads := func(last int64, asked int, want ...time.Time) {
		t.Helper()
		b.status = prized(last, 0)
		s, err := w.Now(t.Context(), "spring")
		stage.Must(t, err)
		var got []time.Time
		for _, p := range s.Prizes {
			got = append(got, p.RanOutAt)
		}
		if diff := cmp.Diff(want, got); diff != "" || b.asked != asked {
			t.Errorf("after %d numbers the ledger was asked %d times, want %d (-want +got):\n%s", last, b.asked, asked, diff)
		}
	}
	none := time.Time{}
	reads(1, 0, none, none, none)
	b.given = []ledger.PrizeGiven{{}, {}, {}}
	reads(2, 1, none, none, none) // not recorded yet
	b.given = []ledger.PrizeGiven{{RanOutAt: first}, {}, {}}
	reads(2, 2, first, none, none)
	reads(3, 2, first, none, none)
	b.given = []ledger.PrizeGiven{{RanOutAt: first}, {RanOutAt: second}, {}}
	reads(5, 3, first, second, none)
	reads(9, 3, first, second, none)
	reads(1, 3, none, none, none) // a restored ledger gives ranks again
	b.given = []ledger.PrizeGiven{{RanOutAt: second}, {}, {}}
	reads(3, 4, second, none, none)
}

// TestStockIsUnknownWithTheGate: then only the quantities of the prizes are known.
func TestStockIsUnknownWithTheGate(t *testing.T) {
	b := &board{status: prized(2, 0)}
	b.status.Gate, b.status.Applied = "far away", 1
	s, err := figures.NewWatcher(b, noGate{}, b).Now(t.Context(), "spring")
	stage.Must(t, err)
	for n, p := range s.Prizes {
		if p.Given != nil || !p.RanOutAt.IsZero() || (p.Of == nil) != (n == 2) {
			t.Errorf("prize %d: %+v", n, p)
		}
	}
	if len(s.Prizes) != 3 || b.asked != 0 {
		t.Errorf("%d prizes, and the ledger was asked %d times", len(s.Prizes), b.asked)
	}
	b.fails = errors.New("no route to the database")
	if s, err = figures.NewWatcher(b, nil, b).Now(t.Context(), "spring"); err != nil || s.Prizes != nil {
		t.Errorf("while the ledger is down: %+v, %v", s.Prizes, err)
	}
}

// A counted gate has these counters.
type counted struct{ at gate.State }

func (c counted) State(context.Context, firstcome.CampaignID) (gate.State, error) { return c.at, nil }

// TestAClosedCampaignThatWasRebuiltGaveNoMoreRanks: no change of its terms skips the numbers up to its gate's last one. An open campaign's gate has
// given its last number.
func TestAClosedCampaignThatWasRebuiltGaveNoMoreRanks(t *testing.T) {
	b := &board{status: prized(3, 0)}
	b.status.Gate, b.status.Applied = "far away", 1
	for _, c := range []struct {
		closed      bool
		drained, is int64
	}{{true, 1000, 3}, {true, 999, 1000}, {false, 1000, 1000}} {
		b.status.Closed = c.closed
		g := counted{gate.State{LastNumber: 1000, DrainedThrough: c.drained, InForce: 3}}
		s, err := figures.NewWatcher(b, g, b).Now(t.Context(), "spring")
		stage.Must(t, err)
		if *s.Ranks != c.is {
			t.Errorf("closed %t, drained through %d: %d ranks are given, want %d", c.closed, c.drained, *s.Ranks, c.is)
		}
	}
}
