package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
)

// The parts of a claim that a hoarder sends.
const (
	claimHead  = "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"
	claimBody  = `{"user_id":"u"}`
	claimChunk = "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n{"
)

// hoards are what keeps a connection waiting for its client.
var hoards = map[string]func(t *testing.T, s *shop){
	"a claim's head": func(_ *testing.T, s *shop) { s.dial(claimHead) },
	"a claim's head behind a claim": func(t *testing.T, s *shop) {
		c := s.dial(claimHead + claimBody)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return // it was cut for another, or turned away
		}
		_ = r.Body.Close()
		_, _ = io.WriteString(c, claimHead+claimBody[:9])
	},
	"a chunk": func(_ *testing.T, s *shop) { s.dial(claimChunk) },
	"Expect": func(_ *testing.T, s *shop) {
		s.dial(strings.Replace(claimHead, "Host", "Expect: 100-continue\r\nHost", 1))
	},
	"answers to none": func(_ *testing.T, s *shop) {
		s.dial(strings.Repeat("GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n", 400))
	},
}

// securely are those of a server with TLS, one of them over HTTP/2.
var securely = map[string]func(t *testing.T, s *shop){
	"no handshake": func(_ *testing.T, s *shop) { s.dial("") },
	"a claim's head": func(t *testing.T, s *shop) {
		c := tls.Client(s.dial(""), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's own server
		_, _ = io.WriteString(c, claimHead)
	},
	"a stream without data": func(t *testing.T, s *shop) {
		body, hold := io.Pipe()
		transport := s.client.Transport.(*http.Transport).Clone()
		sent := make(chan struct{}, 1)
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { sent <- struct{}{} }})
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/campaigns/c/claims", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if answer, err := (&http.Client{Transport: transport}).Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
		select {
		case <-sent:
		case <-ended: // it was turned away
		}
		t.Cleanup(func() {
			_ = hold.Close()
			transport.CloseIdleConnections()
		})
	},
	"a stream that nobody reads": func(t *testing.T, s *shop) {
		transport := s.client.Transport.(*http.Transport).Clone()
		transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 10}
		answer, err := (&http.Client{Transport: transport}).Get(s.url + "/openapi.yaml")
		if err == nil {
			t.Cleanup(func() { _ = answer.Body.Close() })
		}
	},
}

// patient are limits by which nobody is cut for being slow.
func patient(room int) func(*shop, *api.Config) {
	return limited(api.Limits{MaxConnections: room, Header: time.Hour, Read: time.Hour, Write: time.Hour, Idle: time.Hour})
}

// TestF30WhoeverKeepsAConnectionWaitingMakesRoom has hoarders keep more connections waiting than
// there is room for, with credentials and without. Each client that comes then is answered at once.
func TestF30WhoeverKeepsAConnectionWaitingMakesRoom(t *testing.T) {
	const room = 8
	for kind, change := range map[string]func(*shop, *api.Config){
		"for everybody": func(*shop, *api.Config) {}, "guarded": guarded,
	} {
		for name, hold := range hoards {
			t.Run(kind+"/"+name, func(t *testing.T) {
				s := open(t, change, patient(room))
				keepsNobodyOut(t, s, room, hold)
			})
		}
		for name, hold := range securely {
			t.Run(kind+"/with TLS/"+name, func(t *testing.T) {
				keepsNobodyOut(t, open(t, change, patient(room)).overTLS(), room, hold)
			})
		}
	}
}

func keepsNobodyOut(t *testing.T, s *shop, room int, hold func(*testing.T, *shop)) {
	s.createInLedger("c")
	var header []string
	if !s.auth.Open() {
		header = s.key(firstcome.Admin)
	}
	for range 4 * room {
		hold(t, s)
	}
	s.client.Transport.(*http.Transport).DisableKeepAlives = true
	s.client.Timeout = 20 * time.Second
	for n := range 4 * room {
		r, err := s.try("POST", "/v1/campaigns/c/claims", fmt.Sprintf(`{"user_id":"healthy-%d"}`, n), header...)
		if err != nil || r.status != http.StatusCreated {
			t.Fatalf("healthy client %d is answered %d, %v", n, r.status, err)
		}
	}
}

// overTLS returns the shop as it is served on a port with TLS.
func (s *shop) overTLS() *shop {
	s.t.Helper()
	lender := httptest.NewUnstartedServer(nil) // for its certificate
	lender.StartTLS()
	s.t.Cleanup(lender.Close)
	ln := loopback(s.t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ctx, ln, &tls.Config{Certificates: lender.TLS.Certificates}) }()
	transport := lender.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = true
	s.t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			s.t.Error(err)
		}
	})
	return &shop{
		t: s.t, ledger: s.ledger, issuer: s.issuer, server: s.server, auth: s.auth,
		url: "https://" + ln.Addr().String(), client: &http.Client{Transport: transport},
	}
}

// TestTheAddressLimitCountsBeforeTheBody: half a claim is one that its address asked.
func TestTheAddressLimitCountsBeforeTheBody(t *testing.T) {
	for name, text := range map[string]string{"in a lane": claimHead, "by net/http": claimChunk} {
		t.Run(name, func(t *testing.T) {
			addresses := auth.NewLimiter(0.001, 1, 100)
			s := open(t, guarded, func(_ *shop, c *api.Config) { c.AddressLimit = addresses })
			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			c, err := from.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			await(t, func() bool { return addresses.Len() == 1 })
			if _, ok := addresses.Allow("127.0.0.2"); ok {
				t.Error("half a claim did not count")
			}
		})
	}
}
