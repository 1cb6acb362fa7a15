package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// late claims a coupon that is not recorded yet.
func (h *house) late(id firstcome.CampaignID, user firstcome.UserID) firstcome.Coupon {
	h.t.Helper()
	d, err := h.issuer.Claim(context.Background(), id, user)
	stage.Must(h.t, err)
	return d.Coupon
}

// TestACodeThatTheLedgerDoesNotHaveMayBeOnItsWay: only the ledger finds codes, so the page must not deny a coupon that only the gate has.
func TestACodeThatTheLedgerDoesNotHaveMayBeOnItsWay(t *testing.T) {
	h := openFar(t)
	id := h.campaign("spring", 10)
	code := url.QueryEscape(h.late(id, "mina").Code)
	b := h.browser()
	const none, check, got = "The ledger has no coupon with this code.", "Check the code, or choose another campaign.", "You got “"
	b.finds("campaign=spring&code="+code, 200, []string{none + " Searched: 추석 spring. On their way to the ledger: 1. Look again in a moment, or look for the user id."}, check, got, "There is no coupon")
	b.finds("user_id=mina", 200, []string{"The ledger has no coupon in force of this user. One that was just issued is recorded a moment later."}, "There is no coupon")
	b.finds("campaign=spring&user_id=mina", 200, []string{"Your coupon “추석 spring” is being recorded now. We will tell you more in a moment.", "is on its way to the ledger"}, got)
	h.gate.Set(func() { h.gate.States = func(firstcome.CampaignID, *gate.State) error { return errAway } })
	b.finds("campaign=spring&code="+code, 200, []string{none + " Searched: 추석 spring. Whether more are on their way to the ledger is not known now: look for the user id."}, check, got)
	h.gate.Set(func() { h.gate.States = nil })
	h.gate.Record(t, h.ledger.Recorder, id)
	b.finds("campaign=spring&code="+code, 200, []string{got}, none)
	b.finds("user_id=mina", 200, []string{"in force"}, "has no coupon in force")
	b.finds("campaign=spring&code=0123456789ABCDEF", 200, []string{none + " Searched: 추석 spring. " + check}, "On their way", got)
}

// An edited ledger returns a campaign after edit has changed it, and the given answer on whether this node decides it.
type edited struct {
	*ledger.Reads
	edit func(*ledger.Status)
	not  error
}

func (e *edited) Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error) {
	s, err := e.Reads.Campaign(ctx, id)
	if e.edit != nil {
		e.edit(&s)
	}
	return s, err
}

func (e *edited) Decides(c *ledger.Status) error {
	if e.not != nil {
		return e.not
	}
	return e.Reads.Decides(c)
}

// editing makes a house read its campaigns from an edited ledger.
func editing(e *edited) func(*house) {
	return func(h *house) {
		e.Reads = h.ledger.Reads
		h.config.Ledger, h.config.Watcher.Ledger = e, e
	}
}

// TestWhatTheAPIToldLastIsKnown: this node's pages have not read the campaign, and its API has decided claims of it.
func TestWhatTheAPIToldLastIsKnown(t *testing.T) {
	now := time.Date(2026, 11, 23, 1, 0, 3, 0, time.UTC)
	h := openFar(t, func(h *house) {
		h.stands(now)
		h.config.Watcher.Told = h.counter.Told
	})
	h.claim(h.campaign("spring", 10), "mina")
	h.gate.Set(func() { h.gate.States = func(firstcome.CampaignID, *gate.State) error { return errAway } })
	b := h.browser()
	const never = "Since it started, this node has not read it. The ledger has 1 of its coupons, of which 1 are in force."
	h.counter.Counts()
	b.finds("campaign=spring&q=jun", 200, []string{never}, "Last reading")
	h.counter.Claimed("spring", firstcome.AlreadyIssued, 0) // repeated from memory
	h.counter.Undecided(t.Context(), "spring", errAway)
	b.finds("campaign=spring&q=jun", 200, []string{never}, "Last reading")
	h.counter.Claimed("spring", firstcome.Issued, 0)
	h.stands(now.Add(time.Minute))
	b.finds("campaign=spring&q=jun", 200, []string{"Last reading: 2026-11-23 10:00:03 KST The ledger has 1 of its coupons, of which 1 are in force."}, "Since it started")
}

// TestANodeOfAnotherGateSaysSo: the gate answers, and another node decides.
func TestANodeOfAnotherGateSaysSo(t *testing.T) {
	for _, row := range []struct {
		not           error
		page, support string
	}{
		{firstcome.ErrGateMismatch, "This node has another gate or code secret than the campaign.", "The server that we look at does not decide"},
		{fmt.Errorf("%w: %w", gate.ErrGone, firstcome.ErrGateMismatch), "Redis was emptied or replaced, or lost keys.", "is out of order"},
	} {
		e := &edited{}
		h := openFar(t, editing(e))
		h.claim(h.campaign("spring", 10), "mina")
		e.not = row.not
		b := h.browser()
		for _, path := range []string{"", "/campaigns/spring", "/campaigns/spring/coupons"} {
			got := b.get("/console" + path)
			found := badge.FindStringSubmatch(got.body)
			if got.status != http.StatusOK || !strings.Contains(got.text(), row.page) || found == nil || found[2] != "unknown" || strings.Contains(got.text(), "does not answer") {
				t.Errorf("%q, %v: %d %q %s", path, row.not, got.status, found, got.text())
			}
		}
		b.finds("campaign=spring&user_id=jun", 200, []string{row.support, row.page + " Since it started, this node has not read it. The ledger has 1 of its coupons, of which 1 are in force."}, "You have no coupon", "does not answer")
		b.finds("campaign=spring&user_id=mina", 200, []string{"You got “"}, "does not answer")
		stage.Must(t, stage.Err(h.ledger.Campaigns.ChangeState(t.Context(), "a test", "spring", 0, firstcome.ChangeClose)))
		if found := badge.FindStringSubmatch(b.get("/console").body); found == nil || found[2] != "closed" {
			t.Errorf("closed, %v: the list says %q", row.not, found)
		}
		b.finds("campaign=spring&user_id=jun", 200, []string{row.support, row.page}, "You have no coupon", "It closed at")
	}
}

// TestACampaignThatHasNotReachedItsGateIsUnknown creates a campaign while its gate does not answer: claims are 503 until the gate has it.
func TestACampaignThatHasNotReachedItsGateIsUnknown(t *testing.T) {
	h := openFar(t)
	stage.Must(t, h.ledger.Campaigns.Create(t.Context(), "test", "spring", stage.Terms(10)))
	if _, err := h.issuer.Claim(t.Context(), "spring", "mina"); err == nil {
		t.Error("a claim is decided")
	}
	b := h.browser()
	const why = "Its creation has not reached the gate yet."
	for _, path := range []string{"", "/campaigns/spring", "/campaigns/spring/coupons"} {
		got := b.get("/console" + path)
		found := badge.FindStringSubmatch(got.body)
		if got.status != http.StatusOK || !strings.Contains(got.text(), why) || found == nil || found[2] != "unknown" {
			t.Errorf("%q: %d %q %s", path, got.status, found, got.text())
		}
	}
	b.finds("campaign=spring&user_id=mina", 200, []string{"“n” is not ready yet.", why}, "You may claim", "It is open")
	stage.Must(t, gate.NewChanger(h.ledger.Campaigns, h.over, nil).Finish(t.Context(), "spring", 0))
	if found := badge.FindStringSubmatch(b.get("/console").body); found == nil || found[2] != "open" {
		t.Errorf("at the gate the list says %q", found)
	}
}
