package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/stage"
)

// dial opens a bare connection to the shop and sends text.
func (s *shop) dial(text string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://"))
	stage.Must(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	stage.Must(s.t, stage.Err(io.WriteString(c, text)))
	return c
}

func TestAClaimWhoseBodyEndsEarlyIs400(t *testing.T) {
	s := open(t)
	c := s.dial("POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"user_id")
	stage.Must(t, c.(*net.TCPConn).CloseWrite())
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || r.StatusCode != http.StatusBadRequest {
		t.Fatalf("it answers %v, %v", r, err)
	}
	_ = r.Body.Close()
}

// createInLedger makes a campaign without a request.
func (s *shop) createInLedger(id firstcome.CampaignID) {
	s.t.Helper()
	terms := firstcome.Terms{Name: "n", Quantity: firstcome.Unlimited, Answer: firstcome.Recorded}
	stage.Must(s.t, stage.Err(s.ledger.Create(context.Background(), "test", id, terms)))
}

// A heldGate decides when it is let go.
type heldGate struct {
	flow.Gate
	at    chan struct{} // a batch came
	letGo chan struct{}
}

func (g *heldGate) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	g.at <- struct{}{}
	select {
	case <-g.letGo:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return g.Gate.Claim(ctx, id, users)
}

// held is a change of open: the gate decides when it is let go.
func held(g *heldGate, l flow.Limits) func(*shop, *api.Config) {
	return func(s *shop, _ *api.Config) {
		g.Gate, g.at, g.letGo = s.ledger, make(chan struct{}, 100), make(chan struct{})
		s.issuer = flow.NewIssuer(g, l)
	}
}

func TestAClientThatIsTurnedAwayIsToldWhy(t *testing.T) {
	w := httptest.NewRecorder()
	open(t).server.HTTP().TurnAway(w)
	var p client.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 503 || p.Code != "busy" || w.Header().Get("Retry-After") != "2" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("it is told %d %v %s, %v", w.Code, w.Header(), w.Body, err)
	}
}

// TestALaneAnswersWhatIsShort, and nothing that may take long.
func TestALaneAnswersWhatIsShort(t *testing.T) {
	short := map[string]bool{}
	s := open(t).server
	for _, r := range s.HTTP().Short {
		short[r.Method+" "+r.Path] = true
	}
	for _, operation := range s.Operations() {
		long := operation == "GET /v1/campaigns/{id}/coupons" || operation == "GET /v1/campaigns/{id}/facts"
		if short[operation] == long {
			t.Errorf("%s is short: %t", operation, !long)
		}
	}
}

func TestF33AClaimWhoseClientWentAwayIsFindable(t *testing.T) {
	var gate heldGate
	s := open(t, held(&gate, flow.Limits{}))
	s.create(`{"id":"c","name":"n","quantity":1}`)
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/campaigns/c/claims", strings.NewReader(`{"user_id":"u"}`))
	stage.Must(t, err)
	r.Header.Set("Content-Type", "application/json")
	gone := make(chan error)
	go func() {
		_, err := s.client.Do(r) //nolint:bodyclose // there is none
		gone <- err
	}()
	<-gate.at
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the claim was answered")
	}
	close(gate.letGo)
	await(t, func() bool { return s.call("GET", "/v1/campaigns/c/claims/u", "").status == 200 })
	s.claim("c", "u").want(t, 200, "already_issued")
}

func TestF17AFullQueueIs503AndAskingAgainIsSafe(t *testing.T) {
	var gate heldGate
	s := open(t, held(&gate, flow.Limits{Waiting: 1, Batch: 1}))
	s.create(`{"id":"c","name":"n","quantity":9}`)
	answers := make(chan reply, 3)
	ask := func(user string) { go func() { answers <- s.claim("c", user) }() }
	ask("a")
	<-gate.at
	ask("b")
	ask("c")
	shed := <-answers
	shed.want(t, 503, "")
	if shed.header.Get("Retry-After") == "" || !strings.Contains(shed.text("detail"), "not decided") {
		t.Errorf("it answers %v %s", shed.header, shed.body)
	}
	close(gate.letGo)
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
	var gate heldGate
	s := open(t, held(&gate, flow.Limits{Gate: 50 * time.Millisecond}))
	s.create(`{"id":"c","name":"n","quantity":9}`)
	s.claim("c", "u").want(t, 503, "")
	close(gate.letGo)
	await(t, func() bool { return s.claim("c", "u").status == 200 })
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
	s := open(t, guarded, func(_ *shop, c *api.Config) {
		c.UserLimit = auth.NewLimiter(0.01, 2, 100)
		c.AddressLimit = auth.NewLimiter(0.01, 9, 100)
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
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

	elsewhere := append([]string{"X-Forwarded-For", "203.0.113.9, 127.0.0.1"}, admin...)
	lying := append([]string{"X-Forwarded-For", "198.51.100.1, 203.0.113.9"}, admin...)
	for range 9 {
		s.call("GET", "/v1/campaigns/c", "", elsewhere...).want(t, 200, "")
	}
	s.call("GET", "/v1/campaigns/c", "", elsewhere...).want(t, 429, "")
	s.call("GET", "/v1/campaigns/c", "", lying...).want(t, 429, "")
	s.call("GET", "/v1/campaigns/c", "", admin...).want(t, 200, "")
}
