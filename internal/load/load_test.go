package load_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, c load.Config) *load.Result {
	t.Helper()
	if c.Campaign == "" {
		c.Campaign = "launch"
	}
	result, err := load.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestARightServerHasNoBreach(t *testing.T) {
	server := open(t, &shop{quantity: 300})
	r := run(t, load.Config{Server: server, Users: 1000, Concurrency: 16})
	if diff := cmp.Diff(map[string]int64{"issued": 300, "sold_out": 700}, r.Outcomes); diff != "" {
		t.Error(diff)
	}
	if !r.Verdict.OK() || r.Verdict.Coupons != 300 || r.Verdict.InForce != 300 {
		t.Errorf("%v: %+v", r.Verdict, r.Verdict)
	}
	if r.Claims != 1000 || r.Latency.Count != 1000 || r.Latency.P50 <= 0 || r.Latency.Max < r.Latency.P99 || r.PerSecond <= 0 {
		t.Errorf("figures: %+v", r)
	}
}

func TestRepeatsFindTheSameCoupon(t *testing.T) {
	server := open(t, &shop{quantity: 1000})
	r := run(t, load.Config{Server: server, Users: 200, Repeat: 5, Concurrency: 16, Shuffle: true, Seed: 7})
	if diff := cmp.Diff(map[string]int64{"issued": 200, "already_issued": 800}, r.Outcomes); diff != "" {
		t.Error(diff)
	}
	if !r.Verdict.OK() {
		t.Errorf("%+v", r.Verdict)
	}
}

func TestTheOpenLoopSendsAtItsRate(t *testing.T) {
	server := open(t, &shop{quantity: 50})
	r := run(t, load.Config{Server: server, Rate: 1000, Duration: 200 * time.Millisecond, Concurrency: 8})
	if r.Claims != 200 || !r.Verdict.OK() || r.Load.Loop != "open" {
		t.Errorf("%d claims in the %s loop, %v", r.Claims, r.Load.Loop, r.Verdict)
	}
	if r.Seconds < 0.199 {
		t.Errorf("200 claims at 1,000 a second took %v s", r.Seconds)
	}
}

func TestAnotherRunOnTheSameCampaignHasNoBreach(t *testing.T) {
	server := open(t, &shop{quantity: 30})
	for n := range 3 {
		r := run(t, load.Config{Server: server, Users: 20, Prefix: fmt.Sprintf("run%d-", n/2)})
		if !r.Verdict.OK() {
			t.Errorf("run %d: %+v", n, r.Verdict)
		}
	}
}

func TestEveryKindOfWrongServerIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil   func(s *shop, user string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome
		promise string
	}{
		"oversells": {func(s *shop, user string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.SoldOut && s.next < s.quantity+3 {
				*c = s.give(user)
				return firstcome.Issued
			}
			return o
		}, "P1"},
		"undersells": {func(s *shop, user string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued && s.next == s.quantity {
				delete(s.holders, user)
				s.coupons, s.next = s.coupons[:s.next-1], s.next-1
				return firstcome.SoldOut
			}
			return o
		}, "P2"},
		"doubles a user": {func(s *shop, user string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.AlreadyIssued && s.next < s.quantity {
				*c = s.give(user)
				return firstcome.Issued
			}
			return o
		}, "P3"},
		"swaps codes": {func(s *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued && s.next == 5 {
				c.Code = s.coupons[3].Code
			}
			return o
		}, "P5"},
		"swaps numbers": {func(s *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued && s.next == 5 {
				*c = s.coupons[1]
			}
			return o
		}, "P3"},
		"reorders": {func(s *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued {
				c.Number = 1000 - s.next // later claims get smaller numbers
				s.coupons[len(s.coupons)-1].Number = c.Number
			}
			return o
		}, "P4"},
		"forgets": {func(s *shop, user string, o firstcome.Outcome, _ *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued && s.next == 20 {
				delete(s.holders, user)
				s.coupons = s.coupons[:len(s.coupons)-1]
			}
			return o
		}, "P5"},
		"issues again after sold out": {func(s *shop, _ string, o firstcome.Outcome, _ *client.Coupon) firstcome.Outcome {
			if s.claims == 10 {
				return firstcome.SoldOut
			}
			return o
		}, "P4"},
		"refuses who holds one": {func(_ *shop, _ string, o firstcome.Outcome, _ *client.Coupon) firstcome.Outcome {
			if o == firstcome.AlreadyIssued {
				return firstcome.SoldOut
			}
			return o
		}, "P6"},
		"gives to who did not ask": {func(s *shop, _ string, _ firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if s.claims == 3 {
				s.give("somebody")
			}
			return map[bool]firstcome.Outcome{true: firstcome.Issued, false: firstcome.SoldOut}[c.Number > 0]
		}, "books"},
	} {
		t.Run(name, func(t *testing.T) {
			server := open(t, &shop{quantity: 40, spoil: test.spoil})
			r := run(t, load.Config{Server: server, Users: 100, Repeat: 2, Concurrency: 2, Prefix: "u-"})
			if r.Verdict.OK() || r.Verdict.Breaches.Count[test.promise] == 0 {
				t.Errorf("no breach of %s: %+v", test.promise, r.Verdict)
			}
			var table bytes.Buffer
			if err := r.WriteTable(&table); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(table.String(), "breach") || !strings.Contains(table.String(), r.Verdict.Breaches.Shown[0].Text) {
				t.Errorf("the table does not say so:\n%s", &table)
			}
		})
	}
}

func TestLostAnswersAreUnknownAndMayBeAskedAgain(t *testing.T) {
	unavailable := func(w http.ResponseWriter, claim int, after bool) bool {
		if after == (claim%2 == 0) && claim%5 == 0 { // some before they are decided, some behind
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	server := open(t, &shop{quantity: 80, fails: unavailable})
	r := run(t, load.Config{Server: server, Users: 100, Concurrency: 4})
	if r.Outcomes["unknown"] != 20 || r.Trouble["HTTP 503"] != 20 || !r.Verdict.OK() {
		t.Errorf("outcomes %v, trouble %v, %+v", r.Outcomes, r.Trouble, r.Verdict)
	}
	server = open(t, &shop{quantity: 80, fails: unavailable})
	r = run(t, load.Config{Server: server, Users: 20, Concurrency: 4, Again: 9})
	if known := r.Claims - r.Outcomes["unknown"]; known != 20 || !r.Verdict.OK() {
		t.Errorf("outcomes %v, want 20 known: %+v", r.Outcomes, r.Verdict)
	}
}

func TestAConnectionThatBreaksIsUnknown(t *testing.T) {
	server := open(t, &shop{quantity: 80, fails: func(w http.ResponseWriter, claim int, after bool) bool {
		if claim == 7 && after {
			panic(http.ErrAbortHandler)
		}
		return false
	}})
	r := run(t, load.Config{Server: server, Users: 10, Concurrency: 1, Repeat: 2})
	if r.Outcomes["unknown"] != 1 || !r.Verdict.OK() {
		t.Errorf("outcomes %v, trouble %v, %+v", r.Outcomes, r.Trouble, r.Verdict)
	}
}

func TestWithoutAnAdminKeyNothingIsChecked(t *testing.T) {
	server := open(t, &shop{quantity: 5, key: "secret"})
	r := run(t, load.Config{Server: server, Users: 10, Key: "other"})
	if r.Verdict.OK() || r.Verdict.Checked {
		t.Errorf("%+v", r.Verdict)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "verdict: not checked, needs an admin key") {
		t.Errorf("the table does not say so:\n%s", &table)
	}
	if r := run(t, load.Config{Server: server, Users: 10, Key: "secret", Prefix: "x"}); !r.Verdict.OK() {
		t.Errorf("%+v", r.Verdict)
	}
}

func TestStockThatComesBackIsSeenByTheVersion(t *testing.T) {
	server := open(t, &shop{quantity: 5, spoil: func(s *shop, _ string, o firstcome.Outcome, _ *client.Coupon) firstcome.Outcome {
		if s.claims == 15 {
			s.quantity, s.version = 10, 2
		}
		return o
	}})
	r := run(t, load.Config{Server: server, Users: 40, Concurrency: 1})
	if !r.Verdict.OK() || r.Outcomes["issued"] != 10 || !strings.Contains(r.Verdict.Why, "changed during the run") {
		t.Errorf("%v %+v", r.Outcomes, r.Verdict)
	}
}

func TestMistakesInAConfigAreNamedTogether(t *testing.T) {
	_, err := load.Run(t.Context(), load.Config{Server: "nowhere", Campaign: "NO", Concurrency: -1, Rate: -1, Prefix: "\n"})
	for _, word := range []string{"users", "concurrency", "rate", "prefix", "campaign id"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("no word of %s: %v", word, err)
		}
	}
	for _, server := range []string{"nowhere", "ftp://host", "http://"} {
		if _, err := load.Run(t.Context(), load.Config{Server: server, Campaign: "c", Users: 1}); err == nil {
			t.Errorf("%q was taken for a server", server)
		}
	}
	server := open(t, &shop{quantity: 1})
	if _, err := load.Run(t.Context(), load.Config{Server: server, Campaign: "other", Users: 1}); err == nil {
		t.Error("a campaign that is not there has a result")
	}
}

func TestAnInterruptedRunHasTheVerdictOfWhatWasSent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := open(t, &shop{quantity: 1000, spoil: func(s *shop, _ string, o firstcome.Outcome, _ *client.Coupon) firstcome.Outcome {
		if s.claims == 100 {
			cancel()
		}
		return o
	}})
	r, err := load.Run(ctx, load.Config{Server: server, Campaign: "launch", Users: 1_000_000, Concurrency: 4})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Verdict.OK() || r.Claims < 100 || r.Claims > 100_000 {
		t.Errorf("%d claims, %+v", r.Claims, r.Verdict)
	}
}

// users asks nobody and returns in which order users would have claimed.
func users(c load.Config) []int {
	var order []int
	c.Concurrency = 1
	var mu sync.Mutex
	load.Drive(context.Background(), c, func() (load.Ask, func()) {
		return func(user int) load.Answer {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, user)
			return load.Answer{Outcome: firstcome.SoldOut}
		}, func() {}
	})
	return order
}

func TestTheOrderOfTheUsersComesFromTheSeed(t *testing.T) {
	c := load.Config{Users: 50, Repeat: 3, Shuffle: true, Seed: 1}
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
	if diff := cmp.Diff([]int{0, 1, 2, 3}, users(load.Config{Users: 4, Repeat: 1})); diff != "" {
		t.Errorf("without a shuffle: %s", diff)
	}
}

// stalling is a server that answers in a millisecond, but for one second nothing.
func stalling(start time.Time) func() (load.Ask, func()) {
	return func() (load.Ask, func()) {
		return func(int) load.Answer {
			time.Sleep(time.Millisecond)
			if at := time.Since(start); at > time.Second && at < 2*time.Second {
				time.Sleep(2*time.Second - at)
			}
			return load.Answer{Outcome: firstcome.SoldOut}
		}, func() {}
	}
}

func TestTheOpenLoopCountsAStallFromWhenClaimsWereDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := load.Config{Users: 4000, Repeat: 1, Concurrency: 4, Rate: 1000}
		r := load.Drive(t.Context(), c, stalling(time.Now()))
		// A thousand claims were due in the stall: a quarter of all. The last second's
		// worth of them waited for it, and then in the line that it left behind.
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
		c := load.Config{Users: 4000, Repeat: 1, Concurrency: 4}
		r := load.Drive(t.Context(), c, stalling(time.Now()))
		if r.Latency.P99 > 2 {
			t.Errorf("p99 %v ms: in the closed loop four claims only see the stall", r.Latency.P99)
		}
	})
}

func TestNoClaimIsSentAfterTheDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0, 500} {
			c := load.Config{Users: 1_000_000, Repeat: 1, Concurrency: 2, Rate: rate, Duration: 2 * time.Second}
			start := time.Now()
			last := time.Duration(0)
			var mu sync.Mutex
			r := load.Drive(t.Context(), c, func() (load.Ask, func()) {
				return func(int) load.Answer {
					mu.Lock()
					last = max(last, time.Since(start))
					mu.Unlock()
					time.Sleep(time.Millisecond)
					return load.Answer{Outcome: firstcome.SoldOut}
				}, func() {}
			})
			if last >= 2*time.Second || last < 1990*time.Millisecond || r.Claims < 999 {
				t.Errorf("rate %v: %d claims, the last at %v", rate, r.Claims, last)
			}
		}
	})
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	server := open(t, &shop{quantity: 5})
	var done, total int64
	run(t, load.Config{Server: server, Users: 25, Progress: func(d, n int64) { done, total = d, n }})
	if done != 25 || total != 25 {
		t.Errorf("progress ended at %d of %d, want 25 of 25", done, total)
	}
}
