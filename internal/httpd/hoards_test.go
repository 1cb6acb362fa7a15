//go:build !check && (!race || soak)

package httpd_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/test/stage"
)

// hoards are ways in which a client keeps a connection waiting.
var hoards = map[string]func(t *testing.T, s *site){
	"nothing":                sends(""),
	"a claim's head":         sends(claimHead),
	"a request's head":       sends(strings.Replace(claimHead, "claims", "pauses", 1)),
	"a refused claim's head": sends(strings.Replace(claimHead, "Host", "Refused: yes\r\nHost", 1)),
	"a chunk":                sends(claimChunk),
	"Expect":                 sends(strings.Replace(claimHead, "Host", "Expect: 100-continue\r\nHost", 1)),
	"answers to none":        sends(strings.Repeat(aGet, 20)),
	"a claim's answer":       sends(claimHead + claimBody),
	"a claim's head behind a claim": func(_ *testing.T, s *site) {
		c := s.dial()
		_, _ = io.WriteString(c, strings.Replace(claimHead, "Host", "Healthy: yes\r\nHost", 1)+claimBody)
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil { // else it was cut for another
			_, _ = io.WriteString(c, claimHead+claimBody[:9])
		}
	},
}

func sends(text string) func(*testing.T, *site) {
	return func(_ *testing.T, s *site) { _, _ = io.WriteString(s.dial(), text) } // it may have been cut already
}

// securely are the hoards of a server with TLS, two of them over HTTP/2.
var securely = map[string]func(t *testing.T, s *site){
	"no handshake": sends(""),
	"a claim's head": func(_ *testing.T, s *site) {
		c := tls.Client(s.dial(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's own server
		_, _ = io.WriteString(c, claimHead)
	},
	"a stream without data": func(t *testing.T, s *site) {
		body, hold := io.Pipe()
		transport := s.transport.Clone()
		sent := make(chan struct{}, 1)
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { sent <- struct{}{} }})
		r, err := http.NewRequestWithContext(ctx, "POST", "https://"+s.address, body)
		stage.Must(t, err)
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
	"a stream that nobody reads": func(t *testing.T, s *site) {
		transport := s.transport.Clone()
		transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 10}
		answer, err := (&http.Client{Transport: transport}).Get("https://" + s.address)
		if err == nil {
			t.Cleanup(func() { _ = answer.Body.Close() })
		}
	},
}

// TestF30WhoeverKeepsAConnectionWaitingMakesRoom keeps more connections waiting than there is room for. Each client that then comes is answered at
// once.
func TestF30WhoeverKeepsAConnectionWaitingMakesRoom(t *testing.T) {
	for name, hold := range hoards {
		t.Run(name, func(t *testing.T) { keepsNobodyOut(t, openPort, hold) })
	}
	for name, hold := range securely {
		t.Run("with TLS/"+name, func(t *testing.T) { keepsNobodyOut(t, openTLS, hold) })
	}
}

func keepsNobodyOut(t *testing.T, open func(*testing.T, httpd.Options) *site, hold func(*testing.T, *site)) {
	const room = 8
	large := strings.Repeat("x", 16<<20) // more than the sockets hold
	in := config(func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Healthy"] == nil && r.Header["Refused"] == nil {
			reads(large)(w, r)
		}
	})
	in.MaxConnections, in.ReadHeaderTimeout, in.ReadTimeout, in.WriteTimeout, in.IdleTimeout, in.ShutdownGrace = room, time.Hour, time.Hour, time.Hour, time.Hour, time.Millisecond
	s := open(t, in)
	for range 4 * room {
		hold(t, s)
	}
	client, scheme := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}, "http://"
	if s.transport != nil {
		s.transport.DisableKeepAlives = true
		client.Transport, scheme = s.transport, "https://"
	}
	for n := range 4 * room {
		r, err := http.NewRequest("POST", scheme+s.address+"/v1/campaigns/c/claims", strings.NewReader("x"))
		stage.Must(t, err)
		r.Header.Set("Healthy", "yes")
		answer, err := client.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("healthy client %d is answered %v, %v", n, answer, err)
		}
		_ = answer.Body.Close()
	}
}
