package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/flow"
)

// A fixedGate decides every claim alike, at once.
type fixedGate struct{ decision firstcome.Decision }

func (g fixedGate) Claim(_ context.Context, _ firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions := make([]firstcome.Decision, len(users))
	for n, user := range users {
		decisions[n] = g.decision
		decisions[n].Coupon.User = user
	}
	return decisions, nil
}

func (g fixedGate) Holders(context.Context, firstcome.CampaignID, func(firstcome.UserID)) (int64, error) {
	return 1, nil
}

// BenchmarkClaimHandler measures a claim from the request's headers to the
// answer's bytes, without the network and without the ledger's commit. Bare is a
// handler that reads the same body and writes the same answer.
func BenchmarkClaimHandler(b *testing.B) {
	issued := firstcome.Decision{
		Outcome: firstcome.Issued, At: time.Now(), Version: 1,
		Coupon: firstcome.Coupon{Campaign: "c", Number: 123456, Code: "0123456789ABCDEF", IssuedAt: time.Now(), TermsVersion: 1, Recorded: true},
	}
	b.Run("bare", func(b *testing.B) {
		answer := claimOnce(handlerWith(b, issued)).Body.Bytes()
		loop(b, http.StatusCreated, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(answer)
		}))
	})
	b.Run("issued", func(b *testing.B) { loop(b, http.StatusCreated, handlerWith(b, issued)) })
	soldOut := firstcome.Decision{Outcome: firstcome.SoldOut, Version: 1, TermsVersion: 1, At: time.Now(), Since: time.Now(), Lease: time.Hour}
	b.Run("sold_out", func(b *testing.B) { loop(b, http.StatusGone, handlerWith(b, soldOut)) })
}

// handlerWith returns the public surface over a gate that decides so.
func handlerWith(b *testing.B, d firstcome.Decision) http.Handler {
	l := startLedger(b, time.Now, "")
	terms := api.NewTermsCache(l.Terms)
	claims := &flow.Answerer{Issuer: flow.NewIssuer(fixedGate{d}, flow.Limits{}), Terms: terms.Terms}
	server := api.New(api.Config{Ledger: l, Terms: terms, Claims: claims, Auth: auth.New(auth.Config{Open: true}), Log: quiet(), Observer: newObserver(), Health: newObserver()})
	l.run(b)
	if _, err := l.Create(context.Background(), "test", "c", firstcome.Terms{
		Name: "c", Quantity: 10, Answer: firstcome.Recorded, Benefit: []byte(`{"percent": 20}`),
	}); err != nil {
		b.Fatal(err)
	}
	return server.Handler()
}

func claimOnce(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, claimRequest())
	return w
}

func claimRequest() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/campaigns/c/claims", strings.NewReader(`{"user_id":"user-0000001"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Host = "127.0.0.1:8080"
	return r
}

// loop serves one request again and again, and wants one status.
func loop(b *testing.B, status int, h http.Handler) {
	r := claimRequest()
	body := strings.NewReader("")
	r.Body = io.NopCloser(body)
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(`{"user_id":"user-0000001"}`)
		clear(w.header)
		h.ServeHTTP(w, r)
		if w.status != status {
			b.Fatalf("the answer is %d, want %d", w.status, status)
		}
	}
}

// A discard is a ResponseWriter that allocates nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
