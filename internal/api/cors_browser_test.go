//go:build !check && (!race || soak)

package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/test/browser"
)

// TestAPageWithAScriptThatTracesItClaims in a real browser, which asks first, from another origin.
func TestAPageWithAScriptThatTracesItClaims(t *testing.T) {
	b := browser.Open(t)
	var claim string
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, claim)
	}))
	t.Cleanup(page.Close)
	s := open(t, guarded, func(_ *shop, c *api.Options) { c.CORSOrigins = []string{page.URL} })
	s.createInLedger("c")
	claim = fmt.Sprintf(`<!doctype html><title>shop</title><body><p id="said">…</p><script>
fetch(%q, {method: 'POST', headers: {Authorization: %q, traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'sentry-trace': 'a-b-1', baggage: 'a=b'}})
	.then(r => r.json()).then(a => said.textContent = 'claim: ' + a.outcome, e => said.textContent = 'failed: ' + e);
</script>`, s.url+"/v1/campaigns/c/claims", s.token("mina")[1])
	p := b.Page(t, browser.Look{})
	p.Go(page.URL)
	p.Await("claim: issued")
}
