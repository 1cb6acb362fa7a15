package api_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/test/stage"
)

func TestAFaultOfAHandlerIs500AndTheNextRequestIsServed(t *testing.T) {
	logged := make(stage.Log, 10)
	s := open(t, func(s *shop, c *api.Options) {
		s.auth = nil // makes every route fail that asks who calls
		c.Log = slog.New(slog.NewTextHandler(logged, nil))
	})
	s.call("GET", "/v1/campaigns", "").want(t, 500, "")
	if line := <-logged; !strings.Contains(line, "a request failed on a fault") || !strings.Contains(line, "Authenticator") {
		t.Errorf("the log says %s", line)
	}
	s.call("GET", "/livez", "").want(t, 200, "")
}

// TestDevelopmentModeAnswersNoProxy, because every user of the proxy would be admin. Public routes answer.
func TestDevelopmentModeAnswersNoProxy(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":1}`)
	handler := s.server.Handler()
	ask := func(path, name, value string) int {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "127.0.0.1:8080"
		if r.Header.Set(name, value); name == "HTTP/1.0" {
			r.Proto, r.ProtoMinor = name, 0
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via", "X-Real-IP", "HTTP/1.0"} {
		if got := ask("/v1/campaigns/c", name, "x"); got != 403 {
			t.Errorf("with %s it is answered %d", name, got)
		}
		if got := ask("/v1/campaigns/c/line", name, "x"); got != 200 {
			t.Errorf("with %s the public line is answered %d", name, got)
		}
	}
	if got := ask("/v1/campaigns/c", "User-Agent", "x"); got != 200 {
		t.Errorf("without a proxy it is answered %d", got)
	}
}

func TestTheLogNamesRoutesAndNeverUsersTokensOrBodies(t *testing.T) {
	var logged bytes.Buffer // slog writes whole lines, under its lock
	s := open(t, guarded, func(_ *shop, c *api.Options) {
		c.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	admin := s.key(firstcome.Admin)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":1}`, admin...)
	s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"someone-private"}`, admin...).want(t, 201, "issued")
	s.call("GET", "/v1/users/someone-private/coupons", "", admin...).want(t, 200, "")
	s.ledger.stop()
	s.call("POST", "/v1/campaigns/c/pause", "", admin...).want(t, 503, "")
	s.finish()
	warned := <-s.heard.warned
	if !strings.Contains(warned, "a request was answered with 503") {
		t.Errorf("it warns of %s", warned)
	}
	text := logged.String() + warned
	for _, secret := range []string{"someone-private", admin[1]} {
		if strings.Contains(text, secret) {
			t.Errorf("the log has %q: %s", secret, text)
		}
	}
	if want := `route="GET /v1/users/{user_id}/coupons" status=200`; !strings.Contains(text, want) {
		t.Errorf("the log has no %s: %s", want, text)
	}
}
