package console_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

func TestWhoIsNotLoggedInIsLedToTheLoginAndThenToTheirPage(t *testing.T) {
	h := openHouse(t, withKeys)
	h.campaign("spring", 10)
	plain, _ := h.key(firstcome.Viewer)
	b := h.browser()
	asked := b.get("/console/campaigns/spring")
	if asked.path != "/console/login" || !strings.Contains(asked.body, `name="next" value="/console/campaigns/spring"`) {
		t.Fatalf("got %s: %s", asked.path, asked.text())
	}
	if got := b.post("/console/login", url.Values{"key": {" " + plain + "\n"}, "next": {"/console/campaigns/spring"}}); got.path != "/console/campaigns/spring" || got.status != http.StatusOK {
		t.Errorf("behind the login: %d at %s", got.status, got.path)
	}
}

func TestALoginLeadsNowhereElse(t *testing.T) {
	h := openHouse(t, withKeys)
	plain, _ := h.key(firstcome.Viewer)
	for _, next := range []string{"https://evil.example/", "//evil.example/console", "/consolevil", "", "/v1/campaigns", `/console/../\evil.example`, "/console/..//evil.example", "/console/./..//evil.example", "/console/%2e%2e//evil.example", "/console/\t/evil.example", "/console//evil.example", "/console/.."} {
		if got := h.browser().post("/console/login", url.Values{"key": {plain}, "next": {next}}); got.path != "/console" {
			t.Errorf("next %q leads to %s", next, got.path)
		}
	}
}

func TestWhoMayNotLogIn(t *testing.T) {
	h := openHouse(t, withKeys)
	service, _ := h.key(firstcome.Service)
	shop, _ := h.key(firstcome.Shop)
	_, revoked := h.key(firstcome.Admin)
	stage.Must(t, h.ledger.Deployment.RevokeKey(context.Background(), "a test", revoked.ID))
	for name, key := range map[string]string{"a service key": service, "a shop key": shop, "no key": "", "nonsense": "fc_nonsense", "half a key": service[:20]} {
		b := h.browser()
		if got := b.post("/console/login", url.Values{"key": {key}}); got.status != http.StatusForbidden || !strings.Contains(got.body, `role="alert"`) {
			t.Errorf("%s: %d %s", name, got.status, got.text())
		}
		if got := b.get("/console"); got.path != "/console/login" {
			t.Errorf("%s: is at %s", name, got.path)
		}
	}
}

func TestARevokedKeyEndsItsSessions(t *testing.T) {
	h := openHouse(t, withKeys)
	plain, key := h.key(firstcome.Admin)
	b := h.login(plain)
	stage.Must(t, h.ledger.Deployment.RevokeKey(context.Background(), "a test", key.ID))
	stage.Must(t, h.auth.Reload(context.Background())) // Authenticator.Run does this twice a second
	if got := b.get("/console"); got.path != "/console/login" {
		t.Errorf("is at %s", got.path)
	}
	const events = "/console/campaigns/spring/events"
	if got := b.do(http.MethodGet, events, nil, http.Header{"Accept": {"text/event-stream"}}); got.status != http.StatusUnauthorized || got.path != events {
		t.Errorf("who asks for a stream is answered %d at %s: %s", got.status, got.path, got.text())
	}
}

func TestASessionEnds(t *testing.T) {
	begin := time.Now()
	now := begin
	h := openHouse(t, withKeys, func(h *house) { h.stands(now) })
	plain, _ := h.key(firstcome.Viewer)
	used, left := h.login(plain), h.login(plain)
	for now.Sub(begin) < 24*time.Hour {
		now = now.Add(time.Hour)
		h.stands(now)
		if got := used.get("/console"); got.path != "/console" {
			t.Fatalf("%v behind the login, and used meanwhile: is at %s", now.Sub(begin), got.path)
		}
	}
	if got := left.get("/console"); got.path != "/console/login" {
		t.Errorf("a day idle: is at %s", got.path)
	}
	for now.Sub(begin) < 8*24*time.Hour {
		now = now.Add(time.Hour)
		h.stands(now)
		used.get("/console")
	}
	if got := used.get("/console"); got.path != "/console/login" {
		t.Errorf("behind eight days: is at %s", got.path)
	}
	again := h.login(plain)
	if got := again.post("/console/logout", url.Values{}); got.path != "/console/login" {
		t.Errorf("logged out: is at %s", got.path)
	}
	if got := again.get("/console"); got.path != "/console/login" {
		t.Errorf("logged out: is at %s", got.path)
	}
}

// TestAKeptCookieIsNoneAfterTheLogout logs out a browser whose cookie was copied before. Earlier sessions of its key are over; a session that begins
// at the same instant is not.
func TestAKeptCookieIsNoneAfterTheLogout(t *testing.T) {
	now := time.Now()
	h := openHouse(t, withKeys, func(h *house) { h.stands(now) })
	h.campaign("spring", 10)
	plain, _ := h.key(firstcome.Viewer)
	other, _ := h.key(firstcome.Viewer)
	b, wall, colleague := h.login(plain), h.login(plain), h.login(other)
	at, err := url.Parse(h.url)
	stage.Must(t, err)
	kept := http.Header{"Cookie": {b.client.Jar.Cookies(at)[0].String()}}
	open := func(copied http.Header) string { return h.browser().do(http.MethodGet, "/console", nil, copied).path }
	if got := open(kept); got != "/console" {
		t.Fatalf("before the logout the copy is at %s", got)
	}
	now = now.Add(-time.Second) // the clock of the node that gets the logout is behind
	h.stands(now)
	if got := b.post("/console/logout", url.Values{}); got.path != "/console/login" {
		t.Errorf("logged out: is at %s", got.path)
	}
	if got := open(kept); got != "/console/login" {
		t.Errorf("after the logout the copy is at %s", got)
	}
	if wall.follows("spring") || wall.get("/console").path != "/console/login" {
		t.Error("another session of the key goes on")
	}
	if got := colleague.get("/console"); got.path != "/console" {
		t.Errorf("another key's session is at %s", got.path)
	}
	again := h.login(plain)
	if got := again.get("/console"); got.path != "/console" {
		t.Errorf("logged in again: is at %s", got.path)
	}
	if got := open(kept); got != "/console/login" {
		t.Errorf("after the next login the copy is at %s", got)
	}
}

// TestAScreenOnTheWallGoesOnWhileItsKeyIsGood lets a browser follow a Live page for ten days, and do nothing else. When its stream ends, it
// reconnects.
func TestAScreenOnTheWallGoesOnWhileItsKeyIsGood(t *testing.T) {
	for _, c := range []struct {
		role firstcome.Role
		want time.Duration // after how long the login appears; 0 if it never does
	}{{firstcome.Viewer, 0}, {firstcome.Support, 15 * time.Hour}, {firstcome.Admin, 15 * time.Hour}} {
		t.Run(string(c.role), func(t *testing.T) {
			var passed atomic.Int64
			begin := time.Now()
			h := openHouse(t, withKeys, func(h *house) { h.keep(func() time.Time { return begin.Add(time.Duration(passed.Load())) }) })
			h.campaign("spring", 10)
			plain, key := h.key(c.role)
			b := h.login(plain)
			ended := time.Duration(0)
			for ended == 0 && passed.Load() < int64(10*24*time.Hour) {
				if ended = time.Duration(passed.Load()); b.follows("spring") {
					ended = 0
				}
				passed.Add(int64(5 * time.Hour))
			}
			if ended != c.want {
				t.Errorf("the login is shown after %v, want %v", ended, c.want)
			}
			stage.Must(t, h.ledger.Deployment.RevokeKey(t.Context(), "a test", key.ID))
			stage.Must(t, h.auth.Reload(t.Context()))
			if b.follows("spring") {
				t.Error("it goes on although its key is revoked")
			}
		})
	}
}

// follows opens a campaign's stream, and reports whether the server accepts it.
func (b *visitor) follows(campaign string) bool {
	b.h.t.Helper()
	got := b.do(http.MethodGet, "/console/campaigns/"+campaign+"/events", nil, http.Header{"Accept": {"text/event-stream"}})
	return got.status == http.StatusOK
}

func TestASessionOfAnotherHouseIsNone(t *testing.T) {
	h := openHouse(t, withKeys)
	_, key := h.key(firstcome.Admin)
	forged := []string{"", "AAAA", strings.Repeat("A", 80), key.ID}
	for _, value := range forged {
		b := h.browser()
		got := b.do(http.MethodGet, "/console", nil, http.Header{"Cookie": {"firstcome=" + value}})
		if got.path != "/console/login" {
			t.Errorf("the cookie %q: is at %s", value, got.path)
		}
	}
}

func TestTheCookieIsTheBrowsersAlone(t *testing.T) {
	h := openHouse(t, withKeys, func(h *house) { h.config.Secure = true })
	plain, _ := h.key(firstcome.Viewer)
	b := h.browser()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got := b.post("/console/login", url.Values{"key": {plain}})
	cookie := got.head.Get("Set-Cookie")
	for _, part := range []string{"__Host-firstcome=", "HttpOnly", "Secure", "SameSite=Lax", "Path=/;"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("%q has no %s", cookie, part)
		}
	}
	if strings.Contains(cookie, plain) {
		t.Error("the cookie holds the key")
	}
}

func TestAnotherSitesFormChangesNothing(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 10)
	b := h.browser()
	form := url.Values{"to": {"pause"}, "version": {"1"}}
	for _, head := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example"}}} {
		if got := b.do(http.MethodPost, "/console/campaigns/spring/switch", form, head); got.status != http.StatusForbidden {
			t.Errorf("%v: %d", head, got.status)
		}
	}
	if s, err := h.ledger.Reads.Campaign(context.Background(), id); err != nil || s.Paused {
		t.Errorf("paused %v, %v", s.Paused, err)
	}
	if got := b.do(http.MethodPost, "/console/campaigns/spring/switch", form, http.Header{"Sec-Fetch-Site": {"same-origin"}}); got.status != http.StatusOK {
		t.Errorf("its own form: %d %s", got.status, got.text())
	}
	if s, err := h.ledger.Reads.Campaign(context.Background(), id); err != nil || !s.Paused {
		t.Errorf("paused %v, %v", s.Paused, err)
	}
}

func TestADevelopmentConsoleAnswersNoOtherHost(t *testing.T) {
	h := openHouse(t)
	r, err := http.NewRequest(http.MethodGet, h.url+"/console", nil)
	stage.Must(t, err)
	r.Host = "rebound.example"
	b := h.browser()
	w, err := b.client.Do(r)
	stage.Must(t, err)
	defer w.Body.Close()
	if w.StatusCode != http.StatusForbidden {
		t.Errorf("got %d", w.StatusCode)
	}
}

func TestADevelopmentConsoleAnswersNoProxy(t *testing.T) {
	b := openHouse(t).browser()
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "Via", "X-Real-Ip"} {
		if got := b.do(http.MethodGet, "/console", nil, http.Header{name: {"203.0.113.9"}}); got.status != http.StatusForbidden {
			t.Errorf("with %s: %d", name, got.status)
		}
	}
}

// TestAWallScreenIsNotLoggedOut lets a page follow a campaign for a day without a click. Its stream ends from time to time, and the browser
// reconnects.
func TestAWallScreenIsNotLoggedOut(t *testing.T) {
	var passed atomic.Int64
	begin := time.Now()
	h := openHouse(t, withKeys, func(h *house) {
		h.keep(func() time.Time { return begin.Add(time.Duration(passed.Load())) })
	})
	h.campaign("spring", 10)
	plain, _ := h.key(firstcome.Viewer)
	wall := h.login(plain)
	for time.Duration(passed.Load()) < 24*time.Hour {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/console/campaigns/spring/events", nil)
		stage.Must(t, err)
		answer, err := wall.client.Do(r)
		stage.Must(t, err)
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("behind %v the stream is answered %d", time.Duration(passed.Load()), answer.StatusCode)
		}
		passed.Add(int64(6*time.Hour + time.Minute))
		h.config.Watcher.Tick(t.Context())
		_, err = io.Copy(io.Discard, answer.Body) // until it ends
		stage.Must(t, err)
		stage.Must(t, answer.Body.Close())
	}
}
