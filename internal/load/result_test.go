package load_test

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/load"
	"github.com/firstcome/firstcome/test/stage"
)

// asking returns workers whose claims take a given time and get the answers of answer.
func asking(takes time.Duration, answer func(user int) load.Answer) func() load.Ask {
	return func() load.Ask {
		return func(user int) load.Answer {
			time.Sleep(takes)
			return answer(user)
		}
	}
}

func soldOutTo(int) load.Answer { return load.Answer{Outcome: firstcome.SoldOut} }

// TestNoIntervalIsScaledUp checks that each interval's rate, times its length, is its number of claims. The last interval lasts until the last
// answer, and is no shorter than the others.
func TestNoIntervalIsScaledUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, users := range []int{1, 30, 64, 640, 64_000, 64_001, 65_000} {
			r := load.Drive(t.Context(), load.Options{Users: users, Repeat: 1, Concurrency: 64}, asking(time.Millisecond, soldOutTo))
			sum, last := 0.0, len(r.Series.At)-1
			for n, rate := range r.Series.PerSecond["sold_out"] {
				lasted := r.Series.Interval
				if n == last {
					lasted = max(r.Seconds-r.Series.At[n], lasted)
				}
				sum += rate * lasted
				if n == last && rate > 1.2*64_000 { // an answer at the very end is one more
					t.Errorf("of %d claims the last %v s have %v a second: 64 workers make 64,000", users, lasted, rate)
				}
			}
			if math.Abs(sum-float64(users)) > 0.01*float64(users) {
				t.Errorf("the intervals' rates make %v claims of %d", sum, users)
			}
		}
	})
}

// TestARunEndsAtItsDurationAndAGrace has a server that is a thousand times too slow for the rate, and a server that never knows the outcome.
func TestARunEndsAtItsDurationAndAGrace(t *testing.T) {
	const duration, takes = 2 * time.Second, time.Second
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := load.Drive(t.Context(), load.Options{Users: 2000, Repeat: 1, Concurrency: 1, Rate: 1000, Duration: duration}, asking(takes, soldOutTo))
		if took := time.Since(began); took > duration+time.Second+takes {
			t.Errorf("a run of %v took %v", duration, took)
		}
		if r.Claims+r.Unsent != 2000 || r.Interrupted || !r.LagMatters() || len(r.Warnings) != 2 {
			t.Errorf("%d claims were sent and %d not: %q", r.Claims, r.Unsent, r.Warnings)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		load.Drive(t.Context(), load.Options{Users: 10, Repeat: 1, Concurrency: 10, Again: 1000, Duration: duration},
			asking(time.Millisecond, func(int) load.Answer { return load.Answer{Trouble: "HTTP 503"} }))
		if took := time.Since(began); took > duration+2*time.Second {
			t.Errorf("a run of %v that asks again took %v", duration, took)
		}
	})
}

func TestAGeneratorThatKeepsUpWarnsOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := load.Drive(t.Context(), load.Options{Users: 2000, Repeat: 1, Concurrency: 8, Rate: 1000, Duration: 2 * time.Second}, asking(time.Millisecond, soldOutTo))
		if r.Claims != 2000 || r.Unsent != 0 || r.LagMatters() || len(r.Warnings) > 0 {
			t.Errorf("%d claims, %d unsent: %q", r.Claims, r.Unsent, r.Warnings)
		}
	})
}

func TestTheHeadlineIsWhenItSoldOut(t *testing.T) {
	for want, coupons := range map[string]int{
		"Sold out after 1.00 s": 10, "Sold out before it began": 0, "20 coupons issued in 2.00 s": 20,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := load.Drive(t.Context(), load.Options{Users: 20, Repeat: 1, Concurrency: 1}, asking(100*time.Millisecond, func(user int) load.Answer {
				if user < coupons {
					return load.Answer{Outcome: firstcome.Issued, Number: int64(user + 1), Code: "C"}
				}
				return load.Answer{Outcome: firstcome.SoldOut}
			}))
			if r.Headline() != want {
				t.Errorf("of %d coupons it is %q, want %q", coupons, r.Headline(), want)
			}
		})
	}
	if r := (&load.Result{}); r.Headline() != "No coupon was issued" {
		t.Errorf("of nothing it is %q", r.Headline())
	}
}

func TestAThresholdThatIsNotKeptIsInTheVerdict(t *testing.T) {
	few, many := int64(0), int64(20)
	fifth := func(w http.ResponseWriter, claim int, _ bool) bool {
		if claim%5 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	for name, test := range map[string]struct {
		p99    time.Duration
		errors *int64
		ok     bool
		says   string
	}{
		"none":         {0, nil, true, "verdict: 0 breaches\n"},
		"both kept":    {time.Hour, &many, true, "within 3,600,000 ms; 20 errors, within 20\n"},
		"too many":     {time.Hour, &few, false, "20 errors, over 0\n"},
		"too slow":     {time.Microsecond, &many, false, "ms, over 0.00 ms; 20 errors, within 20\n"},
		"none is kept": {time.Microsecond, &few, false, "over 0\n"},
	} {
		r := run(t, load.Options{Server: open(t, &shop{quantity: 10, fails: fifth}), Users: 100, P99: test.p99, Errors: test.errors})
		var table bytes.Buffer
		stage.Must(t, r.WriteTable(&table))
		if !r.Verdict.OK() || r.OK() != test.ok || !strings.Contains(table.String(), test.says) {
			t.Errorf("%s: it is %v:\n%s", name, r.OK(), &table)
		}
	}
	if r := load.Drive(t.Context(), load.Options{Concurrency: 1, P99: time.Hour}, asking(0, soldOutTo)); r.Missed() == "" {
		t.Error("a run without answers was fast enough")
	}
}

func TestALatencyIsTheSameWhereverItStands(t *testing.T) {
	r := &load.Result{Load: load.Load{Loop: "open"}, Latency: load.Latency{Count: 1, P50: 175.999, P95: 175.999, P99: 175.999, Max: 175.999}}
	var table, report bytes.Buffer
	stage.Must(t, errors.Join(r.WriteTable(&table), r.WriteReport(&report)))
	page, _, _ := strings.Cut(report.String(), "<script>")
	if strings.Contains(table.String(), "175") || strings.Contains(page, "175") {
		t.Error("a latency of 175.999 ms is cut to 175")
	}
	if cards, cells := strings.Count(page, `>176 <small>`), strings.Count(page, "<td>176</td>"); cards != 4 || cells != 4 || strings.Count(table.String(), " 176") != 4 {
		t.Errorf("it is 176 on %d cards and in %d cells, and in the terminal:\n%s", cards, cells, &table)
	}
}

func TestTheHeadNamesServerVersionAndMachine(t *testing.T) {
	server := open(t, &shop{quantity: 5})
	r := run(t, load.Options{Server: server, Users: 10, Version: "v9.9"})
	var table, report bytes.Buffer
	stage.Must(t, errors.Join(r.WriteTable(&table), r.WriteReport(&report)))
	for _, want := range []string{server + ", firstcome v9.8", r.Generator.Platform, "processor"} {
		if !strings.Contains(table.String(), want) || !strings.Contains(report.String(), want) {
			t.Errorf("table and report do not both say %q", want)
		}
	}
	if head, _, _ := strings.Cut(report.String(), "</header>"); !strings.Contains(head, server+", firstcome v9.8") || !strings.Contains(head, r.Generator.Platform) {
		t.Error("they are not in the head of the report")
	}
	if !strings.Contains(report.String(), "firstcome v9.9") || !strings.Contains(report.String(), "on the generator&#39;s machine") && !strings.Contains(report.String(), "on the generator's machine") {
		t.Error("the report does not say which firstcome the load is of, or where the server is")
	}
}
