package firstcometest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/firstcometest"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// campaign creates a campaign with a number of coupons.
func campaign(t *testing.T, s *firstcometest.Server, id string, quantity int64, change ...func(*client.NewCampaign)) {
	t.Helper()
	n := client.NewCampaign{ID: id, Name: id, Quantity: &quantity}
	for _, do := range change {
		do(&n)
	}
	_, err := s.Client.CreateCampaign(t.Context(), n)
	stage.Must(t, err)
}

// TestAServersDecisionsAreFirstcomes checks that the last coupon is issued once, that a repeated claim finds it, and that all other users are
// refused.
func TestAServersDecisionsAreFirstcomes(t *testing.T) {
	s := firstcometest.New(t)
	campaign(t, s, "autumn", 1)
	for _, want := range []struct{ user, outcome string }{{"mina", "issued"}, {"joon", "sold_out"}, {"mina", "already_issued"}} {
		got, err := s.Client.Claim(t.Context(), "autumn", want.user)
		stage.Must(t, err)
		if got.Outcome != want.outcome {
			t.Errorf("%s is told %s, want %s", want.user, got.Outcome, want.outcome)
		}
	}
}

func TestAServersLinesAreServed(t *testing.T) {
	s := firstcometest.New(t)
	campaign(t, s, "drop", 9, func(n *client.NewCampaign) { n.Pace = &client.Pace{} })
	got, err := s.Client.Claim(t.Context(), "drop", "mina")
	stage.Must(t, err)
	if got.Place == nil {
		t.Fatalf("the claim is answered %+v, and not a place", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err = s.Client.Follow(ctx, "drop", "mina", *got.Place, func(client.Place) {})
	stage.Must(t, err)
	if got.Coupon == nil || got.Coupon.UserID != "mina" {
		t.Errorf("the line ends with %+v", got)
	}
}

func TestAKeyMayDoWhatItsRoleMay(t *testing.T) {
	s := firstcometest.New(t)
	campaign(t, s, "autumn", 1)
	shop := client.New(s.URL, s.NewKey(t, firstcome.Service))
	defer shop.CloseIdle()
	got, err := shop.Claim(t.Context(), "autumn", "mina")
	stage.Must(t, err)
	if got.Coupon == nil {
		t.Errorf("the service is told %s", got.Outcome)
	}
	refused := (*client.Problem)(nil)
	if _, err := shop.Close(t.Context(), "autumn"); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("the service closes a campaign: %v", err)
	}
	stranger := client.New(s.URL, "")
	defer stranger.CloseIdle()
	if _, err := stranger.Claim(t.Context(), "autumn", "joon"); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		t.Errorf("without a key, a claim is answered %v", err)
	}
}

// TestALostAnswerIsFoundAgain shows how a service's own test loses answers: firstcome decides, and a proxy answers 503.
func TestALostAnswerIsFoundAgain(t *testing.T) {
	s := firstcometest.New(t)
	campaign(t, s, "autumn", 1)
	target, err := url.Parse(s.URL)
	stage.Must(t, err)
	lost := false
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	proxy.Transport = transport
	proxy.ModifyResponse = func(r *http.Response) error {
		if !lost {
			lost = true
			r.StatusCode = http.StatusServiceUnavailable
		}
		return nil
	}
	lossy := httptest.NewServer(proxy)
	defer lossy.Close()
	shop := client.New(lossy.URL, s.Key)
	defer shop.CloseIdle()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := shop.ClaimUntilKnown(ctx, "autumn", "mina")
	stage.Must(t, err)
	if !lost || got.Outcome != "already_issued" || got.Coupon.Number != 1 {
		t.Errorf("asked again, it answers %+v", got)
	}
}

func TestServersShareNothing(t *testing.T) {
	a, b := firstcometest.New(t), firstcometest.New(t)
	campaign(t, a, "autumn", 1)
	campaign(t, b, "autumn", 1)
	for _, s := range []*firstcometest.Server{a, b} {
		got, err := s.Client.Claim(t.Context(), "autumn", "mina")
		stage.Must(t, err)
		if got.Outcome != "issued" {
			t.Errorf("a server answers %s", got.Outcome)
		}
	}
}
