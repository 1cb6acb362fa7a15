package console

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// customerWords writes what support may tell a customer, in one language.
type customerWords struct {
	locale
	now time.Time
}

// notCode returns the error message for an invalid code.
func (l language) notCode() string {
	return l.say("쿠폰 코드는 U를 뺀 글자와 숫자 16자입니다.", "A coupon code has 16 letters and digits, without U.")
}

// noSuchCode says that no coupon has the code. unread is how many campaigns were not searched because they have another secret.
func (w customerWords) noSuchCode(unread int) string {
	text := w.say("이 코드의 쿠폰이 없습니다. 코드를 다시 확인하세요.", "No coupon has this code. Check the code.")
	if unread > 0 {
		text += " " + w.say("코드 비밀키가 이 노드와 다른 캠페인은 찾아보지 않았습니다: %s개.", "Campaigns that have another code secret than this node were not searched: %s.", w.number(unread))
	}
	return text
}

// without says why the number of a code has no coupon in the campaign with a name.
func (w customerWords) without(name string, h *ledger.Holding) string {
	text := w.say("이 코드는 ‘%s’의 번호 %s입니다.", "This is the code of number %[2]s of “%[1]s”.", name, w.number(h.Number)) + " "
	switch h.Why {
	case ledger.NumberLost:
		return text + w.say("이 번호는 장애로 유실되어 쿠폰이 없습니다.", "The number was lost in a failure, so it has no coupon.")
	case ledger.LetterOpen:
		return text + w.say("원장이 쿠폰을 받지 않아 기록 실패 건으로 남아 있습니다. 담당자에게 확인을 요청하세요.", "The ledger refused its coupon, and the dead letter is open: ask an operator.")
	case ledger.LetterVoided:
		return text + w.say("원장이 쿠폰을 받지 않았고, 기록 실패 건은 회수로 처리되었습니다.", "The ledger refused its coupon, and an operator voided the dead letter.")
	}
	return text + w.say("쿠폰이 아직 원장에 없습니다. 잠시 뒤 다시 찾거나 고객 ID로 찾아보세요.", "Its coupon is not in the ledger yet. Look again in a moment, or look for the user id.")
}

// particle returns the Korean particle that follows a word: with after a final consonant, otherwise without. After a word in other letters it is both.
func particle(word, with, without string) string {
	switch last, _ := utf8.DecodeLastRuneInString(word); {
	case last < '가' || last > '힣':
		return with + "(" + without + ")"
	case (last-'가')%28 > 0: // a block of Unicode has 28 syllables that differ in their end, the first of them without a consonant
		return with
	}
	return without
}

// at returns an instant as people say it.
func (w customerWords) at(t time.Time) string { return w.spoken(w.now, t) }

// until returns until when a coupon can be used that expires at an instant: to the minute, or the whole day before a midnight.
func (w customerWords) until(t time.Time) string {
	there := t.In(w.zone)
	if there.Hour() > 0 || there.Minute() > 0 {
		return w.at(t.Truncate(time.Minute))
	}
	eve, zone := there.Add(-time.Minute), ""
	if w.language == english || w.zone.String() != seoulName {
		zone = " (" + w.zoneWord() + ")"
	}
	layout := w.say("1월 2일", "2 January")
	if eve.Year() != w.now.In(w.zone).Year() {
		layout = w.say("2006년 1월 2일", "2 January 2006")
	}
	return w.say("%s", "the end of %s", eve.Format(layout)) + zone
}

// coupon returns the sentence for a coupon of a campaign.
func (w customerWords) coupon(t *firstcome.Terms, c *firstcome.Coupon) string {
	name := t.Name
	switch {
	case !c.VoidedAt.IsZero():
		return w.say("고객님께서 받으셨던 ‘%s’%s %s에 회수되었습니다.", "Your coupon “%[1]s” was taken back at %[3]s.", name, particle(name, "은", "는"), w.at(c.VoidedAt))
	case c.Buried && !c.Recorded:
		return w.say("고객님의 ‘%s’%s 아직 기록하지 못해 확인하고 있습니다. 확인한 뒤 다시 안내해 드리겠습니다.", "Your coupon “%[1]s” could not be recorded yet, and we are looking into it. We will tell you more once we know.", name, particle(name, "을", "를"))
	case !c.Recorded && t.Answer == firstcome.Recorded:
		return w.say("고객님의 ‘%s’%s 지금 기록하고 있습니다. 잠시 후 다시 안내해 드리겠습니다.", "Your coupon “%[1]s” is being recorded now. We will tell you more in a moment.", name, particle(name, "을", "를"))
	}
	text := w.say("고객님께서는 %s에 ‘%s’%s 받으셨습니다.", "You got “%[2]s” at %[1]s.", w.at(c.IssuedAt), name, particle(name, "을", "를"))
	switch expires := t.ExpiresAt(c.IssuedAt); {
	case shownCode(t, c) == "" && expires.IsZero():
	case shownCode(t, c) == "" && w.now.Before(expires):
		text += " " + w.say("%s까지 사용하실 수 있습니다.", "You can use it until %s.", w.until(expires))
	case shownCode(t, c) == "":
		text += " " + w.say("사용 기한은 %s까지였습니다.", "You could use it until %s.", w.until(expires))
	case expires.IsZero():
		text += " " + w.say("쿠폰 코드는 %s입니다.", "Your coupon code is %s.", c.Code)
	case w.now.Before(expires):
		text += " " + w.say("쿠폰 코드는 %s이며, %s까지 사용하실 수 있습니다.", "Your coupon code is %s. You can use it until %s.", c.Code, w.until(expires))
	default:
		text += " " + w.say("쿠폰 코드는 %s이며, 사용 기한은 %s까지였습니다.", "Your coupon code is %s. You could use it until %s.", c.Code, w.until(expires))
	}
	if got := prizeOf(t, c.Number); got.Prize != "" {
		text += " " + w.say("순위는 %s위, 경품은 ‘%s’입니다.", "Your rank is %s, and your prize: %s.", w.number(got.Rank), got.Prize)
	}
	if benefit := plainBenefit(t.BenefitOf(c.Number)); benefit != "" {
		text += " " + w.say("혜택은 ‘%s’입니다.", "It is good for: %s.", benefit)
	}
	return text
}

// plainBenefit returns a benefit that is a text. Other JSON is for machines: it returns "".
func plainBenefit(benefit json.RawMessage) (text string) {
	if json.Unmarshal(benefit, &text) != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSpace(text), ".")
}

// lostOf returns the lost coupon of a campaign that an audit log entry describes. It returns false if the entry describes none.
func (w customerWords) lostOf(e *ledger.LogEntry, name string) (c customerCoupon, is bool) {
	var detail struct {
		Code     string `json:"code"`
		IssuedAt int64  `json:"issued_at"`
	}
	if e.Action != ledger.CouponLost || json.Unmarshal(e.Detail, &detail) != nil {
		return c, false
	}
	issued := time.UnixMicro(detail.IssuedAt).UTC()
	return customerCoupon{
		Coupon: firstcome.Coupon{Campaign: e.Campaign, Number: e.Number, User: e.User, Code: detail.Code, IssuedAt: issued},
		Name:   name, Lost: true,
		Sentence: w.say("고객님께서 %s에 안내받으신 ‘%s’%s 저희 장애로 유실되었습니다. 죄송합니다.", "“%[2]s”, which you were told at %[1]s, was lost because of a failure on our side. We are sorry.", w.at(issued), name, particle(name, "은", "는")),
	}, true
}

// answer returns what support may tell a customer beside the sentences of coupons. It is empty if a coupon is in force.
func (w customerWords) answer(page *customerPage) string {
	none, had := true, false
	for _, c := range page.Found {
		none = none && (c.Lost || !c.VoidedAt.IsZero())
		had = true
	}
	s := page.Status
	switch {
	case !none:
		return ""
	case page.Place != nil:
		return w.inLine(page)
	case page.Unread && had:
		return w.stopped(page) + " " + w.say("그 뒤에 다시 받으셨는지는 아직 확인할 수 없습니다. 잠시 후 다시 확인해 드리겠습니다.", "So we do not know yet whether you got another one since. We will look again in a moment.")
	case page.Unread:
		return w.stopped(page) + " " + w.say("고객님께서 받으셨는지는 아직 확인할 수 없습니다. 잠시 후 다시 확인해 드리겠습니다.", "So we do not know yet whether you have a coupon. We will look again in a moment.")
	case page.Untold && !had:
		return w.none(s.Name) + " " + w.say("대기하고 계신지는 지금 확인할 수 없습니다. 잠시 후 다시 확인해 드리겠습니다.", "Whether you are in line cannot be told now. We will look again in a moment.")
	case had:
		return w.chance(page)
	case len(page.Stays) > 0:
		return w.stood(page, page.Stays[len(page.Stays)-1])
	}
	return w.nothing(page)
}

// stopWords has, for each word of figures.Whys about the gate, the sentence that tells a customer why the gate's decisions are unknown.
var stopWords = map[string]sentence{
	"silent":             {"‘%s’ 발급 서버가 현재 응답하지 않습니다.", "What decides “%s” does not answer now."},
	"unverified":         {"‘%s’ 발급 서버가 복구되는 중입니다.", "What decides “%s” is recovering."},
	"rebuilding":         {"‘%s’ 발급 서버가 복구되는 중입니다.", "What decides “%s” is recovering."},
	"lost":               {"‘%s’ 발급 서버에 문제가 있습니다.", "What decides “%s” is out of order."},
	"ledger_rolled_back": {"‘%s’ 발급 서버에 문제가 있습니다.", "What decides “%s” is out of order."},
	"stale_epoch":        {"‘%s’ 발급 서버에 문제가 있습니다.", "What decides “%s” is out of order."},
	"mismatch":           {"저희가 확인하는 서버는 ‘%s’ 발급 서버가 아닙니다.", "The server that we look at does not decide “%s”."},
	"creating":           {"‘%s’ 발급은 아직 준비되지 않았습니다.", "“%s” is not ready yet."},
}

// stopped says why the gate's decisions are unknown.
func (w customerWords) stopped(page *customerPage) string {
	why := stopWords[page.Of.Why]
	return w.say(why.ko, why.en, page.Status.Name)
}

// inLine returns the sentence for a customer who is in line.
func (w customerWords) inLine(page *customerPage) string {
	p, name := page.Place, page.Status.Name
	text := w.say("고객님께서는 ‘%s’ 대기열에서 대기 중이십니다. 순번은 %s번이며, 앞에 최대 %s명이 있습니다.", "You are in line for “%s”: your ticket is %s, with at most %s ahead of you.", name, w.number(p.Ticket), w.number(p.Ahead))
	if p.Ahead == 0 {
		text = w.say("고객님께서는 ‘%s’ 대기열에서 대기 중이십니다. 순번은 %s번이며, 바로 다음 차례입니다.", "You are in line for “%s”: your ticket is %s, and you are next.", name, w.number(p.Ticket))
	}
	switch {
	case p.Why == firstcome.Paused:
		text += " " + w.say("현재 쿠폰 발급이 일시 중지되어 있으며, 순번은 그대로 유지됩니다.", "It is paused now, and you keep your place.")
	case p.Why == firstcome.NotOpen && !p.Until.IsZero():
		text += " " + w.say("쿠폰 발급은 %s에 시작되며, 순번은 그대로 유지됩니다.", "It opens at %s, and you keep your place.", w.at(p.Until))
	case page.Status.Waitlist && page.Left != nil && *page.Left == 0:
		text += " " + w.say("현재 남은 쿠폰이 없으며, 회수된 쿠폰이 나오면 순서대로 드립니다.", "No coupon is left now. One that comes back goes to whoever is next in line.")
	case !p.Likely:
		text += " " + w.say("다만 차례가 오기 전에 쿠폰이 소진될 수 있습니다.", "Coupons may run out before your turn.")
	}
	return text
}

// stood returns the sentence for a customer who was in line and has no coupon.
func (w customerWords) stood(page *customerPage, stay gate.Stay) string {
	name, ticket, ended := page.Status.Name, w.number(stay.Number), ""
	if !stay.EndedAt.IsZero() {
		ended = w.at(stay.EndedAt)
	}
	text := w.say("고객님께서는 ‘%s’ 대기열에서 %s번 순번으로 대기하셨습니다.", "You were in line for “%s” with ticket %s.", name, ticket)
	if !stay.JoinedAt.IsZero() {
		text = w.say("고객님께서는 %s에 ‘%s’ 대기열에 들어와 %s번 순번으로 대기하셨습니다.", "You joined the line for “%[2]s” at %[1]s with ticket %[3]s.", w.at(stay.JoinedAt), name, ticket)
	}
	text += " "
	switch {
	case stay.Ended == "sold_out":
		text += w.say("차례가 오기 전인 %s에 쿠폰이 모두 소진되어 받지 못하셨습니다.", "All coupons were gone at %s, before your turn.", ended)
	case stay.Ended == "closed":
		text += w.say("차례가 오기 전인 %s에 이벤트가 종료되어 받지 못하셨습니다.", "It closed at %s, before your turn.", ended)
	case stay.Ended == "lost":
		text += w.say("%s에 저희 장애로 대기열이 유실되어 받지 못하셨습니다. 죄송합니다.", "The line was lost at %s because of a failure on our side, before your turn. We are sorry.", ended)
	case stay.Ended == "left" && ended != "":
		text += w.say("%s에 대기를 취소하셨습니다.", "You left it at %s.", ended)
	case stay.Ended == "left", stay.Ended == gate.StayOver:
		text += w.say("그 뒤 대기를 취소하셨습니다.", "You left it.")
	default:
		text += w.say("그 대기는 끝났으며, 어떻게 끝났는지는 기록이 남아 있지 않습니다.", "That has ended, and we have no record of how.")
	}
	if stay.Ended == page.Of.State { // said already
		return text
	}
	return text + " " + w.chance(page)
}

// none returns the sentence that the customer has no coupon of a campaign.
func (w customerWords) none(name string) string {
	return w.say("고객님께서 받으신 ‘%s’%s 없습니다.", "You have no coupon of “%[1]s”.", name, particle(name, "은", "는"))
}

// nothing returns the sentences for a customer of whom neither gate nor ledger knows anything.
func (w customerWords) nothing(page *customerPage) string {
	s, text := page.Status, w.none(page.Status.Name)
	switch {
	case page.Lined && s.Remote() && (s.Epoch > 1 || !s.RetiredAt.IsZero()): // the gate may have forgotten tickets
		text += " " + w.say("대기열에 계셨는지는 더 이상 확인할 수 없습니다.", "Whether you were in its line can no longer be told.")
	case page.Lined:
		text += " " + w.say("대기열에 들어오신 기록도 없습니다.", "We have no record of you in its line.")
	}
	text += " " + w.chance(page)
	if opened := !page.Of.OpenedAt.IsZero(); opened && !page.Lined {
		text += " " + w.say("발급되지 않은 신청은 기록이 남지 않아 신청 시각은 확인해 드리기 어렵습니다.", "Claims that get no coupon leave no record, so we cannot tell when you claimed.")
	}
	return text
}

// campaign returns what support may tell anybody about the page's campaign.
func (w customerWords) campaign(page *customerPage) string {
	if page.Of.Why != "" {
		return w.stopped(page) + " " + w.say("잠시 후 다시 확인해 드리겠습니다.", "We will look again in a moment.")
	}
	return w.say("‘%s’ 안내입니다.", "About “%s”:", page.Status.Name) + " " + w.chance(page)
}

// chance returns the sentence on what a claim would get now.
func (w customerWords) chance(page *customerPage) string {
	of, s := page.Of, page.Status
	switch {
	case of.State == "closed":
		return w.closed(page)
	case of.State == "paused":
		return w.say("현재 쿠폰 발급이 일시 중지되어 있습니다.", "It is paused now.")
	case of.State == "sold_out" && of.SoldOutAt.IsZero():
		return w.say("쿠폰은 모두 소진되었습니다.", "It is sold out.")
	case of.State == "sold_out" && of.Restocked:
		return w.say("쿠폰은 %s에 처음 소진되었으며, 현재 남은 쿠폰이 없습니다.", "It first sold out at %s, and no coupon is left now.", w.at(of.SoldOutAt))
	case of.State == "sold_out":
		return w.say("쿠폰은 %s에 모두 소진되었습니다.", "It sold out at %s.", w.at(of.SoldOutAt))
	case of.State == "not_open":
		return w.say("쿠폰 발급은 %s에 시작됩니다.", "It opens at %s.", w.at(s.OpensAt))
	case s.Pace != nil || of.Waiting != nil && *of.Waiting > 0: // a removed line exists until it is empty
		return w.say("지금 신청하시면 대기열에 들어가실 수 있습니다.", "You may join the line now.")
	case s.Quantity == firstcome.Unlimited:
		return w.say("현재 수량 제한 없이 신청하실 수 있습니다.", "It is open, without a limit.") + w.prizeNow(page.Next)
	}
	return w.say("현재 %s장이 남아 있어 지금 신청하실 수 있습니다.", "Coupons left now: %s. You may claim one.", w.number(page.Left)) + w.prizeNow(page.Next)
}

// closed returns the sentence for a campaign that is closed.
func (w customerWords) closed(page *customerPage) string {
	of, s, at := page.Of, page.Status, page.Status.Since(firstcome.Closed)
	switch {
	case !of.SoldOutAt.IsZero() && of.Restocked:
		return w.say("쿠폰은 %s에 처음 소진되었고, 이벤트는 %s에 종료되었습니다.", "It first sold out at %s and closed at %s.", w.at(of.SoldOutAt), w.at(at))
	case !of.SoldOutAt.IsZero():
		return w.say("쿠폰은 %s에 모두 소진되었고, 이벤트는 %s에 종료되었습니다.", "It sold out at %s and closed at %s.", w.at(of.SoldOutAt), w.at(at))
	case at.Before(s.OpensAt) && of.OpenedAt.IsZero():
		return w.say("이벤트는 시작되기 전인 %s에 종료되었습니다.", "It was closed at %s, before it opened.", w.at(at))
	}
	return w.say("이벤트는 %s에 종료되었습니다.", "It closed at %s.", w.at(at))
}
