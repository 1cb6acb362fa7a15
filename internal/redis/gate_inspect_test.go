package redis_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestWhoInspectsTheGateSeesEveryHolderAndTheWholeJournal(t *testing.T) {
	const batches, each = 250, 9 // several pages of both
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	var issued []firstcome.Coupon
	for n := range batches {
		for _, d := range s.issue(n*each, each) {
			issued = append(issued, d.Coupon)
		}
	}
	s.do("XADD", keysOf[2], "*", "format", "9", "users", "x") // which is nobody's coupon
	var journal, held []firstcome.Coupon
	err := s.gate.Unrecorded(t.Context(), "c", func(c firstcome.Coupon) error {
		journal = append(journal, c)
		return nil
	})
	stage.Must(t, err)
	if diff := cmp.Diff(issued, journal); diff != "" {
		t.Errorf("the journal is not what was issued (-issued +journal):\n%s", diff)
	}
	err = s.gate.Coupons(t.Context(), "c", func(c firstcome.Coupon) error {
		held = append(held, c)
		return nil
	})
	stage.Must(t, err)
	slices.SortFunc(held, func(a, b firstcome.Coupon) int { return int(a.Number - b.Number) })
	held = slices.Compact(held)
	for n := range issued {
		issued[n].Code = "" // which a holder does not have
	}
	if diff := cmp.Diff(issued, held); diff != "" {
		t.Errorf("the holders are not who was issued (-issued +held):\n%s", diff)
	}
}

func TestAnInspectionEndsWhenItsReaderSaysSo(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 3)
	stop := errors.New("stop")
	refuse := func(firstcome.Coupon) error { return stop }
	if err := s.gate.Coupons(t.Context(), "c", refuse); !errors.Is(err, stop) {
		t.Errorf("the holders end with %v", err)
	}
	if err := s.gate.Unrecorded(t.Context(), "c", refuse); !errors.Is(err, stop) {
		t.Errorf("the journal ends with %v", err)
	}
}
