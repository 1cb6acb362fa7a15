package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// A crowd is the nodes table, with the reports that a test wants.
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

func TestTheRecordingPageSaysThatThisNodeRecordsNothing(t *testing.T) {
	for said, recorder := range map[string]func() record.Stats{"this node does not record": nil, "Retries 0": func() record.Stats { return record.Stats{Breaker: "closed"} }} {
		h := openFar(t, func(h *house) { h.config.Journal.Recorder = recorder })
		if got := h.browser().get("/console/recording").text(); !strings.Contains(got, said) || strings.Contains(got, "does not record") != (recorder == nil) {
			t.Errorf("no %q in %s", said, got)
		}
	}
}

// TestTheRecordingPageTellsOfATopicBetweenGateAndLedger passes coupons through a topic that does not answer. How many wait is known; for how long is
// not.
func TestTheRecordingPageTellsOfATopicBetweenGateAndLedger(t *testing.T) {
	now := time.Now()
	failed := record.ErrUnaged
	h := openFar(t, func(h *house) {
		node := func(host, relay string) figures.Node {
			return figures.Node{Host: host, Listen: "127.0.0.1:8080", Now: now, SeenAt: now, Breaker: "closed", Relay: relay}
		}
		h.config.Watcher.Nodes = crowd{node("well", "closed"), node("ill", "open"), node("trying", "half-open")}
		h.config.Journal.Relay = func() record.Stats { return record.Stats{Breaker: "open"} }
		h.config.Journal.Lag = func(context.Context) ([]record.Lag, error) {
			return []record.Lag{{Campaign: "spring", Numbers: 1234, Oldest: 90 * time.Second}}, failed
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

// TestAllLettersOfACauseAreResolvedAtOnce previews a void and does it, while another letter of the cause arrives in between. Then it replays more
// letters than one form resolves.
func TestAllLettersOfACauseAreResolvedAtOnce(t *testing.T) {
	h := openFar(t)
	h.campaign("spring", 1000)
	for n := range 4 {
		h.bury("spring", fmt.Sprint("hana-", n), fmt.Sprintf("number %d is of epoch 1, the campaign is in 2", n+1))
	}
	h.bury("spring", "other", "number 5 is over the quantity of 2")
	b := h.browser()
	if got := b.get("/console/recording").text(); !strings.Contains(got, "spring a gate of another epoch issued it 4 ") || !strings.Contains(got, "spring the quantity is used up 1 ") {
		t.Errorf("the causes are not counted: %s", got)
	}
	form := func(more ...string) url.Values {
		v := url.Values{"of": {"spring"}, "cause": {"other_epoch"}, "through": {"4"}, "do": {"void"}, "reason": {"a bad entry"}}
		for n := 0; n < len(more); n += 2 {
			v.Set(more[n], more[n+1])
		}
		return v
	}
	says := func(got shown, status int, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if got.status != status || !strings.Contains(got.text(), want) {
				t.Errorf("it is answered %d without %q: %s", got.status, want, got.text())
			}
		}
	}
	send := func(form url.Values) shown { return b.post("/console/recording/dead-letters", form) }
	says(send(form()), http.StatusOK, "Void all of this cause?", "dead letters: 4 · spring", "number 1 · hana-0", "number 3 · hana-2", "Only the first few are shown.")
	says(send(form("typed", "winter")), http.StatusOK, "Nothing was changed.")
	says(send(form("reason", " ")), http.StatusUnprocessableEntity, "reason")
	for _, wrong := range [][]string{{"cause", "none"}, {"do", "close"}, {"through", "0"}, {"of", "NO ID"}} {
		says(send(form(wrong...)), http.StatusNotFound, "Not found")
	}
	h.bury("spring", "late", "number 6 is of epoch 1, the campaign is in 2")
	if open := h.openLetters(); open != 6 {
		t.Fatalf("%d letters are open before it is confirmed", open)
	}
	says(send(form("typed", "spring")), http.StatusOK, "Voided.", "late")
	if open := h.openLetters(); open != 2 {
		t.Errorf("%d letters are open, want that of the other cause and the later one", open)
	}
	log, err := h.ledger.Reads.AuditLog(t.Context(), ledger.LogFilter{Campaign: "spring", Limit: 4})
	stage.Must(t, err)
	for n, line := range log {
		if line.Action != "dead_letter.void" || line.Number != int64(4-n) || !strings.Contains(string(line.Detail), "a bad entry") {
			t.Errorf("line %d of the log is %+v", n, line)
		}
	}

	const most = operate.MostLetters
	for n := range most {
		h.bury("spring", fmt.Sprint("many-", n), "number 9 is of epoch 1, the campaign is in 2")
	}
	replay := form("do", "replay", "through", "100000", "typed", "추석 spring")
	got := send(replay)
	says(got, http.StatusOK, fmt.Sprintf("%d resolved, 0 refused as before, 1 not tried yet.", most), "Replay all of this cause?", "dead letters: 1 ")
	if !strings.Contains(got.body, `value="spring"></label>`) {
		t.Error("the rest has to be confirmed once more")
	}
	says(send(replay), http.StatusOK, "Recorded.")
	if open := h.openLetters(); open != 1 {
		t.Errorf("%d letters are open", open)
	}
}
