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
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// late claims a coupon that is not recorded yet.
func (h *house) late(id firstcome.CampaignID, user firstcome.UserID) firstcome.Coupon {
	h.t.Helper()
	d, err := h.issuer.Claim(context.Background(), id, user)
	stage.Must(h.t, err)
	return d.Coupon
}

// TestACodeThatTheLedgerDoesNotHaveMayBeOnItsWay: the page must not deny a coupon that only the gate has, in the search and in the list.
func TestACodeThatTheLedgerDoesNotHaveMayBeOnItsWay(t *testing.T) {
	h := openFar(t)
	id := h.campaign("spring", 10)
	code := url.QueryEscape(h.late(id, "mina").Code)
	b := h.browser()
	const none, got = "No coupon has this code. Check the code.", "You got “"
	const coming = "This is the code of number 1 of “추석 spring”. Its coupon is not in the ledger yet. Look again in a moment, or look for the user id."
	b.finds("campaign=spring&code="+code, 200, []string{coming}, none, got, "There is no coupon")
	b.finds("code="+code, 200, []string{coming}, none, got)
	b.lists("code="+code, coming)
	b.finds("user_id=mina", 200, []string{"The ledger has no coupon in force of this user. One that was just issued is recorded a moment later."}, "There is no coupon")
	b.finds("campaign=spring&user_id=mina", 200, []string{"Your coupon “추석 spring” is being recorded now. We will tell you more in a moment.", "is on its way to the ledger"}, got)
	notGiven := url.QueryEscape(stage.Secret().Code(id, 2))
	b.finds("campaign=spring&code="+notGiven, 200, []string{none}, got)
	b.lists("code="+notGiven, none)
	h.gate.Set(func() { h.gate.States = func(firstcome.CampaignID, *gate.State) error { return errAway } })
	b.finds("campaign=spring&code="+code, 200, []string{coming}, none, got)
	h.gate.Set(func() { h.gate.States = nil })
	h.gate.Record(t, h.ledger.Recorder, id)
	b.finds("campaign=spring&code="+code, 200, []string{got}, none)
	b.finds("user_id=mina", 200, []string{"in force"}, "has no coupon in force")
	b.finds("campaign=spring&code=0123456789ABCDEF", 200, []string{none}, "On their way", got)
	b.lists("code=0123456789ABCDEF", "There are no coupons to show.")
}

// lists fails unless the list of spring's coupons says why it shows none.
func (b *visitor) lists(query, why string) {
	b.h.t.Helper()
	if got := b.get("/console/campaigns/spring/coupons?" + query); got.status != http.StatusOK || !strings.Contains(got.text(), why) {
		b.h.t.Errorf("the list with %s does not say %q: %d %s", query, why, got.status, got.text())
	}
}

// TestACodeWithoutACouponIsExplained in both languages: a dead letter, a voided one, a lost number, and a campaign of another secret.
func TestACodeWithoutACouponIsExplained(t *testing.T) {
	h := openFar(t)
	id, db := h.campaign("spring", 10), services.Beside(t, h.file)
	h.campaign("autumn", 10)
	stage.Must(t, stage.Err(db.Exec(`UPDATE campaigns SET secret = 'another' WHERE id = 'autumn'`)))
	h.bury(id, "mina", "number_taken")
	code := func(number int64) string { return stage.Secret().Code(id, number) }
	says := func(number int64, ko, en string) {
		t.Helper()
		for lang, want := range map[string]string{
			"ko": fmt.Sprintf("이 코드는 ‘추석 spring’의 번호 %d입니다. ", number) + ko, "en": fmt.Sprintf("This is the code of number %d of “추석 spring”. ", number) + en,
		} {
			b := h.browser()
			b.lang = lang
			b.finds("q="+code(number), 200, []string{want})
			b.lists("code="+code(number), want)
		}
	}
	says(1, "원장이 쿠폰을 받지 않아 기록 실패 건으로 남아 있습니다. 담당자에게 확인을 요청하세요.", "The ledger refused its coupon, and the dead letter is open: ask an operator.")
	stage.Must(t, h.ledger.Recorder.VoidLetter(t.Context(), "a test", 1, "gone"))
	says(1, "원장이 쿠폰을 받지 않았고, 기록 실패 건은 회수로 처리되었습니다.", "The ledger refused its coupon, and an operator voided the dead letter.")
	stage.Must(t, stage.Err(db.Exec(`INSERT INTO lost VALUES ('spring', 2, 3, 2)`)))
	says(3, "이 번호는 장애로 유실되어 쿠폰이 없습니다.", "The number was lost in a failure, so it has no coupon.")
	h.late(id, "joon")
	stage.Must(t, stage.Err(db.Exec(`DELETE FROM lost`)))
	says(2, "쿠폰이 아직 원장에 없습니다. 잠시 뒤 다시 찾거나 고객 ID로 찾아보세요.", "Its coupon is not in the ledger yet. Look again in a moment, or look for the user id.")
	for lang, want := range map[string][3]string{
		"ko": {"이 코드의 쿠폰이 없습니다. 코드를 다시 확인하세요.", "코드 비밀키가 이 노드와 다른 캠페인은 찾아보지 않았습니다: 1개.", "이 노드의 코드 비밀키가 캠페인의 것과 달라 코드로 찾을 수 없습니다. 고객 ID나 번호로 찾아보세요."},
		"en": {"No coupon has this code. Check the code.", "Campaigns that have another code secret than this node were not searched: 1.", "This node has another code secret than the campaign, so it finds no code. Look for the user id or a number."},
	} {
		b := h.browser()
		b.lang = lang
		b.finds("code=0123456789ABCDEF", 200, []string{want[0] + " " + want[1]})
		if got := b.get("/console/campaigns/autumn/coupons?code=0123456789ABCDEF"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text(), want[2]) {
			t.Errorf("the list with another secret: %d %s", got.status, got.text())
		}
	}
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
