package console_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// A lostLedger answers until it is away.
type lostLedger struct {
	*ledger.Reads
	away atomic.Bool
}

var errAway = errors.New("no route to the database")

func (l *lostLedger) Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error) {
	if l.away.Load() {
		return ledger.Status{}, errAway
	}
	return l.Reads.Campaign(ctx, id)
}

func (l *lostLedger) Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]ledger.Status, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Reads.Campaigns(ctx, after, limit)
}

func (l *lostLedger) List(ctx context.Context, f ledger.Listing) ([]ledger.Status, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Reads.List(ctx, f)
}

// lostNodes are the nodes table of a lostLedger.
type lostNodes struct {
	*ledger.Deployment
	of *lostLedger
}

func (n lostNodes) Nodes(ctx context.Context) ([]ledger.NodeRow, error) {
	if n.of.away.Load() {
		return nil, errAway
	}
	return n.Deployment.Nodes(ctx)
}

func (l *lostLedger) DeadLetters(ctx context.Context, p ledger.Letters) ([]ledger.DeadLetter, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Reads.DeadLetters(ctx, p)
}

func TestWhileTheLedgerIsAwayPagesShowWhatTheNodeKnows(t *testing.T) {
	var away *lostLedger
	h := openFar(t, func(h *house) {
		away = &lostLedger{Reads: h.ledger.Reads}
		h.config.Ledger, h.config.Watcher.Ledger = away, away
		h.config.Journal.Recorder = func() record.Stats { return record.Stats{Breaker: "open", Retries: 12} }
	})
	h.claim(h.campaign("spring", 10), "mina")
	b := h.browser()
	for path, texts := range map[string][2]string{ // what a page says, and what it says while the ledger is away
		"/campaigns/spring":                      {"1 / 10 issued", "spring unknown View for a wall The ledger does not answer. This page shows only what this node knows."},
		"/recording":                             {"There is no dead letter.", "The ledger does not answer, so dead letters and lost numbers are not known now."},
		"/recording?campaign=spring":             {"Breaker open", "Breaker open"},
		"/campaigns/spring/coupons":              {"in force", "This is not known now"},
		"/customer?user_id=mina&campaign=spring": {"You got “추석 spring” at ", "This is not known now"},
	} {
		away.away.Store(false)
		if got := b.get("/console" + path); got.status != http.StatusOK || !strings.Contains(got.text(), texts[0]) {
			t.Errorf("%s: %d, no %q in %s", path, got.status, texts[0], got.text())
		}
		away.away.Store(true)
		got := b.get("/console" + path)
		if !strings.Contains(got.text(), texts[1]) || (got.status == http.StatusOK) == strings.Contains(texts[1], "This is not known") {
			t.Errorf("%s, with the ledger away: %d, no %q in %s", path, got.status, texts[1], got.text())
		}
		if strings.Contains(got.text(), "There is no dead letter") || strings.Contains(got.body, "<button value=") {
			t.Errorf("%s, with the ledger away: %s", path, got.text())
		}
	}
	if got := b.get("/console/campaigns/spring/events"); got.status != http.StatusOK {
		t.Errorf("the stream is refused with the ledger away: %d, so that no browser comes again", got.status)
	}
}

func TestWhatIsUnknownIsNoNumber(t *testing.T) {
	h := openFar(t)
	h.claim(h.campaign("spring", 10), "mina")
	b := h.browser()
	if got := b.get("/console").text(); !strings.Contains(got, "1 / 10") {
		t.Errorf("no figures in %s", got)
	}
	h.gate.Set(func() {
		h.gate.States = func(_ firstcome.CampaignID, _ *gate.State) error { return errAway }
	})
	for path, want := range map[string]string{
		"": "unknown", "/campaigns/spring": "The gate does not answer. Last reading: ", "/campaigns/spring/coupons": "The gate does not answer. Whether more are on their way",
	} {
		got := b.get("/console" + path).text()
		if !strings.Contains(got, want) || strings.Contains(got, "1 / 10") || strings.Contains(got, "0 / 10") || path == "" && !strings.Contains(got, "– / 10") {
			t.Errorf("%q, with the gate away: no %q in %s", path, want, got)
		}
	}
}

func TestADeadLetterIsNotOnItsWay(t *testing.T) {
	h := openFar(t)
	id := h.campaign("spring", 10)
	h.claim(id, "mina")
	b := h.browser()
	shows := func(live, coupons string) {
		t.Helper()
		if got := b.get("/console/campaigns/spring").text(); !strings.Contains(got, "Unrecorded "+live+" ") {
			t.Errorf("unrecorded is not %s: %s", live, got)
		}
		if got := b.get("/console/campaigns/spring/coupons").text(); strings.Contains(got, "not listed yet") != (coupons != "") || !strings.Contains(got, coupons) {
			t.Errorf("%q is not said: %s", coupons, got)
		}
	}
	shows("0", "")
	stage.Must(t, stage.Err(h.issuer.Claim(t.Context(), id, "jun")))
	shows("1", "On their way to the ledger, and not listed yet: 1")
	h.bury(id, "sua", "the ledger refuses it")
	shows("0", "")
}

// An erring row has an error that an operator returns, the sentence about it, and words that the page must never show.
type erring struct {
	err         error
	status      int
	head        string
	said, never string
}

// errings has every error with a sentence of its own.
var errings = []erring{
	{firstcome.ErrPending, 503, "An earlier change is on its way", "Nothing was changed.", ""},
	{errors.Join(gate.ErrUnfinished, firstcome.ErrPending), 503, "An earlier change is on its way", "Nothing was changed.", ""},
	{gate.ErrUnfinished, 503, "It will take effect", "The change is in the ledger", "Nothing was changed."},
	{errors.Join(gate.ErrUnfinished, firstcome.ErrGateMismatch), 503, "It will take effect", "another node has to bring it to the gate", "Nothing was changed."},
	{errors.Join(gate.ErrUnfinished, firstcome.ErrGateUnavailable), 503, "It will take effect", "The change is in the ledger", "Nothing was changed."},
	{errors.Join(gate.ErrUnfinished, firstcome.ErrLineLogAway), 503, "It will take effect", "The change is in the ledger", "Nothing was changed."},
	{firstcome.ErrGateMismatch, 503, "Not by this node", "this node has another gate", ""},
	{gate.ErrUnnamed, 503, "Not by this node", "Redis has no name as a gate", ""},
	{firstcome.ErrNotRecorded, 503, "It is not in the ledger yet", "Nothing was changed.", ""},
	{issue.ErrNotRecordedYet, 503, "It is not in the ledger yet", "The issue was decided", "Nothing was changed."},
	{issue.ErrUnrecorded, 503, "The ledger did not take the coupon", "It was issued and is not recorded.", "Nothing was changed."},
	{record.ErrRefused, 409, "This cannot be done now", "the ledger refuses it", ""},
	{firstcome.ErrBelowInForce, 409, "This cannot be done now", "below the number of coupons in force", ""},
	{firstcome.ErrClosed, 409, "This cannot be done now", "closed by an operator", ""},
	{firstcome.ErrAlreadyVoided, 409, "This cannot be done now", "voided before", ""},
	{firstcome.ErrResolvedLetter, 409, "This cannot be done now", "replayed or voided before", ""},
	{firstcome.ErrCampaignExists, 409, "This cannot be done now", "a campaign with this id exists", ""},
	{operate.ErrNoRemoteGate, 409, "This cannot be done now", "there is no gate to rebuild", ""},
	{gate.ErrRetired, 409, "This cannot be done now", "its gate has forgotten it", ""},
	{&recovery.NoRoomError{Bytes: 1_500 << 20}, 503, "Redis lacks memory", "about 1,500 MiB more", ""},
	{recovery.ErrSuperseded, 503, "The gate is being rebuilt", "Nothing was changed.", ""},
	{fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, record.ErrRebuilding), 503, "The gate is being rebuilt", "Nothing was changed.", "not verified"},
	{fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified), 503, "The gate is not verified yet", "Nothing was changed.", ""},
	{gate.ErrGone, 503, "The gate has lost this campaign", "Nothing was changed.", ""},
	{&gate.LedgerRolledBackError{Campaign: "spring"}, 503, "The ledger is older than the gate", "Nothing was changed.", "Try again"},
	{&gate.StaleEpochError{Campaign: "spring"}, 503, "The gate is older than the ledger", "Nothing was changed.", "Try again"},
	{firstcome.ErrLineLogAway, 503, "Kafka, which has the copies of the lines, does not answer", "Nothing was changed.", ""},
	{firstcome.ErrLineLogGone, 503, "Kafka lacks records of the line", "firstcome gate rebuild ID --without-line-log", "Try again"},
	{firstcome.ErrStale, 412, "The campaign has changed", "Nothing was changed.", ""},
	{firstcome.ErrNoCampaign, 404, "Not found", "Check the address.", ""},
	{firstcome.ErrNoCoupon, 404, "Not found", "Check the address.", ""},
	{firstcome.ErrNoDeadLetter, 404, "Not found", "Check the address.", ""},
	{firstcome.ErrTooMany, 503, "The server is busy", "Nothing was changed.", ""},
	{firstcome.ErrGateUnavailable, 503, "The gate cannot decide now", "Nothing was changed.", ""},
	{firstcome.ErrGateFull, 503, "The gate is full", "Nothing was changed.", ""},
	{firstcome.ErrLineFull, 503, "The line is full", "Nothing was changed.", ""},
	{firstcome.ErrStopping, 503, "This node is stopping", "Nothing was changed.", ""},
	{&firstcome.FieldError{Field: "quantity", Reason: "must be a whole number"}, 422, "This value is not accepted", "Nothing was changed.", ""},
}

// TestEachErrorHasWords makes pages fail with each error of an operator, both on reading and on changing. A page calls nothing unknown that the error
// tells.
func TestEachErrorHasWords(t *testing.T) {
	var failed *failing
	b := openFar(t, func(h *house) {
		failed = &failing{Reads: h.ledger.Reads}
		h.config.Ledger, h.config.Deployment = failed, failingDesk{h.ledger.Deployment, failed}
	}).browser()
	const unread, undone = "This is not known now", "It is not known whether the change was made"
	key := url.Values{"name": {"shop"}, "role": {"viewer"}}
	for _, row := range errings {
		failed.err = fmt.Errorf("a change: %w", row.err)
		for method, got := range map[string]shown{"read": b.get("/console/campaigns/spring/steer"), "changed": b.post("/console/keys", key)} {
			text := html.UnescapeString(got.text())
			if got.status != row.status || !strings.Contains(text, row.head) || !strings.Contains(text, row.said) || row.never != "" && strings.Contains(text, row.never) || strings.Contains(text, unread) || strings.Contains(text, undone) {
				t.Errorf("%s, %v: %d %s", method, row.err, got.status, text)
			}
		}
	}
	failed.err = errAway
	if got := b.get("/console/campaigns/spring/steer"); got.status != 503 || !strings.Contains(got.text(), unread+" The ledger or the gate could not be read") {
		t.Errorf("%d %s", got.status, got.text())
	}
	// An admin who believes that repeating is safe would create a second key.
	got := b.post("/console/keys", key)
	if text := got.text(); got.status != 503 || !strings.Contains(text, undone) || strings.Contains(text, "safe") {
		t.Errorf("%d %s", got.status, text)
	}
	failed.panics = true
	if got := b.get("/console/campaigns/spring/steer"); got.status != 500 || !strings.Contains(got.text(), "This page failed Nothing was changed.") || strings.Contains(got.text(), "The ledger or the gate") {
		t.Errorf("a panic: %d %s", got.status, got.text())
	}
	if got := b.post("/console/keys", key); got.status != 500 || !strings.Contains(got.text(), "This page failed, and it is not known whether the change was made Go back") {
		t.Errorf("a panic: %d %s", got.status, got.text())
	}
}

// A failing ledger returns one error for all campaigns.
type failing struct {
	*ledger.Reads
	err    error
	panics bool
}

// fails returns the error, or panics with it.
func (f *failing) fails() error {
	if f.panics {
		panic(f.err)
	}
	return f.err
}

// A failingDesk returns the error of a failing ledger for new keys.
type failingDesk struct {
	*ledger.Deployment
	of *failing
}

func (f failingDesk) AddKey(context.Context, string, firstcome.Key) error { return f.of.fails() }

func (f *failing) Campaign(context.Context, firstcome.CampaignID) (ledger.Status, error) {
	return ledger.Status{}, f.fails()
}
