//go:build linux && !check

package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// securedURL returns the URL of a new database of a server, or of Redis, by TLS and for a
// user of its own, and the one without for who may do everything.
func securedURL(t *testing.T, kind services.Kind, rights ...string) (at, plain string) {
	t.Helper()
	server, secured, files := kind.Secured(t)
	plain = server.URL()
	if kind != services.Redis {
		var err error
		if plain, err = server.Database(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	as, err := url.Parse(services.User(t, plain, rights...))
	stage.Must(t, err)
	u, err := url.Parse(secured)
	stage.Must(t, err)
	u.User, u.Path = as.User, as.Path
	q := url.Values{"sslrootcert": {files.Root}}
	if kind == services.PostgreSQL {
		q.Set("sslmode", "verify-full")
	}
	u.RawQuery = q.Encode()
	return u.String(), plain
}

// TestF64ANodeReachesLedgerAndGateOverTLSAndNoOutputHasAPassword has the URLs in the
// environment, as docs/operate.md says.
func TestF64ANodeReachesLedgerAndGateOverTLSAndNoOutputHasAPassword(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			ledger, owners := securedURL(t, kind)
			gate, _ := securedURL(t, services.Redis, "~firstcome:*", "&firstcome:*", "+@all", "-@dangerous", "+info")
			env := []string{"FIRSTCOME_SECRET=" + fleetSecret, "FIRSTCOME_LEDGER=" + ledger, "FIRSTCOME_GATE=" + gate}
			var output strings.Builder
			run := func(want int, env []string, args ...string) {
				status, text := executeWith(t, t.TempDir(), env, args...)
				output.WriteString(text)
				if status != want {
					t.Errorf("%v ends with %d:\n%s", args, status, text)
				}
			}
			run(0, []string{"FIRSTCOME_LEDGER=" + owners}, "migrate")
			run(0, env, "doctor")
			p := serve(t, launch{env: env, args: patient})
			p.create("spring", 10)
			if answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns/spring/claims", `{"user_id":"somebody"}`); answer.StatusCode != http.StatusCreated {
				t.Errorf("a claim: %s %s", answer.Status, text)
			}
			p.stop()
			run(0, env, "audit")
			for n := 1; n < len(env); n++ {
				wrong := append([]string{}, env...)
				wrong[n] = strings.Replace(env[n], "sesame", "barley", 1)
				run(1, wrong, "serve", "--ops", "off")
				run(1, wrong, "doctor")
			}
			output.WriteString(p.text())
			for _, password := range []string{"sesame", "barley"} {
				if strings.Contains(output.String(), password) {
					t.Errorf("a password is shown:\n%s", &output)
				}
			}
		})
	}
}
