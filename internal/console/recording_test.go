package console_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/flow"
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
		"ko": {"well 127.0.0.1:8080 정상", "ill 127.0.0.1:8080 차단됨: 원장이 받지 않음", "trying 127.0.0.1:8080 복구 확인 중", "silent 127.0.0.1:8080 응답 없음"},
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

// TestTheRecordingPageTellsOfATopicBetweenGateAndLedger has coupons pass a topic that does not answer: how many wait is known, and how long
// they have waited is not.
func TestTheRecordingPageTellsOfATopicBetweenGateAndLedger(t *testing.T) {
	now := time.Now()
	failed := flow.ErrUnaged
	h := openFar(t, func(h *house) {
		node := func(host, relay string) figures.Node {
			return figures.Node{Host: host, Listen: "127.0.0.1:8080", Now: now, SeenAt: now, Breaker: "closed", Relay: relay}
		}
		h.config.Watcher.Nodes = crowd{node("well", "closed"), node("ill", "open"), node("trying", "half-open")}
		h.config.Journal.Relay = func() flow.RecorderStats { return flow.RecorderStats{Breaker: "open"} }
		h.config.Journal.Lag = func(context.Context) ([]flow.Lag, error) {
			return []flow.Lag{{Campaign: "spring", Numbers: 1234, Oldest: 90 * time.Second}}, failed
		}
	})
	for lang, wants := range map[string][]string{
		"en": {"Backlog 1,234", "Oldest –", "spring 1,234 –", "Into the topic open: the topic takes nothing", "ill 127.0.0.1:8080 closed open: the topic takes nothing", "well 127.0.0.1:8080 closed closed"},
		"ko": {"밀린 쿠폰 1,234", "가장 오래된 것 –", "spring 1,234 –", "토픽으로 차단됨: 토픽이 받지 않음", "trying 127.0.0.1:8080 정상 복구 확인 중"},
	} {
		b := h.browser()
		b.lang = lang
		got := b.get("/console/recording").text()
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in %s", lang, want, got)
			}
		}
	}
	b := h.browser()
	b.lang = "en"
	if got := b.get("/console/health").text(); !strings.Contains(got, "the topic does not answer") {
		t.Errorf("the health page does not tell of the topic: %s", got)
	}
	failed = nil
	if got := b.get("/console/recording").text(); strings.Contains(got, "Oldest –") || strings.Contains(got, "spring 1,234 –") {
		t.Errorf("the oldest is not told: %s", got)
	}
}
