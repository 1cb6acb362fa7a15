package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

var customerQuote = regexp.MustCompile(`data-copy>([^<]*)<`)

// tells fails unless support is told exactly these sentences by a look-up.
func (b *visitor) tells(query string, want ...string) shown {
	b.h.t.Helper()
	got := b.get("/console/customer?" + query)
	var told []string
	for _, found := range customerQuote.FindAllStringSubmatch(got.body, -1) {
		told = append(told, html.UnescapeString(found[1]))
	}
	if diff := cmp.Diff(want, told); diff != "" {
		b.h.t.Errorf("%s: %d (-so +told):\n%s%s", query, got.status, diff, got.text())
	}
	return got
}

// TestOneBoxTakesAUserACodeOrACampaign also for what might be two of them, and remembers the campaign.
func TestOneBoxTakesAUserACodeOrACampaign(t *testing.T) {
	now := time.Date(2026, 11, 23, 1, 0, 3, 0, time.UTC)
	h := openHouse(t, func(h *house) { h.stands(now) })
	for _, id := range []firstcome.CampaignID{"spring", "autumn"} {
		h.claim(h.campaign(string(id), 9), "mina")
	}
	h.claim("autumn", "ABCDEFGH01234567", "winter")
	h.campaign("winter", 9)
	b := h.browser()
	const at = " at 10:00:03 am on 23 November (Seoul time). Your coupon code is "
	coupon := func(id firstcome.CampaignID, number int64) string {
		return "You got “추석 " + string(id) + "”" + at + stage.Secret().Code(id, number) + "."
	}
	b.tells("q=mina", coupon("autumn", 1), coupon("spring", 1)) // all campaigns
	code := stage.Secret().Code("spring", 1)
	pasted := url.QueryEscape(" " + code[:4] + "–" + strings.ToLower(code[4:8]) + " " + code[8:] + "\u200b")
	got := b.tells("q="+pasted, coupon("spring", 1), coupon("autumn", 1))
	if !strings.Contains(got.text(), "Coupons of other campaigns") {
		t.Errorf("the other coupons have no heading: %s", got.text())
	}
	if got := b.get("/console/customer"); !strings.Contains(got.body, `name="campaign" value="spring"`) {
		t.Errorf("the campaign is not remembered: %s", got.body)
	}
	b.tells("q=nobody", "You have no coupon of “추석 spring”. Coupons left now: 8. You may claim one. Claims that get no coupon leave no record, so we cannot tell when you claimed.")
	b.tells("q="+stage.Secret().Code("autumn", 1), coupon("autumn", 1), coupon("spring", 1)) // not of the remembered one
	b.tells("q="+url.QueryEscape("추석 winter"), "About “추석 winter”: Coupons left now: 9. You may claim one.")
	if got := b.tells("q=winter", "About “추석 winter”: Coupons left now: 9. You may claim one."); !strings.Contains(html.UnescapeString(got.text()), "Look for a user with the id “winter”") {
		t.Errorf("no way to the user of the same id: %s", got.text())
	}
	b.tells("user_id=winter&campaign=autumn", coupon("autumn", 3))
	b.tells("q=ABCDEFGH01234567&campaign=", coupon("autumn", 2)) // a user's id that could be a code
	if got := b.tells("q=mina", coupon("autumn", 1), coupon("spring", 1)); !strings.Contains(got.body, `name="campaign" value=""`) {
		t.Errorf("the campaign is not forgotten: %s", got.body)
	}
	for _, query := range []string{"q=0123456789ABCDEF", "q=0123456789ABCDEF&campaign=autumn"} {
		if got := b.tells(query); got.status != http.StatusOK || !strings.Contains(got.text(), "No coupon has this code. Check the code.") {
			t.Errorf("%s: %d %s", query, got.status, got.text())
		}
	}
	if got := b.get("/console/customer?q=%01"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `aria-invalid="true"`) {
		t.Errorf("no id: %d %s", got.status, got.text())
	}
}

// TestACouponIsToldWithItsBenefitAndItsExpiry by the terms under which it was issued. A benefit for machines is left out.
func TestACouponIsToldWithItsBenefitAndItsExpiry(t *testing.T) {
	now := time.Date(2026, 11, 23, 1, 0, 3, 0, time.UTC)
	h := openHouse(t, func(h *house) { h.stands(now) })
	for id, terms := range map[firstcome.CampaignID]firstcome.Terms{
		"a": {Name: "겨울 쿠폰", Benefit: json.RawMessage(`"10% 할인."`), ValidFor: 30*24*time.Hour + 20*time.Second},
		"b": {Name: "배송비", Benefit: json.RawMessage(`{"off": 10}`), ValidUntil: time.Date(2026, 12, 31, 15, 0, 0, 0, time.UTC)},
		"c": {Name: "Coupon", ValidUntil: time.Date(2027, 1, 31, 15, 0, 0, 0, time.UTC)},
	} {
		terms.Quantity, terms.Answer = 9, firstcome.Recorded
		stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", id, terms)))
		h.claim(id, "mina")
		_, err := h.config.Operator.SetTerms(t.Context(), "a test", id, 0, func(t *firstcome.Terms) { t.ValidFor, t.ValidUntil, t.Benefit = 0, time.Time{}, nil })
		stage.Must(t, err)
	}
	code := func(id firstcome.CampaignID) string { return stage.Secret().Code(id, 1) }
	for lang, want := range map[string][]string{
		"ko": {
			"고객님께서는 11월 23일 오전 10시 0분 3초에 ‘겨울 쿠폰’을 받으셨습니다. 쿠폰 코드는 " + code("a") + "이며, 12월 23일 오전 10시까지 사용하실 수 있습니다. 혜택은 ‘10% 할인’입니다.",
			"고객님께서는 11월 23일 오전 10시 0분 3초에 ‘배송비’를 받으셨습니다. 쿠폰 코드는 " + code("b") + "이며, 12월 31일까지 사용하실 수 있습니다.",
			"고객님께서는 11월 23일 오전 10시 0분 3초에 ‘Coupon’을(를) 받으셨습니다. 쿠폰 코드는 " + code("c") + "이며, 2027년 1월 31일까지 사용하실 수 있습니다.",
		},
		"en": {
			"You got “겨울 쿠폰” at 10:00:03 am on 23 November (Seoul time). Your coupon code is " + code("a") + ". You can use it until 10:00 am on 23 December (Seoul time). It is good for: 10% 할인.",
			"You got “배송비” at 10:00:03 am on 23 November (Seoul time). Your coupon code is " + code("b") + ". You can use it until the end of 31 December (Seoul time).",
			"You got “Coupon” at 10:00:03 am on 23 November (Seoul time). Your coupon code is " + code("c") + ". You can use it until the end of 31 January 2027 (Seoul time).",
		},
	} {
		b := h.browser()
		b.lang = lang
		b.tells("q=mina", want...)
	}
	h.stands(now.Add(31 * 24 * time.Hour))
	b := h.browser()
	if got := b.tells("q=mina&campaign=a", "You got “겨울 쿠폰” at 10:00:03 am on 23 November (Seoul time). Your coupon code is "+code("a")+". You could use it until 10:00 am on 23 December (Seoul time). It is good for: 10% 할인.",
		"You got “배송비” at 10:00:03 am on 23 November (Seoul time). Your coupon code is "+code("b")+". You can use it until the end of 31 December (Seoul time).",
		"You got “Coupon” at 10:00:03 am on 23 November (Seoul time). Your coupon code is "+code("c")+". You can use it until the end of 31 January 2027 (Seoul time)."); !strings.Contains(got.text(), "겨울 쿠폰 expired") {
		t.Errorf("it is not marked as expired: %s", got.text())
	}
	b.lang = "ko"
	if got := html.UnescapeString(b.get("/console/customer?q=mina&campaign=a").body); !strings.Contains(got, "이며, 사용 기한은 12월 23일 오전 10시까지였습니다. 혜택은") {
		t.Errorf("expired: %s", got)
	}
}

// TestABuriedCouponIsNotTold: the ledger refused it, and an operator decides what becomes of it.
func TestABuriedCouponIsNotTold(t *testing.T) {
	h := openFar(t)
	h.bury(h.campaign("spring", 9), "mina", "number_taken")
	b := h.browser()
	b.tells("q=mina&campaign=spring", "Your coupon “추석 spring” could not be recorded yet, and we are looking into it. We will tell you more once we know.")
}

// A lossy ledger's audit log has a lost coupon of each user.
type lossy struct {
	*ledger.Reads
	lost ledger.LogEntry
}

func (l *lossy) AuditLog(context.Context, ledger.LogFilter) ([]ledger.LogEntry, error) {
	return []ledger.LogEntry{l.lost}, nil
}

// TestALostCouponIsOwnedUpTo, with what the customer can do now.
func TestALostCouponIsOwnedUpTo(t *testing.T) {
	issued := time.Date(2026, 11, 23, 1, 0, 3, 0, time.UTC)
	l := &lossy{lost: ledger.LogEntry{
		At: issued.Add(time.Minute), Actor: "recovery", Action: ledger.CouponLost, Campaign: "spring", User: "mina", Number: 7,
		Detail: json.RawMessage(fmt.Sprintf(`{"code": "0123456789ABCDEF", "issued_at": %d}`, issued.UnixMicro())),
	}}
	h := openHouse(t, func(h *house) {
		h.stands(issued.Add(time.Hour))
		l.Reads = h.ledger.Reads
		h.config.Ledger = l
	})
	h.campaign("spring", 0)
	b := h.browser()
	got := b.tells("q=mina&campaign=spring", "“추석 spring”, which you were told at 10:00:03 am on 23 November (Seoul time), was lost because of a failure on our side. We are sorry. It sold out at 11:00:03 am on 23 November (Seoul time).")
	if !strings.Contains(got.text(), "was lost: the gate that gave it was one whose epoch had ended. The customer may claim again 2026-11-23 10:01:03.000 KST") {
		t.Errorf("when it was lost: %s", got.text())
	}
	b.lang = "ko"
	b.tells("q=mina&campaign=spring", "고객님께서 11월 23일 오전 10시 0분 3초에 안내받으신 ‘추석 spring’은(는) 저희 장애로 유실되었습니다. 죄송합니다. 쿠폰은 11월 23일 오전 11시 0분 3초에 모두 소진되었습니다.")
}

// TestWhoWasInLineIsToldHowItEnded whatever the gate knows. The walk has the states that its gates reach.
func TestWhoWasInLineIsToldHowItEnded(t *testing.T) {
	now := time.Date(2026, 11, 23, 1, 0, 3, 0, time.UTC)
	h := openFar(t, func(h *house) { h.stands(now); h.gate.Clock = h.clock })
	h.paced("drop", 9)
	h.claim("drop", "direct")
	stage.Must(t, stage.Err(h.decides.Issue(t.Context(), gate.Order{Actor: "a test"}, "drop", []firstcome.UserID{"direct"})))
	h.gate.Record(t, h.ledger.Recorder, "drop")
	b := h.browser()
	if got := b.get("/console/customer?q=direct&campaign=drop").text(); !strings.Contains(got, "got a coupon before their turn, so their ticket ended 2026-11-23 10:00:03.000 KST") {
		t.Errorf("whose ticket a direct issue ended: %s", got)
	}
	stays := map[firstcome.UserID][]gate.Stay{}
	h.gate.Set(func() { h.gate.Course("drop").Stays = stays })
	was, ends := firstcome.Ticket{Generation: 1, Number: 7}, "You may join the line now."
	for _, one := range []struct {
		stay       gate.Stay
		told, what string
	}{
		{gate.Stay{Ticket: was, Ended: "lost", EndedAt: now}, "The line was lost at 10:00:03 am on 23 November (Seoul time) because of a failure on our side, before your turn. We are sorry.", "the line was lost"},
		{gate.Stay{Ticket: was, Ended: gate.StayOver}, "You left it.", "left the line"},
		{gate.Stay{Ticket: was, Ended: gate.StayEnded}, "That has ended, and we have no record of how.", "the ticket ended"},
	} {
		h.gate.Set(func() { stays["sua"] = []gate.Stay{one.stay} })
		if got := b.tells("q=sua&campaign=drop", "You were in line for “줄 drop” with ticket 7. "+one.told+" "+ends); !strings.Contains(got.text(), one.what) {
			t.Errorf("%s: no %q in %s", one.stay.Ended, one.what, got.text())
		}
	}
}

// TestACampaignThatSoldOutAgainIsSaidToHaveFirstSoldOut to customers, on the list, on Live and in the report. The gate knows only the first sell-out.
func TestACampaignThatSoldOutAgainIsSaidToHaveFirstSoldOut(t *testing.T) {
	now := time.Date(2026, 11, 23, 1, 0, 3, 0, time.UTC)
	h := openHouse(t, func(h *house) { h.stands(now) })
	h.claim(h.campaign("spring", 2), "a", "b")
	sees := func(first bool, told string) {
		t.Helper()
		b := h.browser()
		b.tells("q=late&campaign=spring", "You have no coupon of “추석 spring”. "+told+" Claims that get no coupon leave no record, so we cannot tell when you claimed.")
		for path, texts := range map[string][2]string{
			"/console":                         {"sold out 2026-11-23", "first sold out 2026-11-23"},
			"/console/campaigns/spring":        {"Sold out at", "First sold out at"},
			"/console/campaigns/spring/report": {"It sold out after", "It first sold out after"},
		} {
			if got := b.get(path).text(); strings.Contains(got, texts[1]) != first || !first && !strings.Contains(got, texts[0]) {
				t.Errorf("%s: it first sold out is %v: %s", path, first, got)
			}
		}
	}
	sees(false, "It sold out at 10:00:03 am on 23 November (Seoul time).")
	raise := func(to int64) {
		h.stands(now.Add(time.Hour))
		stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "a test", "spring", 0, func(terms *firstcome.Terms) { terms.Quantity = to })))
	}
	raise(3)
	h.claim("spring", "c")
	sees(true, "It first sold out at 10:00:03 am on 23 November (Seoul time), and no coupon is left now.")
	stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", "spring", 0, firstcome.ChangeClose)))
	sees(true, "It first sold out at 10:00:03 am on 23 November (Seoul time) and closed at 11:00:03 am on 23 November (Seoul time).")
}
