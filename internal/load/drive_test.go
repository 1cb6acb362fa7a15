package load_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/load"
)

// users returns the order in which users would claim, without claiming.
func users(c load.Options) []int {
	var order []int
	c.Concurrency = 1
	var mu sync.Mutex
	load.Drive(context.Background(), c, func() load.Ask {
		return func(user int) load.Answer {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, user)
			return load.Answer{Outcome: firstcome.SoldOut}
		}
	})
	return order
}

func TestTheOrderOfTheUsersComesFromTheSeed(t *testing.T) {
	c := load.Options{Users: 50, Repeat: 3, Shuffle: true, Seed: 1}
	first := users(c)
	if diff := cmp.Diff(first, users(c)); diff != "" {
		t.Errorf("the same seed made another order: %s", diff)
	}
	c.Seed = 2
	if cmp.Equal(first, users(c)) {
		t.Error("another seed made the same order")
	}
	times := map[int]int{}
	for _, user := range first {
		times[user]++
	}
	for user := range c.Users {
		if times[user] != 3 {
			t.Errorf("user %d claims %d times, want 3", user, times[user])
		}
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3}, users(load.Options{Users: 4, Repeat: 1})); diff != "" {
		t.Errorf("without a shuffle: %s", diff)
	}
}

// stalling is a server that answers within a millisecond, but stalls for one second.
func stalling(start time.Time) func() load.Ask {
	return func() load.Ask {
		return func(int) load.Answer {
			time.Sleep(time.Millisecond)
			if at := time.Since(start); at > time.Second && at < 2*time.Second {
				time.Sleep(2*time.Second - at)
			}
			return load.Answer{Outcome: firstcome.SoldOut}
		}
	}
}

func TestTheOpenLoopCountsAStallFromWhenClaimsWereDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := load.Options{Users: 4000, Repeat: 1, Concurrency: 4, Rate: 1000}
		r := load.Drive(t.Context(), c, stalling(time.Now()))
		// A thousand claims were due in the stall: a quarter of all. Those due in its last second waited for its end, and then in the queue that it
		// left.
		if r.Latency.P90 < 500 || r.Latency.Max < 990 || r.Lag.Max < 900 {
			t.Errorf("latency %+v, lag %+v: the stall is hidden", r.Latency, r.Lag)
		}
		if r.Latency.P50 > 2 {
			t.Errorf("the median is %v ms: most claims were not in the stall", r.Latency.P50)
		}
		worst := 0.0
		for n, at := range r.Series.At {
			if p99 := r.Series.P99[n]; p99 != nil && at >= 1.9 && at < 2.2 {
				worst = max(worst, *p99)
			}
		}
		if worst < 900 {
			t.Errorf("behind the stall the series has at most %v ms", worst)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := load.Options{Users: 4000, Repeat: 1, Concurrency: 4}
		r := load.Drive(t.Context(), c, stalling(time.Now()))
		if r.Latency.P99 > 2 {
			t.Errorf("p99 %v ms: in the closed loop four claims only see the stall", r.Latency.P99)
		}
	})
}

func TestNoClaimIsSentAfterTheDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0, 500} {
			c := load.Options{Users: 1_000_000, Repeat: 1, Concurrency: 2, Rate: rate, Duration: 2 * time.Second}
			start := time.Now()
			last := time.Duration(0)
			var mu sync.Mutex
			r := load.Drive(t.Context(), c, func() load.Ask {
				return func(int) load.Answer {
					mu.Lock()
					last = max(last, time.Since(start))
					mu.Unlock()
					time.Sleep(time.Millisecond)
					return load.Answer{Outcome: firstcome.SoldOut}
				}
			})
			if last >= 2*time.Second || last < 1990*time.Millisecond || r.Claims < 999 {
				t.Errorf("rate %v: %d claims, the last at %v", rate, r.Claims, last)
			}
		}
	})
}

func TestAClaimThatIsDueInCenturiesIsNotSentNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := load.Options{Users: 2, Repeat: 1, Concurrency: 1, Rate: 1e-10, Duration: time.Hour}
		r := load.Drive(t.Context(), c, func() load.Ask {
			return func(int) load.Answer { return load.Answer{Outcome: firstcome.SoldOut} }
		})
		if r.Claims != 1 {
			t.Errorf("%d claims were sent", r.Claims)
		}
	})
}

// TestNumbersStandAtTheInstantOfTheirIssue has a server whose clock differs from the client's, and whose answers come in another order than its
// decisions.
func TestNumbersStandAtTheInstantOfTheirIssue(t *testing.T) {
	const users, apart = 10, 250_000 // microseconds
	began := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro()
	result := load.Drive(t.Context(), load.Options{Users: users, Repeat: 1, Concurrency: 1}, func() load.Ask {
		return func(user int) load.Answer {
			number := int64(users - user)
			return load.Answer{Outcome: firstcome.Issued, Number: number, Code: "C", IssuedAt: began + number*apart}
		}
	})
	var want []load.Number
	for n := range users {
		want = append(want, load.Number{At: float64(n) / 4, Number: int64(n + 1)})
	}
	if diff := cmp.Diff(want, result.Numbers); diff != "" {
		t.Error(diff)
	}
}

func TestClaimsAreSentWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, due := time.Now(), []time.Duration{0, time.Second, time.Second, 5 * time.Second}
		c := load.Options{Users: 4, Repeat: 1, Concurrency: 1, Rate: 1000, Due: func(n int64) time.Duration { return due[n] }}
		var sent []time.Duration
		r := load.Drive(t.Context(), c, func() load.Ask {
			return func(int) load.Answer {
				sent = append(sent, time.Since(start))
				return load.Answer{Outcome: firstcome.SoldOut}
			}
		})
		if !slices.Equal(sent, due) || r.Claims != 4 {
			t.Errorf("they were sent at %v, and due at %v", sent, due)
		}
	})
}
