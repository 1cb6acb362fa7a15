package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/flow"
)

// A hungGate answers when the call is given up.
type hungGate struct{ flow.RemoteGate }

func (hungGate) Claim(ctx context.Context, _ firstcome.CampaignID, _ []firstcome.UserID) ([]firstcome.Decision, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// at opens a shop with another gate, which the ledger does not know.
func at(t *testing.T, gate flow.Gate) *shop {
	t.Helper()
	return open(t, func(s *shop, c *api.Config) {
		s.issuer = flow.NewIssuer(gate, flow.Limits{})
		c.Issuer = s.issuer
	})
}

// post claims once with a context, past the network.
func (s *shop) post(ctx context.Context) (status int) {
	return s.send(ctx, strings.NewReader(`{"user_id":"mina"}`))
}

// send claims once with a body, past the network.
func (s *shop) send(ctx context.Context, body io.Reader) (status int) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/campaigns/c/claims", body)
	r.Header.Set("Content-Type", "application/json")
	r.Host = "127.0.0.1"
	s.server.Handler().ServeHTTP(w, r)
	return w.Code
}

// TestOnlyAClaimThatMayHaveBeenDecidedIsUnknown holds that nobody can page an operator by asking for
// what is not there, by asking too often, or by leaving.
func TestOnlyAClaimThatMayHaveBeenDecidedIsUnknown(t *testing.T) {
	for outcome, err := range map[string]error{
		"unknown": errors.New("no answer"), "shed": firstcome.ErrBusy, "mismatch": firstcome.ErrGateMismatch,
		"not_found": fmt.Errorf("claim: %w", firstcome.ErrNoCampaign),
	} {
		s := at(t, &failingGate{err: err})
		want := http.StatusServiceUnavailable
		if outcome == "not_found" {
			want = http.StatusNotFound
		}
		if status := s.post(t.Context()); status != want {
			t.Errorf("a claim whose gate says %v is answered %d, want %d", err, status, want)
		}
		s.wantClaims(map[string]int{outcome: 1})
	}
}

func TestAClaimWhoseCallerLeftIsGoneAndNotUnknown(t *testing.T) {
	s := at(t, hungGate{})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	s.post(ctx)
	s.wantClaims(map[string]int{"gone": 1})
}

// A dawdler sends its body after a while.
type dawdler struct{ io.Reader }

func (d dawdler) Read(p []byte) (int, error) {
	time.Sleep(time.Minute) // synctest's time
	return d.Reader.Read(p)
}

// TestAClientThatDawdlesMakesNoClaimSlow holds that nobody can page an operator by sending a claim's body late.
func TestAClientThatDawdlesMakesNoClaimSlow(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":3}`)
	s.claim("c", "joon").want(t, 201, "issued") // what serves the campaign is there, outside synctest's time
	synctest.Test(t, func(t *testing.T) {
		if status := s.send(t.Context(), dawdler{strings.NewReader(`{"user_id":"joon"}`)}); status != http.StatusOK {
			t.Errorf("the claim is answered %d", status)
		}
	})
	s.wantMetrics(`firstcome_claim_seconds_count 2`, `firstcome_claim_seconds_bucket{le="10"} 2`)
}

// wantClaims wants so many claims by outcome, and none by any other.
func (s *shop) wantClaims(want map[string]int) {
	s.t.Helper()
	got := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^firstcome_claims_total\{outcome="(\w+)"\} ([1-9]\d*)$`).FindAllStringSubmatch(s.metrics(), -1) {
		got[found[1]], _ = strconv.Atoi(found[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("the claims by outcome (-want +got):\n%s", diff)
	}
}

func TestTheMetricsSayWhatIsOnSaleAndWhichFirstcomeThisIs(t *testing.T) {
	s := open(t, func(_ *shop, c *api.Config) { c.Version, c.Commit = "v9", "abc" })
	s.create(`{"id":"c","name":"n","quantity":3}`)
	s.create(`{"id":"endless","name":"n","quantity":null}`)
	s.create(`{"id":"over","name":"n","quantity":3}`)
	s.call("POST", "/v1/campaigns/over/close", "").want(t, 200, "")
	s.claim("c", "mina").want(t, 201, "issued")
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"test"}`).want(t, 200, "")
	s.wantMetrics(`firstcome_quantity_coupons{campaign="c"} 3`, `firstcome_in_force_coupons{campaign="c"} 0`, `firstcome_issued_coupons{campaign="c"} 1`,
		`firstcome_issued_coupons{campaign="endless"} 0`, `firstcome_campaigns_without_series 0`,
		`firstcome_build_info{commit="abc",goversion="go`, `go_goroutines `, `go_memstats_heap_alloc_bytes `, `process_resident_memory_bytes `, `process_open_fds `)
	for _, absent := range []string{`firstcome_quantity_coupons{campaign="endless"}`, `firstcome_in_force_coupons{campaign="over"}`} {
		if strings.Contains(s.metrics(), absent) {
			t.Errorf("the metrics have %s", absent)
		}
	}
}
