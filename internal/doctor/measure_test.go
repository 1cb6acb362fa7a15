package doctor_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/internal/doctor"
)

func TestTheMedianIsNotMovedByAFewSlowRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		round := 0
		took, err := doctor.Median(func() error {
			round++
			if round%3 == 0 { // the sixth of eleven is one of them
				time.Sleep(time.Hour)
			}
			time.Sleep(1234567 * time.Nanosecond)
			return nil
		})
		if err != nil || took != 1230*time.Microsecond || round != doctor.Rounds {
			t.Errorf("the median of %d rounds is %v (%v)", round, took, err)
		}
	})
}

func TestARoundThatFailsIsTheLast(t *testing.T) {
	away, round := errors.New("away"), 0
	_, err := doctor.Median(func() error {
		round++
		if round == 3 {
			return away
		}
		return nil
	})
	if !errors.Is(err, away) || round != 3 {
		t.Errorf("after %d rounds: %v", round, err)
	}
}

func TestAClockIsHeldAgainstTheMiddleOfItsReading(t *testing.T) {
	for apart, want := range map[time.Duration]doctor.Findings{
		0:                              {{Grade: doctor.OK, What: "clock", Found: "0s from this machine's"}},
		time.Second:                    {{Grade: doctor.OK, What: "clock", Found: "1s from this machine's"}},
		1001 * time.Millisecond:        {{Grade: doctor.Warn, What: "clock", Found: "1.001s from this machine's", Fix: "set it"}},
		-time.Second - time.Nanosecond: {{Grade: doctor.Warn, What: "clock", Found: "-1s from this machine's", Fix: "set it"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var found doctor.Findings
			err := found.Clock("clock", "set it", func() (time.Time, error) {
				time.Sleep(2 * time.Second)
				server := time.Now().Add(apart)
				time.Sleep(2 * time.Second)
				return server, nil
			})
			if diff := cmp.Diff(want, found); err != nil || diff != "" {
				t.Errorf("%v: %v\n%s", apart, err, diff)
			}
		})
	}
}

func TestAClockThatCannotBeReadAddsNothing(t *testing.T) {
	away := errors.New("away")
	var found doctor.Findings
	err := found.Clock("clock", "set it", func() (time.Time, error) { return time.Time{}, away })
	if !errors.Is(err, away) || len(found) > 0 {
		t.Errorf("it says %v and adds %v", err, found)
	}
}
