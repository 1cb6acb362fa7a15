package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
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
