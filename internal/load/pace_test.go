package load

import (
	"math"
	"testing"
	"time"
)

// turnsAt returns users who were in line from the beginning and were served at these times, in milliseconds.
func turnsAt(ms ...float64) []served {
	start := time.Unix(1_800_000_000, 0)
	all := make([]served, len(ms))
	for n, at := range ms {
		all[n] = served{&follower{received: start}, start.Add(time.Duration(at * float64(time.Millisecond)))}
	}
	return all
}

// every returns times at an interval, from one to before another, in milliseconds.
func every(from, to, apart float64) (all []float64) {
	for at := from; at < to; at += apart {
		all = append(all, at)
	}
	return all
}

func TestAPaceIsJudgedByTheInstantsOfTheCoupons(t *testing.T) {
	pace := int64(100)
	bucket := make([]float64, 10)
	for name, test := range map[string]struct {
		at    []float64
		share float64
		check func(k *Kept) bool
	}{
		"kept":                      {every(0, 5000, 10), 1, func(k *Kept) bool { return k.Stalls == 0 && k.Ahead < 1.01 }},
		"half of it":                {every(0, 5000, 20), 0.5, func(k *Kept) bool { return k.Stalls == 0 }},
		"a full bucket, then kept":  {append(bucket, every(10, 5000, 10)...), 1, func(k *Kept) bool { return !k.tooFast() && k.Ahead > 9.9 }},
		"two buckets at once":       {append(append(bucket, bucket...), every(10, 5000, 10)...), 1, (*Kept).tooFast},
		"the last are few":          {append(every(0, 3000, 10), 3099), 1, func(k *Kept) bool { return k.Stalls == 0 && k.Coupons == 299 }},
		"twice the pace":            {every(0, 5000, 5), 2, (*Kept).tooFast},
		"a stall, and its bucket":   {append(append(every(0, 2000, 10), every(2990, 2990.1, 0.01)...), every(3000, 5000, 10)...), 1, func(k *Kept) bool { return k.Stalls == 1 && k.Longest == 1 && k.Stalled == 1 }},
		"gaps that are no stalls":   {every(0, 5000, 105), 0.095, func(k *Kept) bool { return k.Stalls == 0 }},
		"a stall with nothing made": {append(every(0, 2000, 10), every(3000, 5000, 10)...), 0.975, func(k *Kept) bool { return k.Stalls == 1 }},
	} {
		k, why := keptPace(Options{}, &pace, turnsAt(test.at...))
		if k == nil || math.Abs(k.Share-test.share) > 0.005 || !test.check(k) {
			t.Errorf("%s: %+v %s", name, k, why)
		}
	}
}

func TestAPaceIsNotJudgedWhereNobodyWaits(t *testing.T) {
	pace := int64(100)
	alone := turnsAt(every(0, 5000, 50)...)
	for n := range alone {
		alone[n].received = alone[n].at // each came once the one before had been served
	}
	for name, test := range map[string]struct {
		Options
		pace  *int64
		turns []served
	}{
		"no line":            {pace: &pace, turns: alone},
		"no time":            {pace: &pace, turns: turnsAt(0, 500)},
		"nobody":             {pace: &pace},
		"no pace":            {turns: turnsAt(every(0, 5000, 10)...)},
		"others in the line": {Options: Options{Others: true}, pace: &pace, turns: turnsAt(every(0, 5000, 10)...)},
	} {
		if k, why := keptPace(test.Options, test.pace, test.turns); k != nil || why == "" {
			t.Errorf("%s: %+v %q", name, k, why)
		}
	}
	crowd := turnsAt(every(6000, 8000, 10)...)
	for n := range crowd {
		crowd[n].received = crowd[0].at.Add(-time.Millisecond)
	}
	if k, _ := keptPace(Options{}, &pace, append(alone, crowd...)); k == nil || k.Coupons != 198 || math.Abs(k.Share-1) > 0.001 {
		t.Errorf("a crowd behind single people: %+v", k)
	}
}

func TestThePaceIsAThreshold(t *testing.T) {
	for name, test := range map[string]struct {
		line *Line
		kept bool
	}{
		"kept":       {&Line{Kept: &Kept{Share: 0.99, Ahead: 9, Bucket: 10}}, true},
		"too slow":   {&Line{Kept: &Kept{Share: 0.97, Ahead: 9, Bucket: 10}}, false},
		"too fast":   {&Line{Kept: &Kept{Share: 1, Ahead: 12, Bucket: 10}}, false},
		"not judged": {&Line{}, false},
		"no line":    {nil, false},
	} {
		all := thresholds(Options{PaceKept: 0.98}, &Result{Line: test.line})
		if len(all) != 1 || all[0].Name != "pace_kept" || all[0].Kept != test.kept {
			t.Errorf("%s: %+v", name, all)
		}
	}
}
