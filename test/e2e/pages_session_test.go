//go:build linux && !check

package e2e_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

var consoleLine = regexp.MustCompile(`msg=serving .* console=(https://\S+) `)

// secured starts a node whose console has an address of its own, with TLS.
func secured(t *testing.T, ledger, secret, cert, key string) *process {
	t.Helper()
	args := []string{"--ledger", ledger, "--console", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key}
	return serve(t, launch{args: args, env: []string{"FIRSTCOME_SECRET=" + secret}})
}

// atConsole returns a person who trusts a node's certificate, and keeps the cookies of another person if there is one.
func atConsole(p *process, trust *x509.CertPool, same *person) *person {
	p.t.Helper()
	found := consoleLine.FindStringSubmatch(p.text())
	if found == nil {
		p.t.Fatalf("the node does not say where its console is:\n%s", p.text())
	}
	visitor := newPerson(p)
	visitor.url = found[1]
	visitor.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}
	p.t.Cleanup(visitor.http.CloseIdleConnections)
	if same != nil {
		visitor.http.Jar = same.http.Jar
	}
	return visitor
}

// makeKey makes a key as who runs the deployment does, and returns it with its id.
func makeKey(t *testing.T, ledger, role string) (key, id string) {
	t.Helper()
	status, out := executeWith(t, t.TempDir(), nil, "key", "create", "--ledger", ledger, "--name", "mina of "+role, "--role", role)
	key = lastLine(out)
	parts := strings.Split(key, "_")
	if status != 0 || len(parts) != 3 {
		t.Fatalf("make a key: %s", out)
	}
	return key, parts[1]
}

// TestASessionHoldsOnEachNodeUntilItsKeyIsRevoked has people log in over TLS at one of two nodes that share a ledger and a secret,
// and at a third with another secret.
func TestASessionHoldsOnEachNodeUntilItsKeyIsRevoked(t *testing.T) {
	t.Parallel()
	ledger := services.PostgreSQL.Database(t)
	cert, file, trust := certify(t)
	admin, _ := makeKey(t, ledger, "admin")
	operator, revoked := makeKey(t, ledger, "operator")
	service, _ := makeKey(t, ledger, "service")
	one, other := secured(t, ledger, fleetSecret, cert, file), secured(t, ledger, fleetSecret, cert, file)

	boss := atConsole(one, trust, nil)
	boss.wants(boss.post("/login", url.Values{"key": {service}}), http.StatusForbidden, "A key of the role service or shop is for systems and cannot log in.")
	boss.wants(boss.get(""), http.StatusOK, "Log in with your API key.")
	boss.wants(boss.post("/login", url.Values{"key": {admin}}), http.StatusOK, "mina of admin")
	boss.wants(boss.post("/campaigns", url.Values{"id": {"spring"}, "name": {"Spring"}, "quantity": {"10"}, "answer": {"recorded"}, "step": {"create"}}), http.StatusOK, "Campaign created.")

	jun := atConsole(one, trust, nil)
	answer := jun.once(http.MethodPost, "/login", url.Values{"key": {operator}}, nil)
	cookie := answer.Header.Get("Set-Cookie")
	for _, part := range []string{"__Host-firstcome=", "Path=/;", "HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie lacks %s: %s", part, cookie)
		}
	}
	there := atConsole(other, trust, jun)
	there.wants(there.get("/campaigns/spring"), http.StatusOK, "mina of operator")

	// What another site sends changes nothing, on either node.
	pause := url.Values{"to": {"pause"}, "version": {"1"}}
	for _, from := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.example"}}} {
		if w := there.once(http.MethodPost, "/campaigns/spring/switch", pause, from); w.StatusCode != http.StatusForbidden {
			t.Errorf("a form of %v is %s", from, w.Status)
		}
	}
	there.wants(there.get("/campaigns/spring"), http.StatusOK, "Spring open")

	// A node with another secret takes no session of these, though it knows the key, and they take none of its.
	stranger := secured(t, ledger, strings.ToUpper(fleetSecret), cert, file)
	strange := atConsole(stranger, trust, jun)
	strange.wants(strange.get(""), http.StatusOK, "Log in with your API key.")
	strange = atConsole(stranger, trust, nil)
	strange.wants(strange.post("/login", url.Values{"key": {operator}}), http.StatusOK, "mina of operator")
	back := atConsole(one, trust, strange)
	back.wants(back.get(""), http.StatusOK, "Log in with your API key.")

	// The key is revoked on one node, and ends what its person has open on the other.
	stream := there.once(http.MethodGet, "/campaigns/spring/events", nil, nil)
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		t.Fatalf("the live page has no events: %s %v", stream.Status, lines.Err())
	}
	boss.wants(boss.post("/keys/"+revoked+"/revoke", url.Values{}), http.StatusOK, "Key revoked.")
	for lines.Scan() { // until the stream ends
	}
	for _, at := range []*person{there, jun} {
		at.sees("", "Log in with your API key.")
		at.wants(at.post("/login", url.Values{"key": {operator}}), http.StatusForbidden, "There is no such key, or it was revoked.")
	}
	boss.wants(boss.post("/logout", url.Values{}), http.StatusOK, "Log in with your API key.")
	boss.wants(boss.get("/keys"), http.StatusOK, "Log in with your API key.")
}

// once sends a request and follows no redirect. The body ends with the test.
func (p *person) once(method, path string, form url.Values, head http.Header) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(form.Encode()))
	stage.Must(p.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, values := range head {
		r.Header[name] = values
	}
	once := *p.http
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w, err := once.Do(r)
	stage.Must(p.t, err)
	p.t.Cleanup(func() { _ = w.Body.Close() })
	return w
}
