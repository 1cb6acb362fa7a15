package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestALedgerThatDoesNotTakeWritesIsShownUntilItDoes(t *testing.T) {
	s := open(t)
	s.ledger.OnCommit(1, time.Millisecond, errors.New("the disk is full"))
	if r := s.call("GET", "/readyz?verbose", ""); r.status != 200 || r.text("ledger") != "did not take the last write: the log says why" {
		t.Errorf("while it fails: %d %s", r.status, r.body)
	}
	s.create(`{"id":"c","name":"n","quantity":1}`)
	if r := s.call("GET", "/readyz?verbose", ""); r.status != 200 || r.text("ledger") != "ok" {
		t.Errorf("once it writes: %d %s", r.status, r.body)
	}
}

func TestTheRootSaysWhatThisIs(t *testing.T) {
	r := open(t).call("GET", "/", "").want(t, 200, "")
	if !strings.Contains(string(r.body), "firstcome") || !strings.Contains(string(r.body), "/openapi.yaml") {
		t.Errorf("it says %s", r.body)
	}
}

// TestTheOpsListenerOfThisMachineAnswersToItsOwnNames: a page whose name was made to resolve to this machine would else
// read profiles in a browser on it.
func TestTheOpsListenerOfThisMachineAnswersToItsOwnNames(t *testing.T) {
	ops := httptest.NewServer(open(t).server.Ops())
	defer ops.Close()
	_, port, err := net.SplitHostPort(ops.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"127.0.0.1": 200, "localhost": 200, "[::1]": 200, "evil.example": 403, "localhost.evil.example": 403, "10.0.0.11": 403} {
		for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/livez", "/readyz?verbose"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ops.URL+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host + ":" + port
			answer, err := ops.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("as %s %s answers %d, want %d", host, path, answer.StatusCode, want)
			}
		}
	}
	elsewhere := httptest.NewRequest(http.MethodGet, "http://node-1.internal:8081/metrics", http.NoBody)
	at := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 11), Port: 8081})
	w := httptest.NewRecorder()
	ops.Config.Handler.ServeHTTP(w, elsewhere.WithContext(at))
	if w.Code != http.StatusOK {
		t.Errorf("on an inner network, by a name of it, it answers %d", w.Code)
	}
}
