package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// A lostLedger answers until it is away.
type lostLedger struct {
	*ledger.Ledger
	away atomic.Bool
}

var errAway = errors.New("no route to the database")

func (l *lostLedger) Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error) {
	if l.away.Load() {
		return ledger.Status{}, errAway
	}
	return l.Ledger.Campaign(ctx, id)
}

func (l *lostLedger) Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]ledger.Status, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Ledger.Campaigns(ctx, after, limit)
}

func (l *lostLedger) List(ctx context.Context, f ledger.Listing) ([]ledger.Status, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Ledger.List(ctx, f)
}

func (l *lostLedger) Nodes(ctx context.Context) ([]ledger.NodeRow, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Ledger.Nodes(ctx)
}

func (l *lostLedger) DeadLetters(ctx context.Context, p ledger.Letters) ([]ledger.DeadLetter, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Ledger.DeadLetters(ctx, p)
}

func TestWhileTheLedgerIsAwayPagesShowWhatTheNodeKnows(t *testing.T) {
	var away *lostLedger
	h := openFar(t, func(h *house) {
		away = &lostLedger{Ledger: h.ledger}
		h.config.Ledger, h.config.Watcher.Ledger = away, away
		h.config.Journal.Recorder = func() flow.RecorderStats { return flow.RecorderStats{Breaker: "open", Retries: 12} }
	})
	h.claim(h.campaign("spring", 10), "mina")
	b := h.browser()
	for path, texts := range map[string][2]string{ // what a page says, and what it says while the ledger is away
		"/campaigns/spring":                      {"1 / 10 issued", "spring unknown The ledger does not answer. What stands here is only what this node knows."},
		"/recording":                             {"There is no dead letter.", "The ledger does not answer, so nobody knows now of dead letters and lost numbers."},
		"/recording?campaign=spring":             {"Breaker open", "Breaker open"},
		"/campaigns/spring/coupons":              {"in force", "This cannot be told now"},
		"/customer?user_id=mina&campaign=spring": {"You got number 1", "This cannot be told now"},
	} {
		away.away.Store(false)
		if got := b.get("/console" + path); got.status != http.StatusOK || !strings.Contains(got.text(), texts[0]) {
			t.Errorf("%s: %d, no %q in %s", path, got.status, texts[0], got.text())
		}
		away.away.Store(true)
		got := b.get("/console" + path)
		if !strings.Contains(got.text(), texts[1]) || (got.status == http.StatusOK) == strings.Contains(texts[1], "cannot be told") {
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
		h.gate.States = func(_ firstcome.CampaignID, _ *flow.GateState) error { return errAway }
	})
	for path, want := range map[string]string{
		"": "unknown", "/campaigns/spring": "The gate does not answer, so nobody knows now how many are issued.", "/campaigns/spring/coupons": "The gate does not answer, so nobody knows whether more",
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

// TestEachErrorHasWords has a page fail with each error that an operator returns: what is known is said.
func TestEachErrorHasWords(t *testing.T) {
	var failed *failing
	b := openFar(t, func(h *house) {
		failed = &failing{Ledger: h.ledger}
		h.config.Ledger = failed
	}).browser()
	for _, row := range []struct {
		err    error
		status int
		want   string
	}{
		{firstcome.ErrPending, 503, "An earlier change is on its way"},
		{errors.Join(flow.ErrUnfinished, firstcome.ErrPending), 503, "An earlier change is on its way"},
		{flow.ErrUnfinished, 503, "It will take effect"},
		{firstcome.ErrGateMismatch, 503, "Not by this node"},
		{ledger.ErrUnnamedGate, 503, "Not by this node"},
		{firstcome.ErrNotRecorded, 503, "It is not in the ledger yet"},
		{flow.ErrRefused, 409, "This cannot be done now"},
		{firstcome.ErrBelowInForce, 409, "This cannot be done now"},
		{firstcome.ErrClosed, 409, "This cannot be done now"},
		{firstcome.ErrAlreadyVoided, 409, "This cannot be done now"},
		{firstcome.ErrResolvedLetter, 409, "This cannot be done now"},
		{firstcome.ErrStale, 412, "Somebody changed it meanwhile"},
		{firstcome.ErrNoCoupon, 404, "There is no such thing"},
		{firstcome.ErrTooMany, 503, "Too many requests at this moment"},
		{firstcome.ErrGateUnavailable, 503, "The gate cannot decide now"},
		{firstcome.ErrGateFull, 503, "The gate is full"},
		{firstcome.ErrLineFull, 503, "The line is full"},
		{firstcome.ErrStopping, 503, "This node is stopping"},
		{errAway, 503, "This cannot be told now"},
	} {
		failed.err = fmt.Errorf("a change: %w", row.err)
		got := b.get("/console/campaigns/spring/steer")
		if got.status != row.status || !strings.Contains(got.text(), row.want) {
			t.Errorf("%v: %d %s", row.err, got.status, got.text())
		}
	}
	// A key that was made all the same would be made twice by an admin who believes that repeating is safe.
	failed.err = errAway
	got := b.post("/console/keys", url.Values{"name": {"shop"}, "role": {"viewer"}})
	if text := got.text(); got.status != 503 || !strings.Contains(text, "It is not known whether this was done") || strings.Contains(text, "safe") {
		t.Errorf("%d %s", got.status, text)
	}
}

// A failing ledger has one error for all campaigns.
type failing struct {
	*ledger.Ledger
	err error
}

func (f *failing) AddKey(context.Context, string, firstcome.Key) error { return f.err }

func (f *failing) Campaign(context.Context, firstcome.CampaignID) (ledger.Status, error) {
	return ledger.Status{}, f.err
}
