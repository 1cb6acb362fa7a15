package main

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
)

func TestTheRateOfALineIsMeasuredBetweenTwoLooks(t *testing.T) {
	at := func(generation, serving int64, after time.Duration) client.Line {
		return client.Line{Generation: generation, Serving: serving, ServerTime: client.Time{Time: time.Unix(1_700_000_000, 0).Add(after)}}
	}
	before := at(2, 101, 0)
	for what, c := range map[string]struct {
		after client.Line
		want  string
	}{
		"served":                 {at(2, 601, 1250*time.Millisecond), "400.0 tickets a second"},
		"served by nobody":       {at(2, 101, time.Second), "0.0 tickets a second"},
		"the same look":          {at(2, 101, 0), "-"},
		"a clock that went back": {at(2, 102, -time.Second), "-"},
		"another generation":     {at(3, 1, time.Second), "-"},
	} {
		if got := rateBetween(before, c.after); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
