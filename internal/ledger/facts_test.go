package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestFactsAreBoundedAtEveryPosition asks at the ends of what an integer holds, where
// the position behind the last one is none.
func TestFactsAreBoundedAtEveryPosition(t *testing.T) {
	l := start(t, file(t), nil)
	create(t, l, "c", 9)
	claim(t, l.Gate, "c", "a", "b", "c")
	for after, want := range map[int64]int{
		math.MinInt64: 2, -1: 2, 0: 2, 1: 2, 2: 1, 3: 0, math.MaxInt64 - 1: 0, math.MaxInt64: 0,
	} {
		const limit = 2
		told := 0
		err := l.Reads.Facts(context.Background(), "c", after, limit, func(firstcome.Fact) error {
			if told++; told > limit {
				return fmt.Errorf("it tells more than the %d facts that were asked for", limit)
			}
			return nil
		})
		if err != nil || told != want {
			t.Errorf("behind %d it tells %d, %v", after, told, err)
		}
	}
}

// TestAFollowerWhoWentAwayIsToldNoMore reads a run of facts that somebody wrote into the
// ledger and that has no end.
func TestAFollowerWhoWentAwayIsToldNoMore(t *testing.T) {
	l := withRun(t, math.MaxInt64-2, 2)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := 0
	err := l.Reads.Facts(ctx, "c", 0, math.MaxInt, func(firstcome.Fact) error {
		if told++; told == 1000 {
			cancel()
		}
		if told > 1000 {
			return errors.New("it goes on")
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it tells %d facts, %v", told, err)
	}
}

func TestARunOfFactsThatCannotBeIsAnError(t *testing.T) {
	for _, run := range [][2]int64{{math.MaxInt64, 2}, {math.MaxInt64 - 1, 2}, {3, math.MaxInt64 - 2}} {
		l := withRun(t, run[0], run[1])
		err := l.Reads.Facts(context.Background(), "c", 1, 9, func(f firstcome.Fact) error {
			return fmt.Errorf("it tells %+v", f)
		})
		if err == nil || !strings.Contains(err.Error(), "is out of range") {
			t.Errorf("%d facts about the numbers from %d on: %v", run[0], run[1], err)
		}
	}
}

// withRun returns a ledger with one coupon of the campaign c, and a run of count facts behind its own.
func withRun(t *testing.T, count, number int64) *ledger.Ledger {
	t.Helper()
	path := file(t)
	l := start(t, path, nil)
	create(t, l, "c", 9)
	claim(t, l.Gate, "c", "a")
	_, err := services.Beside(t, path).Exec(`INSERT INTO facts (campaign_id, position, count, kind, number) VALUES ('c', 2, ?, 'coupon.issued', ?)`, count, number)
	stage.Must(t, err)
	return l
}
