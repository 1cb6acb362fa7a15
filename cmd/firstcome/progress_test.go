package main

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheRestOfACourseIsToldFromItsOwnBeginning(t *testing.T) {
	for want, c := range map[string]struct {
		course
		elapsed time.Duration
	}{
		" 250 of 1000, 10s, about 30s to go": {course{done: 250, total: 1000}, 10 * time.Second},
		" 0 of 1000, 10s":                    {course{total: 1000}, 10 * time.Second},
		" 1000 of 1000, 10s, about 0s to go": {course{done: 1001, total: 1000}, 10 * time.Second},
		" 1 of 50000000, 10m0s":              {course{done: 1, total: 50_000_000}, 10 * time.Minute}, // 951 years

		" 7, 10s": {course{done: 7}, 10 * time.Second},
		", 10s":   {course{}, 10 * time.Second},
	} {
		if got := c.text(c.elapsed); got != want {
			t.Errorf("%+v says %q, want %q", c.course, got, want)
		}
	}
}

// TestProgressCountsFromTheBeginningAndNotFromItsFirstLine shows a task whose half was done when progress is first shown.
func TestProgressCountsFromTheBeginningAndNotFromItsFirstLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		began := time.Now()
		done := showProgress(context.Background(), terminal{err: &out}, "x", func() course {
			return course{done: int64(time.Since(began) / time.Second), total: 10}
		})
		time.Sleep(progressAfter + lineEvery + time.Millisecond)
		done()
		const want = "x 2 of 10, 2s, about 8s to go\nx 7 of 10, 7s, about 3s to go\n"
		if out.String() != want {
			t.Errorf("it says %q, want %q", out.String(), want)
		}
	})
}
