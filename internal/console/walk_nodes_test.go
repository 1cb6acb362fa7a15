//go:build !race || soak

package console_test

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/firstcome/firstcome/internal/gate"
)

// recording compares the page Recording with the unrecorded coupons, and with the servers that answer.
func (w *walk) recording(step walked, b *visitor, say func(ko, en string) string) {
	w.t.Helper()
	backlog, oldest := fmt.Sprint(w.unrecorded), say("1초", "1 s")
	if w.unrecorded == 0 {
		oldest = say("0초", "0 s")
	}
	if w.gateAway() || w.dark {
		backlog, oldest = "–", "–"
	}
	w.reads(step, b, "/recording", map[string]bool{
		say("원장이 직접 결정하므로 쿠폰은 발급과 동시에 기록됩니다.", "The ledger decides. Issued coupons are recorded at the same time."):              w.far == nil,
		fmt.Sprint(say("밀린 쿠폰 ", "Backlog "), backlog, say(" 가장 오래된 것 ", " Oldest "), oldest, " "):                               w.far != nil,
		say("기록 실패 건과 유실된 번호를 지금은 알 수 없습니다.", "The ledger does not answer, so dead letters and lost numbers are not known now."): w.dark,
		say("기록 실패 건이 없습니다.", "There is no dead letter."):                                                                        !w.dark,
		say("다른 노드의 레코더를 읽을 수 없습니다.", "The other nodes' recorders cannot be read."):                                              w.dark && w.far != nil,
	})
	w.marks(step, b, "/recording")
}

// health compares the page Health with the servers that answer.
func (w *walk) health(step walked, b *visitor, say func(ko, en string) string) {
	w.t.Helper()
	flow, none := w.reads(step, b, "/health", map[string]bool{
		say("원장이 응답하지 않습니다", "the ledger does not answer"):                      w.dark,
		say("게이트가 응답하지 않습니다", "the gate does not answer"):                       w.gateAway() && !w.dark,
		fmt.Sprintf(say("밀린 쿠폰 %d", "backlog %d"), w.unrecorded):                w.unrecorded > 0,
		say("노드 목록을 읽을 수 없습니다.", "The nodes cannot be read."):                   w.dark,
		say("발급이 중단된 캠페인: 1", "Campaigns of which the gate decides nothing: 1"): w.noticed(),
		say("발급이 중단된 캠페인:", "Campaigns of which the gate decides nothing:"):     w.noticed(),
	}), "unknown"
	if w.far == nil {
		none = "bad" // the ledger is the gate
	}
	gate, kept := state(w.gateAway(), "bad", "ok"), state(w.dark, "bad", "ok")
	journal := state(w.dark, "bad", state(w.gateAway(), "unknown", "ok"))
	if w.dark {
		gate = none
	}
	want := map[string]string{say("노드", "nodes"): state(len(w.mender.all()) > 0, "bad", gate), say("게이트", "gate"): gate, say("저널", "journal"): journal, say("원장", "ledger"): kept, say("원장 = 게이트", "ledger = gate"): gate}
	for from, want := range want {
		_, rest, is := strings.Cut(flow.body, "<strong>"+from+"</strong><span class=\"arrow ")
		if got, _, _ := strings.Cut(rest, "\""); is && got != want {
			w.t.Errorf("%s, %s: Health shows %q behind %s, and should show %q: %s", step.name, b.lang, got, from, want, flow.text())
		}
	}
	w.marks(step, b, "/health")
}

func state(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// gateAway reports whether the gate beside the ledger does not answer at all.
func (w *walk) gateAway() bool { return w.blind && !w.noticed() }

// noticed reports whether nodes know that the gate decides nothing, and why.
func (w *walk) noticed() bool { return w.blind && len(w.mender.all()) > 0 }

// refused reports whether the gate could decide but must not.
func (w *walk) refused() bool {
	return errors.Is(w.why, gate.ErrLedgerRolledBack) || errors.Is(w.why, gate.ErrStaleEpoch)
}

// marks checks what a page says about a gate that decides nothing.
func (w *walk) marks(step walked, b *visitor, path string) {
	w.t.Helper()
	w.stopped(step, b.lang, path, b.get("/console"+path).text(), atMark)
}

// reads fails unless a page has exactly those of the sentences that are true.
func (w *walk) reads(step walked, b *visitor, path string, says map[string]bool) shown {
	w.t.Helper()
	got := b.get("/console" + path)
	for sentence, is := range says {
		if got.status != http.StatusOK || strings.Contains(html.UnescapeString(got.text()), sentence) != is {
			w.t.Errorf("%s, %s, %s: %d, says %q should be %t: %s", step.name, b.lang, path, got.status, sentence, is, got.text())
		}
	}
	return got
}
