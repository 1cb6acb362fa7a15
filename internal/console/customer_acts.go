package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// reason returns the reason for a void, as typed in the form.
func (v *view) reason() (string, error) {
	reason := strings.TrimSpace(v.form.Get("reason"))
	if reason == "" || utf8.RuneCountInString(reason) > firstcome.MaxReason {
		return "", &firstcome.FieldError{Field: v.say("사유", "reason"), Reason: v.say("1자에서 %d자까지 적어 주세요", "must have 1 to %d characters", firstcome.MaxReason)}
	}
	return reason, nil
}

// issue issues a coupon directly to one user, even if the user had one before. The page shows the result.
func (c *customerHandlers) issue(v *view) error {
	get := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	page := customerPage{User: get("user_id"), Campaign: get("campaign"), Reason: get("reason")}
	page.Q = page.User
	outcome, err := c.issueTo(v, &page)
	if err != nil {
		return err
	}
	status := http.StatusConflict
	switch outcome {
	case 0:
		status = http.StatusUnprocessableEntity
	case firstcome.Issued:
		return v.redirectDone(Root+"/customer", url.Values{"campaign": {page.Campaign}, "user_id": {page.User}}, "issued")
	case firstcome.AlreadyIssued:
		page.NotIssued = v.say("발급하지 않았습니다. 고객이 이미 쿠폰을 가지고 있습니다.", "No coupon was issued: the customer holds one already.")
	case firstcome.SoldOut:
		page.NotIssued = v.say("발급하지 않았습니다. 남은 쿠폰이 없습니다. 먼저 수량을 늘리세요.", "No coupon was issued: none is left. Raise the quantity first.")
	default: // a direct issue has no other refusal
		page.NotIssued = v.say("발급하지 않았습니다. 캠페인이 마감되었습니다.", "No coupon was issued: the campaign is closed.")
	}
	if outcome != 0 {
		if err := c.lookUp(v, &page, readings{user: true}); err != nil {
			return err
		}
	}
	page.Campaigns = c.choices(v)
	return v.render(status, "customer", v.say("고객 조회", "Customer lookup"), page)
}

// issueTo issues the coupon that a form requests. If it cannot, the page says why, and the outcome is zero.
func (c *customerHandlers) issueTo(v *view, page *customerPage) (o firstcome.Outcome, err error) {
	user, err := firstcome.ParseUserID(page.User)
	if err != nil {
		page.NotIssued = v.say("고객 ID를 확인하세요. 발급하지 않았습니다.", "Check the user id: no coupon was issued.")
		return 0, nil
	}
	reason, err := v.reason()
	if err != nil {
		page.NotIssued = err.Error()
		return 0, nil
	}
	id, err := firstcome.ParseCampaignID(page.Campaign)
	var decisions []firstcome.Decision
	if err == nil {
		decisions, err = c.Operator.Issue(v.r.Context(), gate.Order{Actor: v.who.Actor, Reason: reason}, id, []firstcome.UserID{user})
	} else {
		err = firstcome.ErrNoCampaign
	}
	if errors.Is(err, firstcome.ErrNoCampaign) {
		page.NotIssued = v.say("그런 캠페인이 없습니다. 발급하지 않았습니다.", "There is no such campaign: no coupon was issued.")
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if o = decisions[0].Outcome; c.Decided != nil {
		c.Decided(id, o)
	}
	return o, nil
}

// void voids one coupon.
func (c *customerHandlers) void(v *view) error {
	id, err := v.campaign()
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(v.r.PathValue("number"), 10, 64)
	if err != nil || number < 1 {
		return firstcome.ErrNoCoupon
	}
	reason, err := v.reason()
	if err != nil {
		return err
	}
	coupon, err := c.Operator.Void(v.r.Context(), v.who.Actor, id, number, reason)
	if err != nil {
		return err
	}
	query := url.Values{"campaign": {string(id)}}
	if user := v.form.Get("user_id"); user == string(coupon.User) { // the form named the user, so the link may, too
		query.Set("user_id", user)
	}
	return v.redirectSaid(Root+"/customer", query, c.voided(v, &coupon))
}

// voided says that a coupon was voided and, if it had a prize, what becomes of its stock.
func (c *customerHandlers) voided(v *view, coupon *firstcome.Coupon) sentence {
	done := doneWords["voided"]
	s, err := c.Ledger.Campaign(v.r.Context(), coupon.Campaign)
	if err != nil || len(s.Prizes) == 0 {
		return done // the coupon is voided, whatever else is unknown
	}
	terms, err := c.Ledger.Terms(v.r.Context(), coupon.Campaign, coupon.TermsVersion)
	if err != nil {
		return done
	}
	of, then := prizeOf(&terms, coupon.Number), nextPrizeOf(&s.Terms, &c.Watcher.Of(v.r.Context(), []ledger.Status{s})[0])
	return sentence{done.ko + " " + korean.voidedStock(of, then), done.en + " " + english.voidedStock(of, then)}
}
