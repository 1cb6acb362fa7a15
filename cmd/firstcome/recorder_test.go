//go:build !check

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestARecorderHasNoAPIAndSaysHowItIs(t *testing.T) {
	c := &serveCmd{Listen: "127.0.0.1:0", Ops: "127.0.0.1:0", gateFlags: gateFlags{Gate: gateName(services.Redis.Database(t)), Role: "recorder"}}
	c.Ledger = ledgerName("sqlite:" + filepath.Join(t.TempDir(), "firstcome.db"))
	n, err := newNode(t.Context(), c, slog.New(slog.DiscardHandler), func(context.Context, *ledger.Ledger) (bool, error) { return true, nil })
	stage.Must(t, err)
	if n.api != nil || n.issuer != nil || n.http != nil || n.address() != "off" {
		t.Errorf("a recorder serves an API at %s: %+v", n.address(), n)
	}
	stop := stage.Run(t, n.run)
	for path, want := range map[string]string{
		"/livez": "ok", "/readyz?verbose": `"ledger":"ok"`, "/metrics": "\nfirstcome_breaker_state{", "/debug/pprof/cmdline": "",
	} {
		answer, err := http.Get("http://" + n.opsAddress() + path)
		stage.Must(t, err)
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s answers %s %s, %v", path, answer.Status, text, err)
		}
		if strings.Contains(string(text), "\nfirstcome_claims_total") {
			t.Error("a recorder counts claims")
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
}

// TestTheHealthPageListsRecorders runs a node that answers and two recorders on one ledger, one of them without metrics. Each has its own row on the page
// until it stops.
func TestTheHealthPageListsRecorders(t *testing.T) {
	for kind, of := range services.Ledgers {
		if kind == services.SQLite {
			continue // no two processes share SQLite
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ledgerAt, gate := of(t), services.Redis.Database(t)
			start := func(role string, metrics opsAddress) (n *node, stop func()) {
				c := demoServe("")
				c.files.secret = bytes.Repeat([]byte("5c"), 32) // 32 bytes in hex
				c.Ledger, c.Ops, c.gateFlags = ledgerName(ledgerAt), metrics, gateFlags{Gate: gateName(gate), Role: role}
				n, err := newNode(t.Context(), c, slog.New(slog.DiscardHandler), func(context.Context, *ledger.Ledger) (bool, error) { return true, nil })
				stage.Must(t, err)
				return n, stage.Run(t, n.run)
			}
			answering, _ := start("api", opsOff)
			measured, stopMeasured := start("recorder", "127.0.0.1:0")
			_, stopBare := start("recorder", opsOff)

			row := func(where, role string) string {
				return fmt.Sprintf(`<small>%s</small></th><td data-name="role">%s</td>`, where, role)
			}
			api, metrics := row(answering.address(), "api"), row("metrics at "+measured.opsAddress(), "recorder")
			bare := row(fmt.Sprintf("process %d", os.Getpid()), "recorder")
			listed := func() (rows []string) {
				answer, err := http.Get("http://" + answering.address() + "/console/health")
				stage.Must(t, err)
				text, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				stage.Must(t, err)
				for _, r := range []string{api, metrics, bare} {
					if strings.Contains(string(text), r) {
						rows = append(rows, r)
					}
				}
				return append(rows, fmt.Sprint(strings.Count(string(text), "</small></th>")), fmt.Sprint(strings.Contains(string(text), "state gone")))
			}
			await := func(what string, rows ...string) {
				t.Helper()
				want := fmt.Sprint(append(rows, fmt.Sprint(len(rows)), "false"))
				stage.Await(t, what, want, func() string { return fmt.Sprint(listed()) })
			}
			await("all three", api, metrics, bare)
			stopBare()
			await("the two that run", api, metrics)
			stopMeasured()
			await("the one that runs", api)
			http.DefaultClient.CloseIdleConnections()
		})
	}
}
