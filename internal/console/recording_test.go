package console_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/figures"
)

// A crowd of nodes says of itself what a test wants.
type crowd []figures.Node

func (c crowd) Nodes(context.Context) ([]figures.Node, error) { return c, nil }

func TestTheRecordingPageShowsEachRecordersBreaker(t *testing.T) {
	now := time.Now()
	node := func(host, breaker string, ago time.Duration) figures.Node {
		return figures.Node{Host: host, Listen: "127.0.0.1:8080", Now: now, SeenAt: now.Add(-ago), Breaker: breaker}
	}
	stopped := node("stopped", "open", 0)
	stopped.StoppedAt = now
	h := openFar(t, func(h *house) {
		h.config.Watcher.Nodes = crowd{node("well", "closed", 0), node("ill", "open", 0), node("trying", "half-open", 0), node("silent", "open", time.Minute), node("answers", "", 0), stopped}
	})
	for lang, wants := range map[string][]string{
		"en": {"well 127.0.0.1:8080 closed", "ill 127.0.0.1:8080 open: the ledger takes nothing", "trying 127.0.0.1:8080 half-open: one try at a time", "silent 127.0.0.1:8080 gone"},
		"ko": {"well 127.0.0.1:8080 정상", "ill 127.0.0.1:8080 열림: 장부가 받지 않음", "trying 127.0.0.1:8080 시험 중", "silent 127.0.0.1:8080 사라짐"},
	} {
		b := h.browser()
		b.lang = lang
		_, table, _ := strings.Cut(b.get("/console/recording").body, "data-recorders>")
		table, _, _ = strings.Cut(table, "</table>")
		got := shown{body: table}.text()
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in %s", lang, want, got)
			}
		}
		for _, none := range []string{"answers", "stopped"} {
			if strings.Contains(got, none) {
				t.Errorf("%s: %s is no recorder that runs: %s", lang, none, got)
			}
		}
	}
}
