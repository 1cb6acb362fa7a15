//go:build !race || soak

package console_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A walk takes a campaign through its states. It has the facts that pages and answers must show: it knows them because it causes them.
type walk struct {
	*house
	t           *testing.T
	away        *lostLedger
	far         farGate // the gate that decides; nil if the ledger does
	record      func()  // waits until the ledger has what the gate issued
	now         time.Time
	terms       firstcome.Terms
	held        map[string]int64 // the number of each holder
	issued      int64            // the highest number
	unrecorded  int64            // how many of them are on their way to the ledger
	lags        bool             // if true, nothing is recorded
	opened      time.Time        // zero if it has not opened
	soldOut     time.Time        // when nothing was left for the first time
	latest      time.Time        // when the last coupon was issued
	closed      time.Time
	given       map[string]firstcome.Coupon // of each who ever had one, as it was issued
	gone        string                      // a user whose coupon was voided
	goneAt      time.Time
	line        line
	state       string    // what a newcomer's claim gets, in the words of the pages; empty if unknown
	retired     bool      // the gate has forgotten the campaign
	blind, dark bool      // whether the gate decides nothing; whether the ledger does not answer
	known       time.Time // when a page last knew the state
	why         error     // why the gate decides nothing, or nil if it decides
}

// A walked step leads to a state.
type walked struct {
	name string
	do   func(w *walk)
	// gets is the outcome of a newcomer's claim in the state; zero if it has none.
	gets firstcome.Outcome
	// where says which campaigns have this state.
	where where
}

// A where is a kind of campaigns.
type where uint8

const (
	everywhere where = iota
	far              // decided by a gate beside the ledger
	real             // decided by a real gate beside the ledger
	byHand           // decided by a gate beside the ledger, and recorded by the test
)

// stateWords are the words of the pages for the outcome of a newcomer's claim.
var stateWords = map[firstcome.Outcome][2]string{
	firstcome.NotOpen: {"오픈 전", "not open yet"}, firstcome.Issued: {"진행 중", "open"}, firstcome.Waiting: {"진행 중", "open"}, firstcome.SoldOut: {"소진", "sold out"},
	firstcome.Paused: {"일시중지", "paused"}, firstcome.Closed: {"종료", "closed"}, 0: {"알 수 없음", "unknown"},
}

// steps are the states of a campaign without a line. Each step begins after the newcomer's claim of the step before.
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
	{"paused", func(w *walk) { w.turn(firstcome.ChangePause) }, firstcome.Paused, everywhere},
	{"issued directly in the pause", func(w *walk) { w.direct("another guest") }, firstcome.Paused, everywhere},
	{"resumed", func(w *walk) { w.turn(firstcome.ChangeResume) }, firstcome.Issued, everywhere},
	{"the gate away", func(w *walk) { w.blinds(errGateAway) }, 0, far},
	{"recovering", func(w *walk) { w.blinds(errRecovering) }, 0, far},
	{"being rebuilt", func(w *walk) { w.blinds(errMending) }, 0, far},
	{"lost", func(w *walk) { w.blinds(errGone) }, 0, far},
	{"the ledger older", func(w *walk) { w.blinds(errRolledBack) }, 0, far},
	{"the gate older", func(w *walk) { w.blinds(errStaleEpoch) }, 0, far},
	{"the ledger away", func(w *walk) { w.blinds(nil); w.darkens(true) }, 0, everywhere},
	{"the gate away, too", func(w *walk) { w.blinds(errGateAway) }, 0, far},
	{"all back", func(w *walk) { w.blinds(nil); w.darkens(false) }, firstcome.Issued, everywhere},
	{"closed", func(w *walk) { w.turn(firstcome.ChangeClose) }, firstcome.Closed, everywhere},
	{"retired", (*walk).retire, firstcome.Closed, far},
}

// neverOpened are the states of a campaign that is closed before it opens.
var neverOpened = []walked{
	{"before it opens", func(*walk) {}, firstcome.NotOpen, everywhere},
	{"paused before it opens", func(w *walk) { w.turn(firstcome.ChangePause) }, firstcome.NotOpen, everywhere},
	{"closed before it opens", func(w *walk) { w.turn(firstcome.ChangeClose) }, firstcome.Closed, everywhere},
	{"closed, at the time at which it was to open", func(w *walk) { w.passes(2 * time.Hour) }, firstcome.Closed, everywhere},
	{"retired", (*walk).retire, firstcome.Closed, far},
}

// TestWhatIsSaidIsTrueInEveryState reads every page and answer about a campaign in every state, and then claims for a newcomer. The claim must get
// what they said, and each figure and instant must be what the test itself caused. Campaigns with a line have steps of their own.
func TestWhatIsSaidIsTrueInEveryState(t *testing.T) {
	t.Parallel()
	walks := map[string]func(t *testing.T, change func(*house)) *house{
		"the ledger decides, SQLite": func(t *testing.T, change func(*house)) *house { return openHouse(t, change) },
		"a gate decides":             func(t *testing.T, change func(*house)) *house { return openFar(t, change) },
	}
	for kind, ledger := range services.Ledgers { // the databases whose servers this run has
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
		t.Run(name+", with prizes", func(t *testing.T) {
			walkThrough(t, open, firstcome.Terms{Quantity: 4, Answer: firstcome.Recorded, Prizes: []firstcome.Prize{{ID: "drink", Name: "음료", Quantity: 2}, {ID: "rest", Name: "무료 배송"}}}, steps)
		})
		t.Run(name+", closed before it opens", func(t *testing.T) {
			walkThrough(t, open, firstcome.Terms{Quantity: 4, Answer: firstcome.Recorded}, neverOpened)
		})
		t.Run(name+", with a line", func(t *testing.T) { walkThrough(t, open, lined, linedSteps) })
		t.Run(name+", with a line that stands by", func(t *testing.T) { walkThrough(t, open, standing, standingSteps) })
	}
}

func walkThrough(t *testing.T, open func(t *testing.T, change func(*house)) *house, terms firstcome.Terms, steps []walked) {
	t.Parallel()
	w := &walk{t: t, now: stage.Epoch, terms: terms, held: map[string]int64{}, given: map[string]firstcome.Coupon{}}
	w.house = open(t, func(h *house) {
		h.stands(stage.Epoch)
		h.config.Watcher.Clock = h.clock
		if h.gate != nil {
			h.gate.Clock = h.clock
		}
		w.away = &lostLedger{Reads: h.ledger.Reads}
		h.config.Ledger, h.config.Watcher.Ledger = w.away, w.away
		h.config.Watcher.Nodes.(*figures.Board).Rows = lostNodes{h.ledger.Deployment, w.away}
		if w.far, w.record = h.remote, h.record; h.gate != nil {
			w.far, w.record = h.gate, func() { h.gate.Record(t, h.ledger.Recorder, "spring") }
		}
		if w.far != nil {
			h.config.Journal.Lag = w.lag
		}
	})
	w.terms.Name, w.terms.OpensAt = "추석", w.now.Add(time.Hour)
	w.create()
	for n, step := range steps {
		if step.where == far && w.far == nil || step.where == real && w.remote == nil || step.where == byHand && w.gate == nil {
			continue
		}
		step.do(w)
		w.passes(time.Second) // by then, returned stock has left its quarantine
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

// create creates the campaign. If a gate beside the ledger decides, it reads what pages say before the creation has reached that gate.
func (w *walk) create() {
	w.t.Helper()
	if w.far == nil {
		stage.Must(w.t, stage.Err(w.config.Operator.Create(w.t.Context(), "a test", "spring", w.terms)))
		return
	}
	stage.Must(w.t, w.ledger.Campaigns.Create(w.t.Context(), "a test", "spring", w.terms))
	for _, lang := range []string{"ko", "en"} {
		b := w.browser()
		b.lang = lang
		w.creating(b)
	}
	stage.Must(w.t, gate.NewChanger(w.ledger.Campaigns, w.over, nil).Finish(w.t.Context(), "spring", 1))
}

// lag implements console.Journal.Lag: it asks the ledger for the campaigns, and then the gate.
func (w *walk) lag(ctx context.Context) ([]record.Lag, error) {
	if _, err := w.away.Campaign(ctx, "spring"); err != nil {
		return nil, err
	}
	if err := w.eyes.shut(); errors.Is(err, errGateAway) { // a gate that decides nothing can still count its journal
		return nil, err
	}
	if w.unrecorded == 0 {
		return nil, nil
	}
	return []record.Lag{{Campaign: "spring", Numbers: w.unrecorded, Oldest: time.Second}}, nil
}

// passes lets time pass.
func (w *walk) passes(d time.Duration) {
	w.now = w.now.Add(d)
	w.stands(w.now)
}

// takes claims for a user who gets a coupon.
func (w *walk) takes(user string) { w.newcomer(user, firstcome.Issued) }

// newcomer claims, and fails unless the outcome is the expected one.
func (w *walk) newcomer(user string, want firstcome.Outcome) {
	w.t.Helper()
	decisions, err := w.decides.Claim(w.t.Context(), "spring", []firstcome.UserID{firstcome.UserID(user)}) // past the answers that a node repeats from memory
	stage.Must(w.t, err)
	d := decisions[0]
	if d.Outcome != want {
		w.t.Fatalf("a newcomer's claim gets %v, and what was said is %v", d.Outcome, want)
	}
	switch d.Outcome {
	case firstcome.Waiting:
		w.opens()
		w.line.join(user, d.Place, w.now)
	case firstcome.Issued:
		w.opens()
		w.gets(user, d.Coupon)
	}
}

// opens notes the first decision of the open campaign.
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
	w.held[user], w.given[user], w.latest = c.Number, c, w.now
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
		w.line.end("sold_out", w.now)
	}
}

// records records everything that was issued.
func (w *walk) records() {
	w.t.Helper()
	if w.lags, w.unrecorded = false, 0; w.far != nil {
		w.record()
	}
}

// direct issues a coupon to a user directly.
func (w *walk) direct(user string) {
	w.t.Helper()
	decisions, err := w.decides.Issue(w.t.Context(), gate.Order{Actor: "a test", Reason: "고객 요청"}, "spring", []firstcome.UserID{firstcome.UserID(user)})
	stage.Must(w.t, err)
	if decisions[0].Outcome != firstcome.Issued {
		w.t.Fatalf("a direct issue is answered %v", decisions[0].Outcome)
	}
	w.gets(user, decisions[0].Coupon)
}

// restocked reports whether coupons came back after the first sell-out.
func (w *walk) restocked() bool {
	return int64(len(w.held)) < w.terms.Quantity || w.latest.After(w.soldOut)
}

// fillsUp claims until nothing is left.
func (w *walk) fillsUp() {
	w.t.Helper()
	for n := 1; int64(len(w.held)) < w.terms.Quantity; n++ {
		w.takes(fmt.Sprint("b", n))
	}
}

func (w *walk) void(user string) {
	stage.Must(w.t, stage.Err(w.config.Operator.Void(w.t.Context(), "a test", "spring", w.held[user], "고객 요청")))
	delete(w.held, user)
	w.gone, w.goneAt = user, w.now
}

// sets changes the terms.
func (w *walk) sets(edit func(*firstcome.Terms)) {
	_, err := w.config.Operator.SetTerms(w.t.Context(), "a test", "spring", 0, edit)
	stage.Must(w.t, err)
	edit(&w.terms)
}

func (w *walk) raise(to int64) { w.sets(func(t *firstcome.Terms) { t.Quantity = to }) }

func (w *walk) turn(to firstcome.ChangeKind) {
	stage.Must(w.t, stage.Err(w.config.Operator.ChangeState(w.t.Context(), "a test", "spring", 0, to)))
	if to == firstcome.ChangeClose {
		w.closed = w.now
		w.line.end("closed", w.now)
	}
}

// blinds makes the gate decide nothing for a reason, or decide again if why is nil. It does nothing if the ledger decides. Nodes know every reason
// except errGateAway.
func (w *walk) blinds(why error) {
	if w.far == nil {
		return
	}
	w.blind, w.why = why != nil, why
	w.mender.breaks("spring", nil)
	if why != errGateAway { //nolint:errorlint // this very one
		w.mender.breaks("spring", why)
	}
	if w.refused() { // here the gate itself answers
		why = nil
	}
	w.eyes.why.Store(&why)
}

// darkens makes the ledger unavailable, or brings it back.
func (w *walk) darkens(away bool) {
	w.dark = away
	w.away.away.Store(away)
}

// retire makes the gate forget the campaign once the ledger knows how its line ended.
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
	w.retired = true
}
