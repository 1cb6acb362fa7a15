package httpd

import (
	"testing"
	"time"
)

func TestADeadlineIsSetAnewWhenASixteenthOfItIsOver(t *testing.T) {
	var set time.Time
	now := time.Now()
	for _, c := range []struct {
		later time.Duration
		want  bool
	}{{0, true}, {0, false}, {time.Second - 1, false}, {time.Second, true}, {time.Second, false}, {2 * time.Second, true}} {
		if got := isDue(&set, now.Add(c.later), 16*time.Second); got != c.want {
			t.Errorf("%v later it is due: %t", c.later, got)
		}
	}
}
