package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
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
)

// dial opens a bare connection to the shop and sends text.
func (s *shop) dial(text string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// isCut waits until the server has closed a connection.
func isCut(t testing.TB, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, c); err != nil {
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Error("the connection is still open")
		}
	}
}

func limited(l api.Limits) func(*shop, *api.Config) {
	return func(_ *shop, c *api.Config) { c.Limits = l }
}

func TestF30SlowHeadersSlowBodiesAndIdlersAreCut(t *testing.T) {
	s := open(t, limited(api.Limits{Header: 200 * time.Millisecond, Read: 300 * time.Millisecond, Idle: 200 * time.Millisecond}))
	s.createInLedger("c") // since a machine that stops for a moment is slow, too
	for name, text := range map[string]string{
		"nothing":      "",
		"slow headers": "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		"slow body":    "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"an idler":     "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) { isCut(t, s.dial(text)) })
	}
}

func TestAClaimWhoseBodyEndsEarlyIs400(t *testing.T) {
	s := open(t)
	c := s.dial("POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"user_id")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || r.StatusCode != http.StatusBadRequest {
		t.Fatalf("it answers %v, %v", r, err)
	}
	_ = r.Body.Close()
}

func TestF30LargeHeadersAreRefused(t *testing.T) {
	s := open(t)
	r := s.call("GET", "/livez", "", "X-Large", strings.Repeat("x", 12<<10))
	if r.status != 200 {
		t.Errorf("12 KB of headers answer %d", r.status)
	}
	c := s.dial("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Large: " + strings.Repeat("x", 17<<10) + "\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("17 KB of headers answer %d", response.StatusCode)
	}
}

func TestF30HoardersOfConnectionsMakeRoomForHealthyClients(t *testing.T) {
	const room = 50
	s := open(t, limited(api.Limits{MaxConnections: room}))
	s.create(`{"id":"c","name":"n","quantity":null}`)
	var hoard []net.Conn
	for n := range 10 * room {
		text := "" // half of them send a request and then hold on
		if n%2 == 0 {
			text = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
		}
		hoard = append(hoard, s.dial(text))
		if n%room == 0 {
			s.claimAgain("c", fmt.Sprint("u", n))
		}
	}
	s.claimAgain("c", "last")
	isCut(t, hoard[0])
	isCut(t, hoard[1])
}

// createInLedger makes a campaign without a request.
func (s *shop) createInLedger(id firstcome.CampaignID) {
	s.t.Helper()
	terms := firstcome.Terms{Name: "n", Quantity: firstcome.Unlimited, Answer: firstcome.Recorded}
	if _, err := s.ledger.Create(context.Background(), "test", id, terms); err != nil {
		s.t.Fatal(err)
	}
}

// claimAgain claims until a connection is not the one that was just closed for
// having been idle.
func (s *shop) claimAgain(id, user string) {
	s.t.Helper()
	await(s.t, func() bool {
		r, err := s.try("POST", "/v1/campaigns/"+id+"/claims", `{"user_id":"`+user+`"}`)
		return err == nil && r.status < 300
	})
}

func TestF17WhereEveryConnectionIsBusyTheNextIsTurnedAwayAndTheRestRecovers(t *testing.T) {
	const room = 4
	var gate heldGate
	s := open(t, held(&gate, flow.Limits{}), limited(api.Limits{MaxConnections: room}))
	busy := make([]net.Conn, room)
	for n := range busy { // not over HTTP: that would take a connection
		s.createInLedger(firstcome.CampaignID(fmt.Sprint("c", n)))
	}
	for n := range busy {
		busy[n] = s.dial(fmt.Sprintf("POST /v1/campaigns/c%d/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"user_id\":\"u\"}", n))
		<-gate.at
	}
	turnedAway, err := http.ReadResponse(bufio.NewReader(s.dial("")), nil)
	if err != nil || turnedAway.StatusCode != 503 || turnedAway.Header.Get("Retry-After") != "2" || !turnedAway.Close {
		t.Fatalf("it answers %v, %v", turnedAway, err)
	}
	text, err := io.ReadAll(turnedAway.Body)
	_ = turnedAway.Body.Close()
	var p client.Problem
	if unread := json.Unmarshal(text, &p); err != nil || unread != nil || p.Code != "busy" || turnedAway.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("it says %s, %v", text, err)
	}
	close(gate.letGo)
	for _, c := range busy {
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != 201 {
			t.Fatalf("a busy connection answers %v, %v", answer, err)
		}
		_ = answer.Body.Close()
	}
	s.claimAgain("c0", "v")
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

func TestF33AClaimWhoseClientWentAwayIsFindable(t *testing.T) {
	var gate heldGate
	s := open(t, held(&gate, flow.Limits{}))
	s.create(`{"id":"c","name":"n","quantity":1}`)
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/campaigns/c/claims", strings.NewReader(`{"user_id":"u"}`))
	if err != nil {
		t.Fatal(err)
	}
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

// TestAClaimMayWaitForLongerThanItsRequestAndItsAnswerTake has an operator who wants that.
func TestAClaimMayWaitForLongerThanItsRequestAndItsAnswerTake(t *testing.T) {
	const short = 100 * time.Millisecond
	var gate heldGate
	s := open(t, held(&gate, flow.Limits{Gate: time.Hour}), limited(api.Limits{Read: short, Write: short, Wait: time.Hour}))
	s.create(`{"id":"c","name":"n","quantity":9}`)
	answer := make(chan error, 1)
	go func() {
		r, err := s.try("POST", "/v1/campaigns/c/claims", `{"user_id":"u"}`)
		if err == nil && r.status != http.StatusCreated {
			err = fmt.Errorf("it is answered %d", r.status)
		}
		answer <- err
	}()
	<-gate.at
	<-time.After(3 * short)
	close(gate.letGo)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

func TestServeAnswersWhatIsInFlightBeforeItEnds(t *testing.T) {
	var gate heldGate
	s := &shop{t: t, client: &http.Client{Transport: &http.Transport{}}}
	s.ledger = startLedger(t, s.now, "")
	s.auth = auth.New(auth.Config{Open: true})
	s.claims = &flow.Answerer{Coupons: s.ledger}
	config := api.Config{Log: quiet(), Observer: newObserver(), Health: newObserver()}
	held(&gate, flow.Limits{})(s, &config)
	s.wire(config)
	s.ledger.run(t)
	ln := loopback(t)
	s.url = "http://" + ln.Addr().String()
	cancel, served := s.serveOn(ln)
	s.createInLedger("c")
	answer := make(chan reply, 1)
	go func() { answer <- s.claim("c", "u") }()
	<-gate.at
	cancel()
	await(t, func() bool { // it no longer accepts
		c, err := net.Dial("tcp", ln.Addr().String())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(gate.letGo)
	(<-answer).want(t, 201, "issued")
	if err := <-served; err != nil {
		t.Error(err)
	}
	s.client.CloseIdleConnections()
	if err := s.issuer.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestServeSpeaksHTTP2OverTLS(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	lender := httptest.NewUnstartedServer(nil) // for its certificate
	lender.StartTLS()
	defer lender.Close()
	ln := loopback(t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ctx, ln, &tls.Config{Certificates: lender.TLS.Certificates}) }()
	transport := lender.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = true
	second := &shop{t: t, url: "https://" + ln.Addr().String(), client: &http.Client{Transport: transport}}
	second.claim("c", "u").want(t, 201, "issued")
	response, err := second.client.Get(second.url + "/livez")
	if err != nil || response.ProtoMajor != 2 {
		t.Errorf("it answers %v, %v", response, err)
	}
	_ = response.Body.Close()
	transport.CloseIdleConnections()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
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
