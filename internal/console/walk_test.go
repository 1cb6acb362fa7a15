//go:build !race || soak

package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A walk is a campaign that goes through its states, with the facts that the pages must show: the test caused them, so it knows them.
type walk struct {
	*house
	t           *testing.T
	away        *lostLedger
	far         farGate // that decides; nil if the ledger does
	record      func()  // brings to the ledger what it issued
	eyes        *eyes
	now         time.Time
	quantity    int64
	held        map[string]int64 // who holds which number
	issued      int64            // numbers
	opened      time.Time        // zero if it did not
	soldOut     time.Time        // when nothing was left for the first time
	closed      time.Time
	gone        string // who had a coupon that was voided
	state       string // what a newcomer's claim gets, as pages call it; empty if unknown
	blind, dark bool   // the gate does not answer; the ledger does not
}

// A walked step leads to a state.
type walked struct {
	name string
	do   func(w *walk)
	// gets is what a newcomer's claim gets in the state; zero means no outcome.
	gets firstcome.Outcome
	// far reports that only a campaign at a gate beside the ledger has this state.
	far bool
}

// words are what pages call what a newcomer's claim gets.
var stateWords = map[firstcome.Outcome][2]string{
	firstcome.NotOpen: {"오픈 전", "not open yet"}, firstcome.Issued: {"진행 중", "open"}, firstcome.SoldOut: {"소진", "sold out"},
	firstcome.Paused: {"일시중지", "paused"}, firstcome.Closed: {"종료", "closed"}, 0: {"알 수 없음", "unknown"},
}

// steps are every state of a campaign without a line. Each begins where the claim of the newcomer before has left it.
var steps = []walked{
	{"before it opens", func(*walk) {}, firstcome.NotOpen, false},
	{"issued directly before it opens", func(w *walk) { w.direct("guest") }, firstcome.NotOpen, false},
	{"open", func(w *walk) { w.passes(time.Hour) }, firstcome.Issued, false},
	{"sold out", func(w *walk) { w.takes("b"); w.takes("c") }, firstcome.SoldOut, false},
	{"voided since", func(w *walk) { w.void("b") }, firstcome.Issued, false},
	{"sold out again", func(*walk) {}, firstcome.SoldOut, false},
	{"raised since", func(w *walk) { w.raise(8) }, firstcome.Issued, false},
	{"paused", func(w *walk) { w.turn(ledger.Pause) }, firstcome.Paused, false},
	{"issued directly in the pause", func(w *walk) { w.direct("another guest") }, firstcome.Paused, false},
	{"resumed", func(w *walk) { w.turn(ledger.Resume) }, firstcome.Issued, false},
	{"the gate away", func(w *walk) { w.blinds(errAway) }, 0, true},
	{"recovering", func(w *walk) { w.blinds(flow.ErrUnverified) }, 0, true},
	{"the ledger away", func(w *walk) { w.blinds(nil); w.dark = true; w.away.away.Store(true) }, 0, false},
	{"all back", func(w *walk) { w.dark = false; w.away.away.Store(false) }, firstcome.Issued, false},
	{"closed", func(w *walk) { w.turn(ledger.Close) }, firstcome.Closed, false},
	{"retired", (*walk).retire, firstcome.Closed, true},
}

// TestWhatEveryPageSaysIsTrueInEveryState reads every page of a campaign in every state, and then has a newcomer claim: what the pages said is
// what the claim gets, and each figure and instant is what the test itself did.
func TestWhatEveryPageSaysIsTrueInEveryState(t *testing.T) {
	walks := map[string]func(t *testing.T, change func(*house)) *house{
		"the ledger decides, SQLite": func(t *testing.T, change func(*house)) *house { return openHouse(t, change) },
		"a gate decides":             func(t *testing.T, change func(*house)) *house { return openFar(t, change) },
	}
	for kind, ledger := range services.Ledgers { // the databases that this run has servers of
		if kind != services.SQLite {
			walks["the ledger decides, "+kind] = func(t *testing.T, change func(*house)) *house { return openHouseOn(t, ledger(t), change) }
		}
	}
	for name, open := range realGates {
		walks[name] = open
	}
	for name, open := range walks {
		for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
			t.Run(name+", answered when "+string(answer), func(t *testing.T) { walkThrough(t, open, answer) })
		}
	}
}

func walkThrough(t *testing.T, open func(t *testing.T, change func(*house)) *house, answer firstcome.AnswerWhen) {
	w := &walk{t: t, now: stage.Epoch, quantity: 4, held: map[string]int64{}}
	w.house = open(t, func(h *house) {
		h.now = func() time.Time { return w.now }
		if h.gate != nil {
			h.gate.Clock = h.now
		}
		w.away, w.eyes = &lostLedger{Ledger: h.ledger}, &eyes{Gate: h.config.Watcher.Gate}
		h.config.Ledger, h.config.Watcher.Ledger = w.away, w.away
		if w.far, w.record = h.remote, h.record; h.gate != nil {
			w.far, w.record = h.gate, func() { h.gate.Record(t, h.ledger, "spring") }
		}
		if w.far != nil {
			h.config.Watcher.Gate = w.eyes
		}
	})
	terms := firstcome.Terms{Name: "추석", Quantity: w.quantity, Answer: answer, OpensAt: w.now.Add(time.Hour)}
	stage.Must(t, stage.Err(w.config.Operator.Create(t.Context(), "a test", "spring", terms)))
	for n, step := range steps {
		if step.far && w.far == nil {
			continue
		}
		step.do(w)
		w.passes(time.Second) // returned stock cools no longer
		w.state = stateWords[step.gets][1]
		t.Logf("%s: a newcomer gets %v", step.name, step.gets)
		w.readAll(step)
		if !w.dark && !w.blind {
			w.newcomer(fmt.Sprint("newcomer-", n), step.gets)
		}
	}
}

// passes has time pass.
func (w *walk) passes(d time.Duration) { w.now = w.now.Add(d) }

// takes claims for a user who gets a coupon.
func (w *walk) takes(user string) { w.newcomer(user, firstcome.Issued) }

// newcomer claims, and holds the outcome against what the pages said.
func (w *walk) newcomer(user string, want firstcome.Outcome) {
	w.t.Helper()
	var decides flow.Gate = w.ledger // without what a node repeats for a while
	if w.far != nil {
		decides = &flow.Over{RemoteGate: w.far, Book: w.ledger}
	}
	decisions, err := decides.Claim(w.t.Context(), "spring", []firstcome.UserID{firstcome.UserID(user)})
	stage.Must(w.t, err)
	d := decisions[0]
	if d.Outcome != want {
		w.t.Fatalf("a newcomer's claim gets %v, and the pages said %v", d.Outcome, want)
	}
	if d.Outcome != firstcome.Issued {
		return
	}
	if w.far != nil {
		w.record()
	}
	w.issued++
	w.held[user] = d.Coupon.Number
	if w.opened.IsZero() {
		w.opened = w.now
	}
	w.fills()
}

// direct issues a coupon to a user, whether the campaign is open or not.
func (w *walk) direct(user string) {
	w.t.Helper()
	var issues flow.Direct = w.ledger
	if w.far != nil {
		issues = &flow.Over{RemoteGate: w.far, Book: w.ledger}
	}
	decisions, err := issues.Issue(w.t.Context(), flow.Order{Actor: "a test", Reason: "고객 요청"}, "spring", []firstcome.UserID{firstcome.UserID(user)})
	stage.Must(w.t, err)
	if decisions[0].Outcome != firstcome.Issued {
		w.t.Fatalf("a direct issue is answered %v", decisions[0].Outcome)
	}
	if w.far != nil {
		w.record()
	}
	w.issued++
	w.held[user] = decisions[0].Coupon.Number
	w.fills()
}

// fills notes when nothing is left for the first time.
func (w *walk) fills() {
	if int64(len(w.held)) >= w.quantity && w.soldOut.IsZero() {
		w.soldOut = w.now
	}
}

func (w *walk) void(user string) {
	stage.Must(w.t, stage.Err(w.config.Operator.Void(w.t.Context(), "a test", "spring", w.held[user], "고객 요청")))
	delete(w.held, user)
	w.gone = user
}

func (w *walk) raise(to int64) {
	_, err := w.config.Operator.SetTerms(w.t.Context(), "a test", "spring", 0, func(t *firstcome.Terms) { t.Quantity = to })
	stage.Must(w.t, err)
	w.quantity = to
}

func (w *walk) turn(to ledger.Switch) {
	stage.Must(w.t, stage.Err(w.config.Operator.Switch(w.t.Context(), "a test", "spring", 0, to)))
	if to == ledger.Close {
		w.closed = w.now
	}
}

// blinds lets readings of the gate's state fail with an error, until it is called with nil. Where the ledger decides, nothing happens.
func (w *walk) blinds(why error) {
	w.blind = why != nil && w.far != nil
	w.eyes.closed.Store(&why)
}

// eyes read the state of a gate, unless they are closed.
type eyes struct {
	figures.Gate
	closed atomic.Pointer[error]
}

func (e *eyes) State(ctx context.Context, id firstcome.CampaignID) (flow.GateState, error) {
	if why := e.closed.Load(); why != nil && *why != nil {
		return flow.GateState{}, *why
	}
	return e.Gate.State(ctx, id)
}

func (w *walk) retire() {
	state, err := w.far.State(w.t.Context(), "spring")
	stage.Must(w.t, err)
	if retired, err := w.ledger.Retire(w.t.Context(), "spring", state, 0); err != nil || !retired {
		w.t.Fatal("it is not retired", err)
	}
	stage.Must(w.t, w.far.Retire(w.t.Context(), "spring"))
}

var (
	badge = regexp.MustCompile(`<span class="state ([a-z_]*)">([^<]*)</span>`)
	count = regexp.MustCompile(`<p class="count"><strong[^>]*>([^<]*)</strong> <span>/ ([^ ]*) `)
	// english is a sentence in English: words of our own names and of the field stand alone in Korean ones.
	english = regexp.MustCompile(`[A-Za-z]{2,}[,:]? [a-z]{2,}[,:]? [a-z]{2,}`)
	command = regexp.MustCompile(`firstcome [a-z]+ [a-z]+`)
	times   = regexp.MustCompile(`<time [^>]*>([^<]*)</time>`)
)

// readAll reads every page in both languages.
func (w *walk) readAll(step walked) {
	w.t.Helper()
	for n, lang := range []string{"ko", "en"} {
		b := w.browser()
		b.lang = lang
		word, say := stateWords[step.gets][n], func(ko, en string) string { return []string{ko, en}[n] }
		for _, path := range []string{"", "/campaigns/spring", "/campaigns/spring/steer", "/campaigns/spring/terms", "/campaigns/spring/coupons", "/campaigns/spring/proof", "/campaigns/spring/report"} {
			got := b.get("/console" + path)
			if w.dark && path != "" && path != "/campaigns/spring" {
				if got.status != http.StatusServiceUnavailable || !strings.Contains(got.text(), say("지금은 알 수 없습니다", "This cannot be told now")) {
					w.t.Errorf("%s, %s, %q: %d %s", step.name, lang, path, got.status, got.text())
				}
				continue
			}
			if w.dark && path == "" {
				continue // the list is read of the ledger itself, which is there
			}
			if got.status != http.StatusOK {
				w.t.Errorf("%s, %s, %q: %d %s", step.name, lang, path, got.status, got.text())
				continue
			}
			if said := english.FindString(command.ReplaceAllString(got.text(), "")); n == 0 && said != "" {
				w.t.Errorf("%s: the Korean page %q says %q", step.name, path, said)
			}
			found := badge.FindStringSubmatch(got.body)
			if found == nil || found[2] != word {
				w.t.Errorf("%s, %s, %q says %q, and a newcomer gets %q", step.name, lang, path, found, word)
			}
			w.figures(step, lang, path, got)
		}
		if w.dark {
			continue
		}
		w.customers(step, b, say)
	}
}

// figures holds the figures and instants of a page against what the test did.
func (w *walk) figures(step walked, lang, path string, got shown) {
	w.t.Helper()
	unknown := w.blind || w.dark
	known := func(text string) string {
		if unknown {
			return "–"
		}
		return text
	}
	if found := count.FindStringSubmatch(got.body); found != nil {
		want := []string{known(fmt.Sprint(len(w.held))), fmt.Sprint(w.quantity)}
		if w.dark {
			want[1] = "–"
		}
		if !slices.Equal(found[1:3], want) {
			w.t.Errorf("%s, %s, %q shows %q in force of the quantity, and should show %q", step.name, lang, path, found[1:3], want)
		}
	}
	exact := func(at time.Time) string {
		if at.IsZero() {
			return "–"
		}
		return at.In(time.FixedZone("Seoul", 9*60*60)).Format("2006-01-02 15:04:05")
	}
	text := times.ReplaceAllString(got.body, "$1")
	shows := func(name, before, want string) {
		w.t.Helper()
		_, rest, ok := strings.Cut(text, before)
		is, _, _ := strings.Cut(rest, "<")
		is, _, _ = strings.Cut(is, " · ")
		is, _, _ = strings.Cut(is, ".")
		if !ok || is != want {
			w.t.Errorf("%s, %s, %q shows %s as %q, and should show %q", step.name, lang, path, name, is, want)
		}
	}
	ko := lang == "ko"
	pick := func(a, b string) string {
		if ko {
			return a
		}
		return b
	}
	switch path {
	case "/campaigns/spring/report":
		shows("the opening", "<dt>"+pick("오픈", "Opened")+"</dt><dd>", known(exact(w.opened)))
		shows("the first sell-out", "<dt>"+pick("처음 소진", "First sold out")+"</dt><dd>", known(exact(w.soldOut)))
		shows("the close", "<dt>"+pick("종료", "Closed")+"</dt><dd>", exact(w.closed))
		shows("the numbers issued", "<dt>"+pick("발급한 번호", "Numbers issued")+"</dt><dd>", known(fmt.Sprint(w.issued)))
	case "/campaigns/spring":
		left := known(fmt.Sprint(w.quantity - int64(len(w.held))))
		shows("what is left", `<dd data-f="left">`, left)
		if !w.soldOut.IsZero() && !unknown {
			shows("the first sell-out", pick("처음 소진 ", "first sold out "), exact(w.soldOut))
		} else if strings.Contains(got.text(), pick("처음 소진", "first sold out")) {
			w.t.Errorf("%s, %s: Live says when it sold out: %s", step.name, lang, got.text())
		}
	}
}

// customers holds what support may tell a customer against what is so: of one who has a coupon, of one whose coupon was voided, and of one who has none.
func (w *walk) customers(step walked, b *visitor, say func(ko, en string) string) {
	w.t.Helper()
	chances := map[firstcome.Outcome]string{
		firstcome.NotOpen: say("에 열립니다.", "It opens at "),
		firstcome.Issued:  fmt.Sprintf(say("지금 %d장이 남아 있습니다.", "Coupons left now: %d."), w.quantity-int64(len(w.held))),
		firstcome.SoldOut: say("쿠폰은 모두 나갔습니다. 처음 소진된 시각은 ", "All coupons are gone. They were gone for the first time at ") + say(exactly(w.soldOut)+"입니다.", exactly(w.soldOut)+"."),
		firstcome.Paused:  say("지금은 잠시 멈춰 있습니다.", "It is paused."),
		firstcome.Closed:  say("쿠폰은 마감되었습니다.", "It is closed."),
		0:                 say("지금 응답하지 않아", "does not answer now"),
	}
	got := b.get("/console/customer?campaign=spring&user_id=nobody")
	for gets, sentence := range chances {
		if strings.Contains(got.text(), sentence) != (gets == step.gets) {
			w.t.Errorf("%s: a newcomer gets %v, and support tells a customer without a coupon: %s", step.name, step.gets, got.text())
		}
	}
	for user, number := range w.held {
		got := b.get("/console/customer?campaign=spring&user_id=" + url.QueryEscape(user)).text()
		if want := fmt.Sprintf(say("쿠폰(번호 %d)을 받으셨습니다", "You got number %d of"), number); !strings.Contains(got, want) {
			w.t.Errorf("%s: %s holds number %d, and support is told: %s", step.name, user, number, got)
		}
		break
	}
	if w.gone != "" {
		got := b.get("/console/customer?campaign=spring&user_id=" + w.gone).text()
		if want := say("에 회수되었습니다.", "was taken back at "); !strings.Contains(got, want) {
			w.t.Errorf("%s: the coupon of %s was voided, and support is told: %s", step.name, w.gone, got)
		}
	}
}

// exactly is how pages write an instant to the millisecond.
func exactly(at time.Time) string {
	if at.IsZero() {
		return "–"
	}
	return at.In(time.FixedZone("Seoul", 9*60*60)).Format("2006-01-02 15:04:05.000")
}
