package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
)

const shopPage = "https://app.shop.example"

// crossing is a change of open that allows the pages of shopPage.
func crossing(_ *shop, c *api.Options) { c.CORSOrigins = []string{shopPage, "http://localhost:5173"} }

// fromPage sends a request as a browser does for a page of an origin.
func (s *shop) fromPage(method, path, origin, site, body string, header ...string) (status int, h http.Header) {
	s.t.Helper()
	header = append([]string{"Origin", origin}, header...)
	if site != "" {
		header = append(header, "Sec-Fetch-Site", site)
	}
	r := s.call(method, path, body, header...)
	return r.status, r.header
}

// TestF63APageMayClaimWithItsUsersToken: a browser never adds a token in a header by itself, so no page of another site can make it send one. In
// development mode, where every caller is admin, such a page is refused.
func TestF63APageMayClaimWithItsUsersToken(t *testing.T) {
	s := open(t, guarded)
	s.createInLedger("c")
	for n, site := range []string{"same-origin", "same-site", "cross-site", "none", ""} {
		status, _ := s.fromPage("POST", "/v1/campaigns/c/claims", shopPage, site, "", s.token(fmt.Sprint("u", n))...)
		if status != http.StatusCreated {
			t.Errorf("with a token and Sec-Fetch-Site %q it answers %d", site, status)
		}
		if status, _ := s.fromPage("POST", "/v1/campaigns/c/claims", shopPage, site, `{"user_id":"v"}`); status != http.StatusUnauthorized {
			t.Errorf("without a token and with Sec-Fetch-Site %q it answers %d", site, status)
		}
	}
	s = open(t)
	s.createInLedger("c")
	for _, site := range []string{"same-site", "cross-site", ""} {
		if status, _ := s.fromPage("POST", "/v1/campaigns/c/claims", shopPage, site, `{"user_id":"v"}`); status != http.StatusForbidden {
			t.Errorf("in development mode, with Sec-Fetch-Site %q, it answers %d", site, status)
		}
	}
}

// TestPagesOfNamedOriginsMayAsk sends a browser's preflight and then its request, both over net/http and in a lane.
func TestPagesOfNamedOriginsMayAsk(t *testing.T) {
	s := open(t, guarded, crossing)
	s.createInLedger("c")
	before := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type"}
	for n, origin := range []string{shopPage, "http://localhost:5173"} {
		status, h := s.fromPage("OPTIONS", "/v1/campaigns/c/claims", origin, "cross-site", "", before...)
		if status != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Vary") != "Origin" ||
			!strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") || h.Get("Access-Control-Allow-Headers") != "authorization,content-type" {
			t.Errorf("before a page of %s asks it answers %d %v", origin, status, h)
		}
		for again, want := range []int{201, 200, 200, 200} {
			status, h := s.fromPage("POST", "/v1/campaigns/c/claims", origin, "cross-site", "", s.token(fmt.Sprint("u", n))...)
			if status != want || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("claim %d of a page of %s answers %d %v", again, origin, status, h)
			}
		}
		if _, h := s.fromPage("GET", "/v1/nowhere", origin, "cross-site", ""); h.Get("Access-Control-Allow-Origin") != origin {
			t.Errorf("what went wrong cannot be read: %v", h)
		}
	}
}

// TestAPageOfANamedOriginMaySendWhatItAsksToSend: scripts for tracing and error reports add headers to each request of a page, and the browser's
// preflight then names those too. The API reads none of them.
func TestAPageOfANamedOriginMaySendWhatItAsksToSend(t *testing.T) {
	s := open(t, guarded, crossing)
	for asked, want := range map[string]string{
		"authorization,content-type,traceparent,tracestate,baggage,sentry-trace": "authorization,content-type,traceparent,tracestate,baggage,sentry-trace",
		"": "Authorization, Content-Type, If-Match, Last-Event-ID",
	} {
		_, h := s.fromPage("OPTIONS", "/v1/campaigns/c/claims", shopPage, "cross-site", "", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked)
		if got := h.Get("Access-Control-Allow-Headers"); got != want {
			t.Errorf("it asks for %q and may send %q", asked, got)
		}
	}
}

func TestPagesOfNoOtherOriginMayAsk(t *testing.T) {
	s := open(t, guarded, crossing)
	s.createInLedger("c")
	for _, origin := range []string{"https://evil.example", "https://app.shop.example.evil.example", "http://app.shop.example", "https://app.shop.example:444", "https://APP.shop.example", "null", "*", ""} {
		status, h := s.fromPage("OPTIONS", "/v1/campaigns/c/claims", origin, "cross-site", "", "Access-Control-Request-Method", "POST")
		if status != http.StatusForbidden || h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "Origin" {
			t.Errorf("before a page of %q asks it answers %d %v", origin, status, h)
		}
		if _, h := s.fromPage("GET", "/v1/campaigns/c", origin, "cross-site", "", s.key(firstcome.Admin)...); h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "Origin" {
			t.Errorf("a page of %q may read the answer: %v", origin, h)
		}
	}
	off := open(t, guarded)
	status, h := off.fromPage("OPTIONS", "/v1/campaigns/c/claims", shopPage, "cross-site", "", "Access-Control-Request-Method", "POST")
	if status != http.StatusMethodNotAllowed || h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "" {
		t.Errorf("where no origin is named it answers %d %v", status, h)
	}
}

func TestAnOriginIsWrittenAsBrowsersSendIt(t *testing.T) {
	for text, good := range map[string]bool{
		shopPage: true, "http://localhost:5173": true, "https://[::1]:8443": true,
		"*": false, "null": false, "": false, "app.shop.example": false, "https://": false, "https://*.shop.example": false, "https://app.shop.example/": false,
		"https://app.shop.example:443": false, "http://app.shop.example:80": false, "https://App.shop.example": false, "https://user@app.shop.example": false,
		"ftp://app.shop.example": false, "https://app.shop.example?": false, "https://app.shop.example#": false, "https://app.shop.example:": false,
	} {
		if _, err := api.ParseOrigin(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
