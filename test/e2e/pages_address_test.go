//go:build linux && !check

package e2e_test

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

var anyConsoleLine = regexp.MustCompile(`msg=serving .* console=(http://\S+)/console `)

// TestTheAddressRateCoversTheConsole has the pages at an address of their own, and at the API's. An address has one allowance for both, and
// behind a trusted proxy each client has one of its own.
func TestTheAddressRateCoversTheConsole(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"127.0.0.1:0", "on"} {
		dir := t.TempDir()
		ledger := "sqlite:" + filepath.Join(dir, "firstcome.db")
		makeKey(t, ledger, "admin") // without a key the console answers no proxy
		p := serve(t, launch{dir: dir, args: []string{
			"--ledger", ledger, "--console", where, "--address-rate", "0.001", "--trusted-proxy", "127.0.0.0/8",
		}})
		found := anyConsoleLine.FindStringSubmatch(p.text())
		if found == nil {
			t.Fatalf("the node does not say where its console is:\n%s", p.text())
		}
		ask := func(url, from string, want int) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			stage.Must(t, err)
			r.Header.Set("X-Forwarded-For", from)
			answer, err := p.http.Do(r)
			stage.Must(t, err)
			defer answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("--console %s: %s from %s is answered %s, want %d", where, strings.TrimPrefix(url, found[1]), from, answer.Status, want)
			}
		}
		login, line := found[1]+"/console/login", p.url+"/v1/campaigns/none/line"
		for range 50 { // addressBurst of cmd/firstcome is 100
			ask(login, "203.0.113.9", http.StatusOK)
			ask(line, "203.0.113.9", http.StatusNotFound)
		}
		ask(login, "203.0.113.9", http.StatusTooManyRequests)
		ask(line, "203.0.113.9", http.StatusTooManyRequests)
		ask(login, "203.0.113.10", http.StatusOK)
	}
}
