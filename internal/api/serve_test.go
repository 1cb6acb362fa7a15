package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/stage"
)

// dial opens a plain connection to the shop and sends text.
func (s *shop) dial(text string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://"))
	stage.Must(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	stage.Must(s.t, stage.Err(io.WriteString(c, text)))
	return c
}

// createInLedger creates a campaign without a request.
func (s *shop) createInLedger(id firstcome.CampaignID) {
	s.t.Helper()
	stage.Must(s.t, s.ledger.Campaigns.Create(context.Background(), "test", id, stage.Terms(firstcome.Unlimited)))
}

func TestAClientThatIsTurnedAwayIsToldWhy(t *testing.T) {
	w := httptest.NewRecorder()
	open(t).server.HTTP().TurnAway(w)
	var p client.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 503 || p.Code != "busy" || w.Header().Get("Retry-After") != "2" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("it is told %d %v %s, %v", w.Code, w.Header(), w.Body, err)
	}
}

// TestALaneAnswersWhatIsShort: it answers no route that may take long.
func TestALaneAnswersWhatIsShort(t *testing.T) {
	short := map[string]bool{}
	s := open(t).server
	for _, r := range s.HTTP().Short {
		short[r.Method+" "+r.Path] = true
	}
	for _, operation := range s.Operations() {
		long := strings.HasSuffix(operation, "/codes") || operation == "POST /v1/dead-letters/replay" || operation == "POST /v1/dead-letters/void" || operation == "GET /v1/campaigns/{id}/coupons" || operation == "GET /v1/campaigns/{id}/facts" || operation == "GET /v1/campaigns/{id}/audit" || operation == "POST /v1/campaigns/{id}/rebuild" || strings.HasSuffix(operation, " /v1/campaigns/{id}/reconcile")
		if short[operation] == long {
			t.Errorf("%s is short: %t", operation, !long)
		}
	}
}

func TestF33AClaimWhoseClientWentAwayIsFindable(t *testing.T) {
	s := openFar(t)
	s.create(`{"id":"c","name":"n","quantity":1,"answer":"decided"}`)
	came, letGo := s.hold()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/campaigns/c/claims", strings.NewReader(`{"user_id":"u"}`))
	stage.Must(t, err)
	r.Header.Set("Content-Type", "application/json")
	gone := make(chan error)
	go func() {
		_, err := s.client.Do(r) //nolint:bodyclose // there is none
		gone <- err
	}()
	<-came
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the claim was answered")
	}
	letGo()
	stage.Await(t, "the coupon", 200, func() int { return s.call("GET", "/v1/campaigns/c/claims/u", "").status })
	s.claim("c", "u").want(t, 200, "already_issued")
}

func TestF17AFullQueueIs503AndAskingAgainIsSafe(t *testing.T) {
	s := openFar(t, queue(issue.Options{Waiting: 1, Batch: 1}))
	s.create(`{"id":"c","name":"n","quantity":9,"answer":"decided"}`)
	came, letGo := s.hold()
	answers := make(chan reply, 3)
	ask := func(user string) { go func() { answers <- s.claim("c", user) }() }
	ask("a")
	<-came
	ask("b")
	ask("c")
	shed := <-answers
	shed.want(t, 503, "")
	if shed.header.Get("Retry-After") == "" || !strings.Contains(shed.text("detail"), "nothing was decided") {
		t.Errorf("it answers %v %s", shed.header, shed.body)
	}
	letGo()
	(<-answers).want(t, 201, "issued")
	(<-answers).want(t, 201, "issued")
	s.claim("c", "a").want(t, 200, "already_issued")
	for _, user := range []string{"b", "c"} {
		if r := s.claim("c", user); r.status != 200 && r.status != 201 {
			t.Errorf("asked again, it answers %d", r.status)
		}
	}
}

func TestAClaimThatWaitsTooLongIs503(t *testing.T) {
	s := openFar(t, queue(issue.Options{Gate: 50 * time.Millisecond}))
	s.create(`{"id":"c","name":"n","quantity":9,"answer":"decided"}`)
	_, letGo := s.hold()
	s.claim("c", "u").want(t, 503, "")
	letGo()
	stage.Await(t, "the coupon", 200, func() int { return s.claim("c", "u").status })
}

func TestPathsAndMethodsThatAreNotServedAreProblems(t *testing.T) {
	s := open(t)
	for _, path := range []string{"/index.html", "/v1", "/v1/", "/v1/campaigns/", "/v2/campaigns", "/metrics", "/debug/pprof/", "/v1/campaigns/c/claims/u/x"} {
		s.call("GET", path, "").want(t, 404, "")
	}
	for path, allow := range map[string]string{"/v1/campaigns": "POST, GET", "/v1/campaigns/c": "GET, PATCH", "/v1/campaigns/c/claims": "POST", "/livez": "GET"} {
		r := s.call("DELETE", path, "").want(t, 405, "")
		if r.header.Get("Allow") != allow {
			t.Errorf("%s allows %q, want %q", path, r.header.Get("Allow"), allow)
		}
	}
	for _, path := range []string{"/v1/./campaigns", "/v1/campaigns/../campaigns", "//v1/campaigns", "/v1//campaigns", "/v1/campaigns/."} {
		s.call("GET", path, "").want(t, 400, "")
	}
	r := s.call("GET", "/v1/campaigns", "")
	if r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the headers are %v", r.header)
	}
}

func TestLimitsAre429WithRetryAfter(t *testing.T) {
	s := open(t, guarded, func(_ *shop, c *api.Options) {
		c.UserLimit = auth.NewLimiter(0.01, 2, 100)
	})
	admin, me := s.key(firstcome.Admin), s.token("me")
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9}`, admin...).want(t, 201, "")
	s.call("POST", "/v1/campaigns/c/claims", "", me...).want(t, 201, "issued")
	s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"me"}`, admin...).want(t, 200, "already_issued")
	r := s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"me"}`, admin...).want(t, 429, "")
	if r.header.Get("Retry-After") == "" {
		t.Error("a limit does not say when to ask again")
	}
	s.call("GET", "/v1/users/me/coupons", "", me...).want(t, 429, "")
	s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"other"}`, admin...).want(t, 201, "issued")
}
