package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome/client"
)

// A script is a server that gives its answers in turn, each as a status, Retry-After and body. It repeats the last one.
type script []func() (*http.Response, error)

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	return next()
}

func answers(status int, retryAfter, body string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// breaks answers with a status and a body that breaks off.
func breaks(status int, body string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		broken := io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF))
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(broken)}, nil
	}
}

func loses() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

func through(s script) *client.Client {
	return client.New("http://shop.invalid", "").WithHTTP(&http.Client{Transport: &s})
}

const heldCoupon = `{"outcome":"already_issued","coupon":{"number":7}}`

func TestAClaimIsAskedForAgainUntilItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := through(script{loses, answers(503, "7", `{"title":"x"}`), answers(502, "", "no JSON"), answers(429, "2", `{}`), answers(200, "", heldCoupon)})
		started := time.Now()
		a, err := c.ClaimUntilKnown(t.Context(), "c", "u")
		if err != nil || a.Outcome != client.AlreadyIssued || a.Coupon.Number != 7 {
			t.Fatalf("%+v, %v", a, err)
		}
		if waited := time.Since(started); waited < 9*time.Second || waited > 12*time.Second {
			t.Errorf("it waited %v, and was asked to wait 9s", waited)
		}
	})
}

// TestAnAnswerThatBreaksOffIsLost matters because the status alone has neither the coupon nor the reason of a refusal.
func TestAnAnswerThatBreaksOffIsLost(t *testing.T) {
	for status, half := range map[int]string{201: heldCoupon[:20], 410: `{"title":"Gone","outc`, 403: "", 404: `{"title":`, 503: `{"ti`} {
		synctest.Test(t, func(t *testing.T) {
			c := through(script{breaks(status, half), answers(200, "", heldCoupon)})
			if a, err := c.ClaimUntilKnown(t.Context(), "c", "u"); err != nil || a.Coupon == nil {
				t.Errorf("behind half of a %d: %+v, %v", status, a, err)
			}
		})
	}
}

func TestAClaimThatIsKnownIsNotAskedForAgain(t *testing.T) {
	for status, outcome := range map[int]string{410: client.SoldOut, 403: client.Paused, 404: "", 401: "", 422: ""} {
		body := fmt.Sprintf(`{"title":"t","outcome":%q}`, outcome)
		c := through(script{answers(status, "", body), answers(200, "", heldCoupon)})
		a, err := c.ClaimUntilKnown(t.Context(), "c", "u")
		if a.Coupon != nil || a.Outcome != outcome || (err == nil) != (outcome != "") {
			t.Errorf("%d: %+v, %v", status, a, err)
		}
	}
}

func TestAClaimWhoseCallerGoesAwayIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := through(script{answers(503, "1", `{"title":"Service Unavailable"}`)}).ClaimUntilKnown(ctx, "c", "u")
		var p *client.Problem
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &p) || p.Status != 503 {
			t.Errorf("%v", err)
		}
	})
}
