package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
)

// An observer keeps what a server reports. It is also the server's health.
type observer struct {
	mu        sync.Mutex // guards the fields below
	outcomes  map[firstcome.Outcome]int
	took      []time.Duration
	undecided []error

	warned   chan string
	draining atomic.Bool
}

func newObserver() *observer {
	return &observer{outcomes: map[firstcome.Outcome]int{}, warned: make(chan string, 100)}
}

func (o *observer) Claimed(id firstcome.CampaignID, outcome firstcome.Outcome, took time.Duration) {
	o.Decided(id, outcome)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.took = append(o.took, took)
}

func (o *observer) Decided(_ firstcome.CampaignID, outcome firstcome.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outcomes[outcome]++
}

func (o *observer) Undecided(_ context.Context, _ firstcome.CampaignID, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.undecided = append(o.undecided, err)
}

func (o *observer) Warn(text string, args ...any) {
	select {
	case o.warned <- fmt.Sprintln(append([]any{text}, args...)...):
	default:
	}
}

func (o *observer) Drain() { o.draining.Store(true) }

func (o *observer) Ready(w http.ResponseWriter, r *http.Request, mayLook func(*http.Request) bool) {
	status, said := http.StatusOK, map[string]string{"status": "ready"}
	if o.draining.Load() {
		status, said["status"] = http.StatusServiceUnavailable, "draining"
		w.Header().Set("Retry-After", "1")
	}
	if r.URL.Query().Has("verbose") && mayLook(r) {
		said["ledger"], said["version"] = "ok", "test"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	text, _ := json.Marshal(said) // strings
	_, _ = w.Write(text)
}

// post sends one claim with a context, without the network.
func (s *shop) post(ctx context.Context) (status int) {
	return s.send(ctx, strings.NewReader(`{"user_id":"mina"}`))
}

// send sends one claim with a body, without the network.
func (s *shop) send(ctx context.Context, body io.Reader) (status int) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/campaigns/c/claims", body)
	r.Header.Set("Content-Type", "application/json")
	r.Host = "127.0.0.1"
	s.server.Handler().ServeHTTP(w, r)
	return w.Code
}

func TestTheObserverHearsOfEveryClaimOnce(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":1}`)
	for _, user := range []string{"mina", "joon", "mina"} {
		s.claim("c", user)
	}
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["mina","jisoo"]}`).want(t, 200, "")
	s.claim("nowhere", "mina").want(t, 404, "")
	s.heard.mu.Lock()
	defer s.heard.mu.Unlock()
	want := map[firstcome.Outcome]int{firstcome.Issued: 1, firstcome.SoldOut: 2, firstcome.AlreadyIssued: 2}
	if diff := cmp.Diff(want, s.heard.outcomes); diff != "" || len(s.heard.took) != 3 {
		t.Errorf("it hears of %d times and of (-want +got):\n%s", len(s.heard.took), diff)
	}
	if all := s.heard.undecided; len(all) != 1 || !errors.Is(all[0], firstcome.ErrNoCampaign) {
		t.Errorf("without an outcome it hears of %v", all)
	}
}

func TestTheObserverHearsWhyAClaimHasNoOutcome(t *testing.T) {
	for _, why := range []error{errors.New("no answer"), firstcome.ErrTooMany, firstcome.ErrGateUnavailable, firstcome.ErrGateMismatch, fmt.Errorf("claim: %w", firstcome.ErrNoCampaign)} {
		s := openFar(t)
		s.gate.Before = func(context.Context, firstcome.CampaignID) error { return why }
		want := http.StatusServiceUnavailable
		if errors.Is(why, firstcome.ErrNoCampaign) {
			want = http.StatusNotFound
		}
		if status := s.post(t.Context()); status != want {
			t.Errorf("a claim whose gate says %v is answered %d, want %d", why, status, want)
		}
		if all := s.heard.undecided; len(all) != 1 || !errors.Is(all[0], why) {
			t.Errorf("of %v it hears as %v", why, all)
		}
	}
}

func TestAClaimWhoseCallerLeftIsUndecided(t *testing.T) {
	s := openFar(t)
	s.hold()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	s.post(ctx)
	if all := s.heard.undecided; len(all) != 1 || !errors.Is(all[0], context.Canceled) {
		t.Errorf("it hears of %v", all)
	}
}

// A dawdler is a body that comes after a while.
type dawdler struct{ io.Reader }

func (d dawdler) Read(p []byte) (int, error) {
	time.Sleep(time.Minute) // this is synctest's time
	return d.Reader.Read(p)
}

// TestAClientThatDawdlesMakesNoClaimSlow: no client can page an operator by sending a claim's body late.
func TestAClientThatDawdlesMakesNoClaimSlow(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":3}`)
	s.claim("c", "joon").want(t, 201, "issued") // starts what serves the campaign outside of synctest's time
	synctest.Test(t, func(t *testing.T) {
		if status := s.send(t.Context(), dawdler{strings.NewReader(`{"user_id":"joon"}`)}); status != http.StatusOK {
			t.Errorf("the claim is answered %d", status)
		}
	})
	s.heard.mu.Lock()
	defer s.heard.mu.Unlock()
	if took := s.heard.took; len(took) != 2 || slices.Max(took) > 10*time.Second {
		t.Errorf("the claims took %v", took)
	}
}
