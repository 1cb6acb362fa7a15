//go:build !race || soak

package console_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A walk is a campaign that goes through its states, with the facts that pages and answers must show: the test caused them, so it knows them.
type walk struct {
	*house
	t           *testing.T
	away        *lostLedger
	far         farGate // that decides; nil if the ledger does
	record      func()  // brings to the ledger what it issued
	now         time.Time
	terms       firstcome.Terms
	held        map[string]int64 // who holds which number
	issued      int64            // numbers
	unrecorded  int64            // of them, on their way to the ledger
	lags        bool             // nothing is recorded until it is false
	opened      time.Time        // zero if it did not
	soldOut     time.Time        // when nothing was left for the first time
	closed      time.Time
	gone        string // who had a coupon that was voided
	line        line
	state       string    // what a newcomer's claim gets, as pages call it; empty if unknown
	blind, dark bool      // the gate decides nothing; the ledger does not answer
	known       time.Time // when a page last knew the state
	why         error     // why it decides nothing, or nil if it decides
}

// A walked step leads to a state.
type walked struct {
	name string
	do   func(w *walk)
	// gets is what a newcomer's claim gets in the state; zero means no outcome.
	gets firstcome.Outcome
	// where are the campaigns that have this state.
	where where
}

// A where is a kind of campaigns.
type where uint8

const (
	everywhere where = iota
	far              // at a gate beside the ledger
	real             // at one that is no fake
	byHand           // at a gate beside the ledger whose coupons the test records
)

// stateWords are what pages call what a newcomer's claim gets.
var stateWords = map[firstcome.Outcome][2]string{
	firstcome.NotOpen: {"오픈 전", "not open yet"}, firstcome.Issued: {"진행 중", "open"}, firstcome.Waiting: {"진행 중", "open"}, firstcome.SoldOut: {"소진", "sold out"},
	firstcome.Paused: {"일시중지", "paused"}, firstcome.Closed: {"종료", "closed"}, 0: {"알 수 없음", "unknown"},
}

// steps are every state of a campaign without a line. Each begins where the claim of the newcomer before has left it.
var steps = []walked{
	{"before it opens", func(*walk) {}, firstcome.NotOpen, everywhere},
	{"issued directly before it opens", func(w *walk) { w.direct("guest") }, firstcome.NotOpen, everywhere},
	{"open", func(w *walk) { w.passes(time.Hour) }, firstcome.Issued, everywhere},
	{"not recorded yet", func(w *walk) { w.raise(5); w.lags = true; w.takes("late") }, firstcome.Issued, byHand},
	{"recorded", func(w *walk) { w.raise(6); w.records() }, firstcome.Issued, byHand},
	{"sold out", func(w *walk) { w.fillsUp() }, firstcome.SoldOut, everywhere},
	{"voided since", func(w *walk) { w.void("b1") }, firstcome.Issued, everywhere},
	{"sold out again", func(*walk) {}, firstcome.SoldOut, everywhere},
	{"raised since", func(w *walk) { w.raise(w.terms.Quantity + 4) }, firstcome.Issued, everywhere},
	{"paused", func(w *walk) { w.turn(ledger.Pause) }, firstcome.Paused, everywhere},
	{"issued directly in the pause", func(w *walk) { w.direct("another guest") }, firstcome.Paused, everywhere},
	{"resumed", func(w *walk) { w.turn(ledger.Resume) }, firstcome.Issued, everywhere},
	{"the gate away", func(w *walk) { w.blinds(errGateAway) }, 0, far},
	{"recovering", func(w *walk) { w.blinds(errRecovering) }, 0, far},
	{"being rebuilt", func(w *walk) { w.blinds(errMending) }, 0, far},
	{"lost", func(w *walk) { w.blinds(errGone) }, 0, far},
	{"the ledger older", func(w *walk) { w.blinds(errRolledBack) }, 0, far},
	{"the gate older", func(w *walk) { w.blinds(errStaleEpoch) }, 0, far},
	{"the ledger away", func(w *walk) { w.blinds(nil); w.darkens(true) }, 0, everywhere},
	{"the gate away, too", func(w *walk) { w.blinds(errGateAway) }, 0, far},
	{"all back", func(w *walk) { w.blinds(nil); w.darkens(false) }, firstcome.Issued, everywhere},
	{"closed", func(w *walk) { w.turn(ledger.Close) }, firstcome.Closed, everywhere},
	{"retired", (*walk).retire, firstcome.Closed, far},
}

// Why a gate decides nothing: it is away, its server began again, a node rebuilds it, it lost keys, its ledger was restored, and an address
// leads back to it.
var (
	errGateAway   = fmt.Errorf("%w: no route to the gate", firstcome.ErrGateUnavailable)
	errRecovering = fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified)
	errMending    = fmt.Errorf("%w: %w", errRecovering, record.ErrRebuilding)
	errGone       = fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrLost)
	errRolledBack = error(&gate.LedgerRolledBackError{Campaign: "spring"})
	errStaleEpoch = error(&gate.StaleEpochError{Campaign: "spring", Gate: 1, Ledger: 2})
)

// A stop is what is read of a gate that decides nothing.
type stop struct {
	state, code string    // in answers
	page        [2]string // on the pages of the campaign
	support     [2]string // as support tells it
	mark        [2]string // on the pages Recording and Health, where nodes know of it
}

// stops are those of each cause.
var stops = map[error]stop{
	errGateAway: {"unknown", "gate_unavailable", [2]string{"게이트가 응답하지 않습니다.", "The gate does not answer."}, [2]string{"지금 응답하지 않습니다.", "does not answer now"}, [2]string{}},
	errRecovering: {
		"unverified", "gate_unavailable",
		[2]string{"Redis가 다시 시작했거나 다른 서버가 맡았습니다.", "Redis restarted, or another server took over."},
		[2]string{"복구되는 중입니다.", "is recovering"},
		[2]string{"확인 안 됨", "unverified"},
	},
	errMending: {
		"unverified", "gate_unavailable",
		[2]string{"게이트를 원장에서 다시 만들고 있습니다.", "The gate is being rebuilt from the ledger."},
		[2]string{"복구되는 중입니다.", "is recovering"},
		[2]string{"다시 만드는 중", "being rebuilt"},
	},
	errGone: {
		"lost", "gate_unavailable",
		[2]string{"Redis가 비었거나 바뀌었거나 키가 유실되었습니다.", "Redis was emptied or replaced, or lost keys."},
		[2]string{"문제가 있습니다.", "is out of order"},
		[2]string{"Redis가 비었거나 바뀌었거나 키가 유실되었습니다. 이름이", "Redis was emptied or replaced, or lost keys. If"},
	},
	errRolledBack: {
		"ahead", "ledger_rolled_back",
		[2]string{"원장이 게이트보다 오래되었습니다.", "The ledger is older than the gate, as after a restored backup."},
		[2]string{"문제가 있습니다.", "is out of order"},
		[2]string{"원장이 더 오래됨", "the ledger is older"},
	},
	errStaleEpoch: {
		"behind", "stale_epoch",
		[2]string{"이 노드가 닿는 Redis의 에폭은 이미 끝났습니다.", "The epoch of the Redis that this node reaches has ended."},
		[2]string{"문제가 있습니다.", "is out of order"},
		[2]string{"게이트가 더 오래됨", "the gate is older"},
	},
}

// stopped wants a page to say why the gate decides nothing, and no other cause.
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

// dated wants a page that knows no state to say when it was known last.
func (w *walk) dated(step walked, lang, path, text string) {
	w.t.Helper()
	says := map[string]string{"ko": "마지막으로 읽은 때: ", "en": "Last reading: "}[lang]
	_, at, is := strings.Cut(text, says)
	if want := w.known.In(time.FixedZone("Seoul", 9*60*60)).Format("2006-01-02 15:04:05"); is != (w.blind || w.dark) || is && !strings.HasPrefix(at, want) {
		w.t.Errorf("%s, %s, %s: the state was known last at %s: %s", step.name, lang, path, want, text)
	}
}

func onPage(s stop) [2]string    { return s.page }
func toSupport(s stop) [2]string { return s.support }
func atMark(s stop) [2]string    { return s.mark }

// TestWhatIsSaidIsTrueInEveryState reads every page and answer of a campaign in every state, and then has a newcomer claim: what was said is
// what the claim gets, and each figure and instant is what the test itself did. Campaigns with a line take steps of their own.
func TestWhatIsSaidIsTrueInEveryState(t *testing.T) {
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
			t.Run(name+", answered when "+string(answer), func(t *testing.T) {
				walkThrough(t, open, firstcome.Terms{Quantity: 4, Answer: answer}, steps)
			})
		}
		t.Run(name+", with a line", func(t *testing.T) { walkThrough(t, open, lined, linedSteps) })
		t.Run(name+", with a line that stands by", func(t *testing.T) { walkThrough(t, open, standing, standingSteps) })
	}
}

func walkThrough(t *testing.T, open func(t *testing.T, change func(*house)) *house, terms firstcome.Terms, steps []walked) {
	w := &walk{t: t, now: stage.Epoch, terms: terms, held: map[string]int64{}}
	w.house = open(t, func(h *house) {
		h.stands(stage.Epoch)
		h.config.Watcher.Clock = h.clock
		if h.gate != nil {
			h.gate.Clock = h.clock
		}
		w.away = &lostLedger{Reads: h.ledger.Reads}
		h.config.Ledger, h.config.Watcher.Ledger = w.away, w.away
		h.config.Watcher.Nodes.(*figures.Board).Rows = lostNodes{h.ledger.Desk, w.away}
		if w.far, w.record = h.remote, h.record; h.gate != nil {
			w.far, w.record = h.gate, func() { h.gate.Record(t, h.ledger.Recorder, "spring") }
		}
		if w.far != nil {
			h.config.Journal.Lag = w.lag
		}
	})
	w.terms.Name, w.terms.OpensAt = "추석", w.now.Add(time.Hour)
	stage.Must(t, stage.Err(w.config.Operator.Create(t.Context(), "a test", "spring", w.terms)))
	for n, step := range steps {
		if step.where == far && w.far == nil || step.where == real && w.remote == nil || step.where == byHand && w.gate == nil {
			continue
		}
		step.do(w)
		w.passes(time.Second) // returned stock is quarantined no longer
		w.state = stateWords[step.gets][1]
		if !w.blind && !w.dark {
			w.known = w.now
		}
		t.Logf("%s: a newcomer gets %v, %d of %d are in force, %d wait", step.name, step.gets, len(w.held), w.terms.Quantity, len(w.line.waiting))
		w.readAll(step)
		node := w.node()
		node.reads(step)
		if !w.dark && !w.blind {
			node.refuses(step)
			w.newcomer(fmt.Sprint("newcomer-", n), step.gets)
		} else if !w.dark {
			node.has(step, "a newcomer claims", node.ask("POST", "/spring/claims", `{"user_id":"refused"}`), answer{"status": 503, "code": stops[w.why].code})
		}
	}
}

// lag returns what is on its way to the ledger, as console.Journal wants it: it asks the ledger which campaigns there are, and then the gate.
func (w *walk) lag(ctx context.Context) ([]record.Lag, error) {
	if _, err := w.away.Campaign(ctx, "spring"); err != nil {
		return nil, err
	}
	if err := w.eyes.shut(); errors.Is(err, errGateAway) { // who counts entries of a journal decides nothing
		return nil, err
	}
	if w.unrecorded == 0 {
		return nil, nil
	}
	return []record.Lag{{Campaign: "spring", Numbers: w.unrecorded, Oldest: time.Second}}, nil
}

// passes has time pass.
func (w *walk) passes(d time.Duration) {
	w.now = w.now.Add(d)
	w.stands(w.now)
}

// takes claims for a user who gets a coupon.
func (w *walk) takes(user string) { w.newcomer(user, firstcome.Issued) }

// newcomer claims, and holds the outcome against what was said.
func (w *walk) newcomer(user string, want firstcome.Outcome) {
	w.t.Helper()
	decisions, err := w.decides.Claim(w.t.Context(), "spring", []firstcome.UserID{firstcome.UserID(user)}) // without what a node repeats for a while
	stage.Must(w.t, err)
	d := decisions[0]
	if d.Outcome != want {
		w.t.Fatalf("a newcomer's claim gets %v, and what was said is %v", d.Outcome, want)
	}
	switch d.Outcome {
	case firstcome.Waiting:
		w.opens()
		w.line.join(user, d.Place)
	case firstcome.Issued:
		w.opens()
		w.gets(user, d.Coupon)
	}
}

// opens notes the first decision while the campaign is open.
func (w *walk) opens() {
	if w.opened.IsZero() {
		w.opened = w.now
	}
}

// gets notes that a user got a coupon.
func (w *walk) gets(user string, c firstcome.Coupon) {
	w.t.Helper()
	w.issued++
	if c.Number != w.issued {
		w.t.Fatalf("%s gets number %d, and the next is %d", user, c.Number, w.issued)
	}
	w.held[user] = c.Number
	if w.far != nil {
		w.unrecorded++
	}
	if !w.lags {
		w.records()
	}
	if int64(len(w.held)) < w.terms.Quantity {
		return
	}
	if w.soldOut.IsZero() {
		w.soldOut = w.now
	}
	if !w.terms.Waitlist {
		w.line.end("sold_out")
	}
}

// records brings to the ledger all that was issued.
func (w *walk) records() {
	w.t.Helper()
	if w.lags, w.unrecorded = false, 0; w.far != nil {
		w.record()
	}
}

// direct issues a coupon to a user, whether the campaign is open or not.
func (w *walk) direct(user string) {
	w.t.Helper()
	decisions, err := w.decides.Issue(w.t.Context(), gate.Order{Actor: "a test", Reason: "고객 요청"}, "spring", []firstcome.UserID{firstcome.UserID(user)})
	stage.Must(w.t, err)
	if decisions[0].Outcome != firstcome.Issued {
		w.t.Fatalf("a direct issue is answered %v", decisions[0].Outcome)
	}
	w.gets(user, decisions[0].Coupon)
}

// fillsUp has people claim until nothing is left.
func (w *walk) fillsUp() {
	w.t.Helper()
	for n := 1; int64(len(w.held)) < w.terms.Quantity; n++ {
		w.takes(fmt.Sprint("b", n))
	}
}

func (w *walk) void(user string) {
	stage.Must(w.t, stage.Err(w.config.Operator.Void(w.t.Context(), "a test", "spring", w.held[user], "고객 요청")))
	delete(w.held, user)
	w.gone = user
}

// sets changes the terms.
func (w *walk) sets(edit func(*firstcome.Terms)) {
	_, err := w.config.Operator.SetTerms(w.t.Context(), "a test", "spring", 0, edit)
	stage.Must(w.t, err)
	edit(&w.terms)
}

func (w *walk) raise(to int64) { w.sets(func(t *firstcome.Terms) { t.Quantity = to }) }

func (w *walk) turn(to ledger.Switch) {
	stage.Must(w.t, stage.Err(w.config.Operator.Switch(w.t.Context(), "a test", "spring", 0, to)))
	if to == ledger.Close {
		w.closed = w.now
		w.line.end("closed")
	}
}

// blinds shuts the eyes for a reason, until it is called with nil. Where the ledger decides, nothing happens. Nodes notice that a gate recovers.
func (w *walk) blinds(why error) {
	if w.far == nil {
		return
	}
	w.blind, w.why = why != nil, why
	w.mender.breaks("spring", nil)
	if why != errGateAway { //nolint:errorlint // this very one
		w.mender.breaks("spring", why)
	}
	if w.refused() { // the gate answers
		why = nil
	}
	w.eyes.why.Store(&why)
}

// darkens cuts the ledger off, or brings it back.
func (w *walk) darkens(away bool) {
	w.dark = away
	w.away.away.Store(away)
}

// retire has the gate forget the campaign, once the ledger knows how its line ended.
func (w *walk) retire() {
	stage.Await(w.t, "the ledger knows how the line ended", w.line.generation, func() (generation int64) {
		if state, err := w.ledger.Gate.LineOf(w.t.Context(), "spring"); err == nil && len(state.Past) > 0 {
			generation = state.Past[0].Generation
		}
		return generation
	})
	state, err := w.far.State(w.t.Context(), "spring")
	stage.Must(w.t, err)
	if retired, err := w.ledger.Epochs.Retire(w.t.Context(), "spring", state, 0); err != nil || !retired {
		w.t.Fatal("it is not retired", err)
	}
	stage.Must(w.t, w.far.Retire(w.t.Context(), "spring"))
}

var (
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
			if w.dark && path != "/campaigns/spring" {
				if got.status != http.StatusServiceUnavailable || !strings.Contains(got.text(), say("지금은 알 수 없습니다", "This is not known now")) {
					w.t.Errorf("%s, %s, %q: %d %s", step.name, lang, path, got.status, got.text())
				}
				continue
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
			if path == "/campaigns/spring/coupons" || path == "" || path == "/campaigns/spring" {
				w.stopped(step, lang, path, got.text(), onPage)
				w.dated(step, lang, path, got.text())
			}
			w.figures(step, lang, path, got)
			w.inLine(step, lang, path, got)
		}
		w.recording(step, b, say)
		w.health(step, b, say)
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
		want := []string{known(fmt.Sprint(len(w.held))), fmt.Sprint(w.terms.Quantity)}
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
		left := known(fmt.Sprint(w.terms.Quantity - int64(len(w.held))))
		shows("what is left", `<dd data-f="left">`, left)
		shows("what is unrecorded", `<dd data-f="unrecorded">`, known(fmt.Sprint(w.unrecorded)))
		if !w.soldOut.IsZero() && !unknown {
			shows("the first sell-out", pick("처음 소진 ", "first sold out "), exact(w.soldOut))
		} else if strings.Contains(got.text(), pick("처음 소진", "first sold out")) {
			w.t.Errorf("%s, %s: Live says when it sold out: %s", step.name, lang, got.text())
		}
	}
}

// customers holds what support may tell a customer against what is so: of one who has a coupon, of one whose coupon was voided, of one who
// waits, and of those who have nothing.
func (w *walk) customers(step walked, b *visitor, say func(ko, en string) string) {
	w.t.Helper()
	chances := map[firstcome.Outcome]string{
		firstcome.NotOpen: say("에 열립니다.", "It opens at "),
		firstcome.Issued:  fmt.Sprintf(say("지금 %d장이 남아 있습니다.", "Coupons left now: %d."), w.terms.Quantity-int64(len(w.held))),
		firstcome.Waiting: say("대기열에 들어오실 수 있습니다.", "You may join the line."),
		firstcome.SoldOut: say("쿠폰은 모두 나갔습니다. 처음 소진된 시각은 ", "All coupons are gone. They first sold out at ") + say(exactly(w.soldOut)+"입니다.", exactly(w.soldOut)+"."),
		firstcome.Paused:  say("지금은 잠시 멈춰 있습니다.", "It is paused."),
		firstcome.Closed:  say("쿠폰은 마감되었습니다.", "It is closed."),
		0:                 say("고객님이 받으셨는지 아직 알 수 없습니다.", "So we do not know yet whether you have a coupon."),
	}
	for _, user := range append(w.line.gone(), "nobody") {
		got := b.get("/console/customer?campaign=spring&user_id=" + user).text()
		for gets, sentence := range chances {
			if strings.Contains(got, sentence) != (gets == step.gets) {
				w.t.Errorf("%s: a newcomer gets %v, and support tells %s, who has no coupon: %s", step.name, step.gets, user, got)
			}
		}
		w.stopped(step, b.lang, "Customer", got, toSupport)
		w.stopped(step, b.lang, "Customer", got, onPage)
		w.dated(step, b.lang, "Customer", got)
	}
	if len(w.held) > 0 { // by code: the ledger finds it, once it has it
		newest := slices.Max(slices.Collect(maps.Values(w.held)))
		got := b.get("/console/customer?campaign=spring&code=" + stage.Secret().Code("spring", newest)).text()
		for recorded, want := range map[bool]string{
			true:  fmt.Sprintf(say("쿠폰(번호 %d)을 받으셨습니다", "You got number %d of"), newest),
			false: fmt.Sprintf(say("이 코드의 쿠폰이 없습니다. 원장으로 오고 있는 쿠폰이 %d장", "with this code. On their way to the ledger: %d."), w.unrecorded),
		} {
			if strings.Contains(got, want) != (recorded == (newest <= w.issued-w.unrecorded)) {
				w.t.Errorf("%s: of the code of number %d support is told: %s", step.name, newest, got)
			}
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
	w.waiters(step, b, say)
}

// exactly is how pages write an instant to the millisecond.
func exactly(at time.Time) string {
	if at.IsZero() {
		return "–"
	}
	return at.In(time.FixedZone("Seoul", 9*60*60)).Format("2006-01-02 15:04:05.000")
}
