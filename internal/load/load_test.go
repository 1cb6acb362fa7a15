package load_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/load"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

func run(t *testing.T, c load.Options) *load.Result {
	t.Helper()
	if c.Campaign == "" {
		c.Campaign = "launch"
	}
	result, err := load.Run(t.Context(), c)
	stage.Must(t, err)
	return result
}

func TestARightServerHasNoBreach(t *testing.T) {
	server := open(t, &shop{quantity: 300})
	var done, total int64
	for _, c := range []struct {
		load.Options
		want map[string]int64
	}{
		{load.Options{Users: 100, Repeat: 5, Shuffle: true, Seed: 7, Prefix: "first-"}, map[string]int64{"issued": 100, "already_issued": 400}},
		{load.Options{Users: 1000, Prefix: "then-"}, map[string]int64{"issued": 200, "sold_out": 800}},
		{load.Options{Users: 1000, Prefix: "then-"}, map[string]int64{"already_issued": 200, "sold_out": 800}}, // another run of the same users
	} {
		c.Server, c.Concurrency, c.Progress = server, 16, func(d, n int64) { done, total = d, n }
		r := run(t, c.Options)
		if diff := cmp.Diff(c.want, r.Outcomes); diff != "" {
			t.Error(diff)
		}
		if !r.Verdict.OK() || r.Verdict.Coupons != r.Verdict.InForce || r.Claims != int64(c.Users*max(1, c.Repeat)) || r.Latency.Count != r.Claims {
			t.Errorf("%+v: %+v", r.Verdict, r)
		}
		if done != total || done != r.Claims || r.Latency.P50 <= 0 || r.Latency.Max < r.Latency.P99 || r.PerSecond <= 0 {
			t.Errorf("progress ended at %d of %d, figures: %+v", done, total, r)
		}
	}
}

func TestTheOpenLoopSendsAtItsRate(t *testing.T) {
	server := open(t, &shop{quantity: 50})
	r := run(t, load.Options{Server: server, Rate: 1000, Duration: 200 * time.Millisecond, Concurrency: 8})
	if r.Claims+r.Unsent != 200 || !r.Verdict.OK() || r.Load.Loop != "open" {
		t.Errorf("%d claims in the %s loop, %v", r.Claims, r.Load.Loop, r.Verdict)
	}
	if r.Unsent == 0 && r.Seconds < 0.199 {
		t.Errorf("200 claims at 1,000 a second took %v s", r.Seconds)
	}
}

func TestTheVerdictWaitsUntilAllIsRecorded(t *testing.T) {
	s := &shop{quantity: 30, answer: "decided", behind: 3, spoil: unrecorded}
	if r := run(t, load.Options{Server: open(t, s), Users: 20}); !r.Verdict.OK() || s.behind != 0 {
		t.Errorf("%d behind, %+v", s.behind, r.Verdict)
	}
}

func TestNothingIsCheckedIfNobodyKnowsWhatWasIssuedBeforeTheRun(t *testing.T) {
	s := &shop{quantity: 30, unknown: 3} // one of them before the run
	r := run(t, load.Options{Server: open(t, s), Users: 20})
	if r.Verdict.OK() || r.Verdict.Checked || s.unknown != 0 || !strings.Contains(r.Verdict.Why, "nobody knows how many coupons were issued before the run") {
		t.Errorf("%d reads are left, %+v", s.unknown, r.Verdict)
	}
	var text bytes.Buffer
	if stage.Must(t, r.WriteReport(&text)); strings.Contains(text.String(), "of them issued before") {
		t.Error("the report says how many were issued before")
	}
}

func TestACouponAnsweredBeforeItWasRecordedIsABreachIfTheCampaignAnswersWhatIsRecorded(t *testing.T) {
	for answer, breaches := range map[string]int64{"recorded": 20, "decided": 0} {
		r := run(t, load.Options{Server: open(t, &shop{quantity: 30, answer: answer, spoil: unrecorded}), Users: 20})
		if !r.Verdict.Checked || r.Verdict.Breaches.Count["P5"] != breaches {
			t.Errorf("%s: %v", answer, r.Verdict)
		}
	}
}

// unrecorded is a server that answers before the ledger has a coupon.
func unrecorded(_ *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
	c.Recorded = false
	return o
}

func TestDeadLettersAndLostNumbersAreNotMissing(t *testing.T) {
	number, other, replayed, someone := int64(1), int64(8), "replayed", "someone"
	s := &shop{quantity: 30, lost: []client.Range{{First: 2, Count: 6}}, dead: []client.DeadLetter{
		{ID: 1}, {ID: 2, Number: &other, UserID: &someone, ResolvedAt: &client.Time{}, ResolvedBy: &replayed}, {ID: 3, Number: &number, UserID: &someone},
	}}
	url := open(t, s)
	s.next = 7                                           // as if 1 to 7 had been given: of them 1 was issued, and not recorded
	s.holders["someone else"] = 0                        // whose stock is taken
	for _, prefix := range []string{"first-", "then-"} { // who finds the first run's coupons
		r := run(t, load.Options{Server: url, Users: 20, Prefix: prefix})
		if !r.Verdict.OK() {
			t.Errorf("%s %v: %+v", prefix, r.Verdict, r.Verdict.Breaches.Shown)
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
		"answers another rank than it keeps": {func(s *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued && s.next == 20 {
				c.Rank--
			}
			return o
		}, "P10"},
		"gives a rank twice": {func(s *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued && s.next == 20 {
				c.Rank = 19
				s.coupons[len(s.coupons)-1].Rank = 19
			}
			return o
		}, "P10"},
		"has one drink too many": {func(s *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued && s.next == 4 {
				c.Prize = prizeOf(1)
				s.coupons[len(s.coupons)-1].Prize = c.Prize
			}
			return o
		}, "P10"},
		"answers without the prize": {func(s *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.AlreadyIssued && c.Number == 2 {
				c.Prize = nil
			}
			return o
		}, "P10"},
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
			r := run(t, load.Options{Server: server, Users: 100, Repeat: 2, Concurrency: 2, Prefix: "u-"})
			if r.Verdict.OK() || r.Verdict.Breaches.Count[test.promise] == 0 {
				t.Errorf("no breach of %s: %+v", test.promise, r.Verdict)
			}
			var table bytes.Buffer
			stage.Must(t, r.WriteTable(&table))
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
	r := run(t, load.Options{Server: server, Users: 100, Concurrency: 4})
	if r.Outcomes["unknown"] != 20 || r.Trouble["HTTP 503"] != 20 || !r.Verdict.OK() {
		t.Errorf("outcomes %v, trouble %v, %+v", r.Outcomes, r.Trouble, r.Verdict)
	}
	server = open(t, &shop{quantity: 80, fails: unavailable})
	r = run(t, load.Options{Server: server, Users: 20, Concurrency: 4, Again: 9})
	if known := r.Claims - r.Outcomes["unknown"]; known != 20 || !r.Verdict.OK() {
		t.Errorf("outcomes %v, want 20 known: %+v", r.Outcomes, r.Verdict)
	}
}

func TestWhereNothingWasAnsweredNothingIsChecked(t *testing.T) {
	server := open(t, &shop{quantity: 80, fails: func(w http.ResponseWriter, _ int, _ bool) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}})
	for name, c := range map[string]load.Options{
		"every claim was answered 503": {Server: server, Users: 20, Concurrency: 4},
		"no claim was sent":            {Server: server, Users: 20, Duration: time.Nanosecond},
	} {
		if r := run(t, c); r.Verdict.OK() || r.Verdict.Checked || r.Verdict.Why == "" {
			t.Errorf("%s: %+v", name, r.Verdict)
		}
	}
}

func TestAConnectionThatBreaksIsUnknown(t *testing.T) {
	server := open(t, &shop{quantity: 80, fails: func(w http.ResponseWriter, claim int, after bool) bool {
		if claim == 7 && after {
			panic(http.ErrAbortHandler)
		}
		return false
	}})
	r := run(t, load.Options{Server: server, Users: 10, Concurrency: 1, Repeat: 2})
	if r.Outcomes["unknown"] != 1 || !r.Verdict.OK() {
		t.Errorf("outcomes %v, trouble %v, %+v", r.Outcomes, r.Trouble, r.Verdict)
	}
}

func TestAClaimThatIsNotAnsweredInTimeSaysSo(t *testing.T) {
	givenUp := make(chan struct{})
	server := open(t, &shop{quantity: 80, fails: func(_ http.ResponseWriter, claim int, _ bool) bool {
		if claim == 7 {
			<-givenUp
		}
		return false
	}})
	release := sync.OnceFunc(func() { close(givenUp) })
	r := run(t, load.Options{
		Server: server, Users: 10, Concurrency: 1, Timeout: 100 * time.Millisecond,
		Progress: func(sent, _ int64) {
			if sent > 7 {
				release()
			}
		},
	})
	if len(r.Trouble) != 1 || r.Trouble["no answer in time"] == 0 {
		t.Errorf("outcomes %v, trouble %v", r.Outcomes, r.Trouble)
	}
}

func TestWithoutAnAdminKeyNothingIsChecked(t *testing.T) {
	server := open(t, &shop{quantity: 5, key: "secret"})
	r := run(t, load.Options{Server: server, Users: 10, Key: "other"})
	if r.Verdict.OK() || r.Verdict.Checked {
		t.Errorf("%+v", r.Verdict)
	}
	var table bytes.Buffer
	stage.Must(t, r.WriteTable(&table))
	if !strings.Contains(table.String(), "verdict: not checked, needs an admin key") {
		t.Errorf("the table does not say so:\n%s", &table)
	}
	if r := run(t, load.Options{Server: server, Users: 10, Key: "secret", Prefix: "x"}); !r.Verdict.OK() {
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
	r := run(t, load.Options{Server: server, Users: 40, Concurrency: 1})
	if !r.Verdict.OK() || r.Outcomes["issued"] != 10 || !strings.Contains(r.Verdict.Why, "changed during the run") {
		t.Errorf("%v %+v", r.Outcomes, r.Verdict)
	}
}

func TestMistakesInAConfigAreNamedTogether(t *testing.T) {
	_, err := load.Run(t.Context(), load.Options{Server: "nowhere", Campaign: "NO", Concurrency: -1, Rate: -1, Prefix: "\n"})
	for _, word := range []string{"users", "concurrency", "rate", "prefix", "campaign id"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("no word of %s: %v", word, err)
		}
	}
	for _, server := range []string{"nowhere", "ftp://host", "http://"} {
		if _, err := load.Run(t.Context(), load.Options{Server: server, Campaign: "c", Users: 1}); err == nil {
			t.Errorf("%q was taken for a server", server)
		}
	}
	server := open(t, &shop{quantity: 1})
	if _, err := load.Run(t.Context(), load.Options{Server: server, Campaign: "other", Users: 1}); err == nil {
		t.Error("a campaign that is not there has a result")
	}
}

func TestATimeOutHasABound(t *testing.T) {
	for timeout, good := range map[time.Duration]bool{time.Hour: true, time.Hour + 1: false, math.MaxInt64: false} {
		err := load.Options{Campaign: "c", Users: 1, Timeout: timeout}.Check()
		if good != (err == nil) {
			t.Errorf("%v: %v", timeout, err)
		}
	}
}

func TestOneOfAThingIsOne(t *testing.T) {
	r := run(t, load.Options{Server: open(t, &shop{quantity: 1}), Users: 1})
	var text bytes.Buffer
	stage.Must(t, errors.Join(r.WriteTable(&text), r.WriteReport(&text)))
	for _, want := range []string{"launch: 1 user, 64 at once", "1 answer held against 1 coupon of the server", ", 1 coupon<"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not say %q", want)
		}
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
	r, err := load.Run(ctx, load.Options{Server: server, Campaign: "launch", Users: 1_000_000, Concurrency: 4})
	stage.Must(t, err)
	if !r.Verdict.OK() || r.Claims < 100 || r.Claims > 100_000 {
		t.Errorf("%d claims, %+v", r.Claims, r.Verdict)
	}
	var table, report, object bytes.Buffer
	stage.Must(t, errors.Join(r.WriteTable(&table), r.WriteReport(&report), r.WriteJSON(&object)))
	for _, one := range []struct{ text, want string }{
		{table.String(), "verdict: 0 breaches; interrupted"},
		{table.String(), "! interrupted: not all claims were sent"},
		{report.String(), "0 breaches until it was interrupted"},
		{object.String(), `"interrupted": true`},
	} {
		if !strings.Contains(one.text, one.want) {
			t.Errorf("it does not say %q:\n%s", one.want, table.String())
		}
	}
	if r.OK() {
		t.Error("an interrupted run is complete")
	}
	if r := run(t, load.Options{Server: server, Users: 10}); !r.OK() || r.Interrupted || len(r.Warnings) > 0 {
		t.Errorf("a run to its end is interrupted, or warns: %+v", r.Warnings)
	}
}
