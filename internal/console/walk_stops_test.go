//go:build !race || soak

package console_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// Why a gate decides nothing: it is away, its server has restarted, a node rebuilds it, it lost keys, its ledger was restored, or an address leads
// back to an old one.
var (
	errGateAway   = fmt.Errorf("%w: no route to the gate", firstcome.ErrGateUnavailable)
	errRecovering = fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified)
	errMending    = fmt.Errorf("%w: %w", errRecovering, record.ErrRebuilding)
	errGone       = fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrGone)
	errRolledBack = error(&gate.LedgerRolledBackError{Campaign: "spring"})
	errStaleEpoch = error(&gate.StaleEpochError{Campaign: "spring", Gate: 1, Ledger: 2})
)

// A stop is what people read about a gate that decides nothing.
type stop struct {
	state, code string    // in the API's answers
	page        [2]string // on the pages of the campaign
	support     [2]string // what support tells a customer
	mark        [2]string // on the pages Recording and Health, if nodes know the cause
}

// stops has a stop for each cause.
var stops = map[error]stop{
	errGateAway: {"unknown", "gate_unavailable", [2]string{"게이트가 응답하지 않습니다.", "The gate does not answer."}, [2]string{"‘추석’ 발급 서버가 현재 응답하지 않습니다.", "What decides “추석” does not answer now."}, [2]string{}},
	errRecovering: {
		"unverified", "gate_unavailable",
		[2]string{"Redis가 다시 시작했거나, 이전 상태로 되돌아갔거나, 다른 서버로 전환되었습니다.", "Redis restarted or went back to an older state, or another server took over."},
		[2]string{"‘추석’ 발급 서버가 복구되는 중입니다.", "What decides “추석” is recovering."},
		[2]string{"확인 안 됨", "unverified"},
	},
	errMending: {
		"unverified", "gate_unavailable",
		[2]string{"원장의 데이터로 게이트를 재구성하고 있습니다.", "The gate is being rebuilt from the ledger."},
		[2]string{"‘추석’ 발급 서버가 복구되는 중입니다.", "What decides “추석” is recovering."},
		[2]string{"재구성 중", "being rebuilt"},
	},
	errGone: {
		"lost", "gate_unavailable",
		[2]string{"Redis가 비었거나 바뀌었거나 키가 유실되었습니다.", "Redis was emptied or replaced, or lost keys."},
		[2]string{"‘추석’ 발급 서버에 문제가 있습니다.", "What decides “추석” is out of order."},
		[2]string{"Redis가 비었거나 바뀌었거나 키가 유실되었습니다. 게이트 이름이", "Redis was emptied or replaced, or lost keys. If"},
	},
	errRolledBack: {
		"ledger_rolled_back", "ledger_rolled_back",
		[2]string{"원장이 게이트보다 오래되었습니다.", "The ledger is older than the gate, as after a restored backup."},
		[2]string{"‘추석’ 발급 서버에 문제가 있습니다.", "What decides “추석” is out of order."},
		[2]string{"원장이 더 오래됨", "the ledger is older"},
	},
	errStaleEpoch: {
		"stale_epoch", "stale_epoch",
		[2]string{"이 노드가 연결된 Redis의 에폭은 이미 끝났습니다.", "The epoch of the Redis that this node reaches has ended."},
		[2]string{"‘추석’ 발급 서버에 문제가 있습니다.", "What decides “추석” is out of order."},
		[2]string{"게이트가 더 오래됨", "the gate is older"},
	},
}

// stopped fails unless a page says why the gate decides nothing, and names no other cause.
func (w *walk) stopped(step walked, lang, path, text string, of func(stop) [2]string) {
	w.t.Helper()
	n := 0
	if lang == "en" {
		n = 1
	}
	want := ""
	if w.blind && !w.dark {
		want = of(stops[w.why])[n]
	}
	for _, one := range stops {
		if sentence := of(one)[n]; sentence != "" && strings.Contains(text, sentence) != (sentence == want) {
			w.t.Errorf("%s, %s, %s should say %q, and not %q: %s", step.name, lang, path, want, sentence, text)
		}
	}
}

// dated fails unless a page that does not know the state says when it was last known.
func (w *walk) dated(step walked, lang, path, text string) {
	w.t.Helper()
	says := map[string]string{"ko": "마지막으로 읽은 때: ", "en": "Last reading: "}[lang]
	_, at, is := strings.Cut(text, says)
	if want := w.known.In(time.FixedZone("KST", 9*60*60)).Format("2006-01-02 15:04:05 MST"); is != (w.blind || w.dark) || is && !strings.HasPrefix(at, want) {
		w.t.Errorf("%s, %s, %s: the state was known last at %s: %s", step.name, lang, path, want, text)
	}
}

func onPage(s stop) [2]string    { return s.page }
func toSupport(s stop) [2]string { return s.support }
func atMark(s stop) [2]string    { return s.mark }
