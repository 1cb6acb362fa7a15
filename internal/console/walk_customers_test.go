//go:build !race || soak

package console_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

var happened = regexp.MustCompile(`<li[^>]*><strong>([^<]*)</strong> <span><time[^>]*>([^<]*)</time>`)

// A teller writes what support should tell customers, by the walk's facts.
type teller struct {
	*walk
	step walked
	lang string
}

func (t teller) say(ko, en string) string {
	if t.lang == "ko" {
		return ko
	}
	return en
}

func (t teller) at(at time.Time) string { return spoken(t.lang, at) }

// lined reports whether the campaign has or had a line.
func (t teller) lined() bool {
	return t.terms.Pace != nil || t.line.generation > 0 || t.line.last > 0
}

// chance is what a newcomer is told.
func (t teller) chance() string {
	switch t.step.gets {
	case firstcome.NotOpen:
		return fmt.Sprintf(t.say("쿠폰 발급은 %s에 시작됩니다.", "It opens at %s."), t.at(t.terms.OpensAt))
	case firstcome.Waiting:
		return t.say("지금 신청하시면 대기열에 들어가실 수 있습니다.", "You may join the line now.")
	case firstcome.SoldOut:
		if t.restocked() {
			return fmt.Sprintf(t.say("쿠폰은 %s에 처음 소진되었으며, 현재 남은 쿠폰이 없습니다.", "It first sold out at %s, and no coupon is left now."), t.at(t.soldOut))
		}
		return fmt.Sprintf(t.say("쿠폰은 %s에 모두 소진되었습니다.", "It sold out at %s."), t.at(t.soldOut))
	case firstcome.Paused:
		return t.say("현재 쿠폰 발급이 일시 중지되어 있습니다.", "It is paused now.")
	case firstcome.Closed:
		if !t.soldOut.IsZero() && t.restocked() {
			return fmt.Sprintf(t.say("쿠폰은 %s에 처음 소진되었고, 이벤트는 %s에 종료되었습니다.", "It first sold out at %s and closed at %s."), t.at(t.soldOut), t.at(t.closed))
		}
		if !t.soldOut.IsZero() {
			return fmt.Sprintf(t.say("쿠폰은 %s에 모두 소진되었고, 이벤트는 %s에 종료되었습니다.", "It sold out at %s and closed at %s."), t.at(t.soldOut), t.at(t.closed))
		}
		return fmt.Sprintf(t.say("이벤트는 시작되기 전인 %s에 종료되었습니다.", "It was closed at %s, before it opened."), t.at(t.closed))
	}
	text := fmt.Sprintf(t.say("현재 %d장이 남아 있어 지금 신청하실 수 있습니다.", "Coupons left now: %d. You may claim one."), t.terms.Quantity-int64(len(t.held)))
	if prize := t.prize(t.issued + 1); prize != "" {
		text += fmt.Sprintf(t.say(" 지금 나가는 경품은 ‘%s’입니다.", " The prize now is: %s."), prize)
	}
	return text
}

// prize is the prize of a number. In a walk the first two numbers have the first prize, all others have the second, and no number is skipped.
func (t teller) prize(number int64) string {
	switch {
	case t.terms.Prizes == nil:
		return ""
	case number <= 2:
		return t.terms.Prizes[0].Name
	}
	return t.terms.Prizes[1].Name
}

// unknown is what is told while the gate decides nothing.
func (t teller) unknown(since bool) string {
	n := map[string]int{"ko": 0, "en": 1}[t.lang]
	text := stops[t.why].support[n] + " "
	if since {
		return text + t.say("그 뒤에 다시 받으셨는지는 아직 확인할 수 없습니다. 잠시 후 다시 확인해 드리겠습니다.", "So we do not know yet whether you got another one since. We will look again in a moment.")
	}
	return text + t.say("고객님께서 받으셨는지는 아직 확인할 수 없습니다. 잠시 후 다시 확인해 드리겠습니다.", "So we do not know yet whether you have a coupon. We will look again in a moment.")
}

// nothing is what somebody is told of whom nothing is known.
func (t teller) nothing() string {
	if t.blind {
		return t.unknown(false)
	}
	text := t.say("고객님께서 받으신 ‘추석’은 없습니다. ", "You have no coupon of “추석”. ")
	switch {
	case t.lined() && t.retired:
		text += t.say("대기열에 계셨는지는 더 이상 확인할 수 없습니다. ", "Whether you were in its line can no longer be told. ")
	case t.lined():
		text += t.say("대기열에 들어오신 기록도 없습니다. ", "We have no record of you in its line. ")
	}
	text += t.chance()
	if !t.opened.IsZero() && !t.lined() {
		text += t.say(" 발급되지 않은 신청은 기록이 남지 않아 신청 시각은 확인해 드리기 어렵습니다.", " Claims that get no coupon leave no record, so we cannot tell when you claimed.")
	}
	return text
}

// stood is what somebody is told who was in line and got none. At Redis it is not known when they joined, nor when they left.
func (t teller) stood(one *waiter, how string) string {
	if t.blind || t.retired {
		return t.nothing()
	}
	text := fmt.Sprintf(t.say("고객님께서는 %[2]s에 ‘추석’ 대기열에 들어와 %[1]d번 순번으로 대기하셨습니다. ", "You joined the line for “추석” at %[2]s with ticket %[1]d. "), one.place.Ticket, t.at(one.joined))
	if t.remote != nil {
		text = fmt.Sprintf(t.say("고객님께서는 ‘추석’ 대기열에서 %d번 순번으로 대기하셨습니다. ", "You were in line for “추석” with ticket %d. "), one.place.Ticket)
	}
	switch {
	case how == "sold_out":
		text += fmt.Sprintf(t.say("차례가 오기 전인 %s에 쿠폰이 모두 소진되어 받지 못하셨습니다.", "All coupons were gone at %s, before your turn."), t.at(one.ended))
	case how == "closed":
		text += fmt.Sprintf(t.say("차례가 오기 전인 %s에 이벤트가 종료되어 받지 못하셨습니다.", "It closed at %s, before your turn."), t.at(one.ended))
	case t.remote != nil:
		text += t.say("그 뒤 대기를 취소하셨습니다.", "You left it.")
	default:
		text += fmt.Sprintf(t.say("%s에 대기를 취소하셨습니다.", "You left it at %s."), t.at(one.ended))
	}
	if how == t.step.gets.String() {
		return text
	}
	return text + " " + t.chance()
}

// holds is what the holder of a coupon is told.
func (t teller) holds(c firstcome.Coupon) string {
	if c.Number > t.issued-t.unrecorded && t.terms.Answer == firstcome.Recorded {
		return t.say("고객님의 ‘추석’을 지금 기록하고 있습니다. 잠시 후 다시 안내해 드리겠습니다.", "Your coupon “추석” is being recorded now. We will tell you more in a moment.")
	}
	text := fmt.Sprintf(t.say("고객님께서는 %s에 ‘추석’을 받으셨습니다. 쿠폰 코드는 %s입니다.", "You got “추석” at %s. Your coupon code is %s."), t.at(c.IssuedAt), c.Code)
	if prize := t.prize(c.Number); prize != "" {
		text += fmt.Sprintf(t.say(" 순위는 %d위, 경품은 ‘%s’입니다.", " Your rank is %d, and your prize: %s."), c.Number, prize)
	}
	return text
}

// inLine is what somebody in line is told, with so many people before them.
func (t teller) inLine(ahead int, one waiter, most string) string {
	text := fmt.Sprintf(t.say("고객님께서는 ‘추석’ 대기열에서 대기 중이십니다. 순번은 %d번이며, 앞에 최대 %s명이 있습니다.", "You are in line for “추석”: your ticket is %d, with at most %s ahead of you."), one.place.Ticket, most)
	if most == "0" {
		text = fmt.Sprintf(t.say("고객님께서는 ‘추석’ 대기열에서 대기 중이십니다. 순번은 %d번이며, 바로 다음 차례입니다.", "You are in line for “추석”: your ticket is %d, and you are next."), one.place.Ticket)
	}
	switch {
	case t.step.gets == firstcome.Paused:
		text += t.say(" 현재 쿠폰 발급이 일시 중지되어 있으며, 순번은 그대로 유지됩니다.", " It is paused now, and you keep your place.")
	case t.terms.Waitlist && int64(len(t.held)) >= t.terms.Quantity:
		text += t.say(" 현재 남은 쿠폰이 없으며, 회수된 쿠폰이 나오면 순서대로 드립니다.", " No coupon is left now. One that comes back goes to whoever is next in line.")
	case !t.likely(ahead):
		text += t.say(" 다만 차례가 오기 전에 쿠폰이 소진될 수 있습니다.", " Coupons may run out before your turn.")
	}
	return text
}

// hears fails unless support is told exactly these sentences about a user.
func (t teller) hears(b *visitor, query string, want ...string) shown {
	t.t.Helper()
	got := b.get("/console/customer?campaign=spring&" + query)
	var told []string
	for _, found := range customerQuote.FindAllStringSubmatch(got.body, -1) {
		told = append(told, html.UnescapeString(found[1]))
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.t.Errorf("%s, %s, %s (-so +told):\n%s%s", t.step.name, t.lang, query, diff, got.text())
	}
	return got
}

// customers compares what support may tell a customer with the walk's facts, for users with a coupon, a user whose coupon was voided, users in line,
// users who left or were sent away, and a stranger.
func (w *walk) customers(step walked, b *visitor) {
	w.t.Helper()
	t := teller{w, step, b.lang}
	got := t.hears(b, "q=nobody", t.nothing())
	w.stopped(step, b.lang, "Customer", got.text(), toSupport)
	w.stopped(step, b.lang, "Customer", got.text(), onPage)
	w.dated(step, b.lang, "Customer", got.text())
	t.happened(got, nil)
	if one := w.line.left; one != nil {
		t.happened(t.hears(b, "q="+one.user, t.stood(one, "left")), one)
	}
	if one := w.line.away; one != nil {
		t.happened(t.hears(b, "q="+one.user, t.stood(one, w.line.why)), one)
	}
	for user := range w.held {
		t.hears(b, "user_id="+url.QueryEscape(user), t.holds(w.given[user]))
	}
	if c, is := w.given[w.gone]; is {
		voided := fmt.Sprintf(t.say("고객님께서 받으셨던 ‘추석’은 %s에 회수되었습니다.", "Your coupon “추석” was taken back at %s."), t.at(w.goneAt))
		want := []string{voided + " " + t.chance()}
		if w.blind {
			want = []string{t.unknown(true), voided}
		}
		t.hears(b, "q="+c.Code, want...)
	}
	t.byCode(b)
	t.waiters(b)
	about := t.say("‘추석’ 안내입니다. ", "About “추석”: ") + t.chance()
	if w.blind {
		about = strings.TrimSuffix(t.unknown(false), t.say("고객님께서 받으셨는지는 아직 확인할 수 없습니다. 잠시 후 다시 확인해 드리겠습니다.", "So we do not know yet whether you have a coupon. We will look again in a moment."))
		about += t.say("잠시 후 다시 확인해 드리겠습니다.", "We will look again in a moment.")
	}
	t.hears(b, "q=spring", about)
}

// creating compares what support may tell a customer before the creation has reached the gate.
func (w *walk) creating(b *visitor) {
	w.t.Helper()
	t := teller{w, walked{name: "being created"}, b.lang}
	got := t.hears(b, "q=nobody", t.say("‘추석’ 발급은 아직 준비되지 않았습니다. 고객님께서 받으셨는지는 아직 확인할 수 없습니다. 잠시 후 다시 확인해 드리겠습니다.",
		"“추석” is not ready yet. So we do not know yet whether you have a coupon. We will look again in a moment."))
	if why := t.say("캠페인 생성이 아직 게이트에 반영되지 않았습니다.", "Its creation has not reached the gate yet."); !strings.Contains(got.text(), why) {
		w.t.Errorf("%s: no %q in %s", b.lang, why, got.text())
	}
	for _, path := range []string{"", "/campaigns/spring"} {
		if found := badge.FindStringSubmatch(b.get("/console" + path).body); found == nil || found[2] != t.say("알 수 없음", "unknown") {
			w.t.Errorf("%s, %q: a campaign that is being created is %q", b.lang, path, found)
		}
	}
}

// happened compares the instants that support sees: those of the campaign and, if one is not nil, those of a user in line.
func (t teller) happened(got shown, one *waiter) {
	t.t.Helper()
	exact := func(at time.Time) string {
		return at.In(time.FixedZone("KST", 9*60*60)).Format("2006-01-02 15:04:05.000 MST")
	}
	told := map[string]string{}
	for _, found := range happened.FindAllStringSubmatch(got.body, -1) {
		told[found[1]] = found[2]
	}
	want := map[string]string{}
	note := func(ko, en string, at time.Time, known bool) {
		if !at.IsZero() && known {
			want[t.say(ko, en)] = exact(at)
		}
	}
	known := !t.blind
	note("오픈했습니다", "the campaign opened", t.opened, known)
	note("오픈 예정입니다", "the campaign will open", t.terms.OpensAt, t.closed.IsZero() && t.now.Before(t.terms.OpensAt))
	note("쿠폰이 처음 소진되었습니다", "the campaign first sold out", t.soldOut, known && t.restocked())
	note("쿠폰이 모두 소진되었습니다", "the campaign sold out", t.soldOut, known && !t.restocked())
	note("이벤트가 종료되었습니다", "the campaign closed", t.closed, true)
	if one != nil && known && !t.retired {
		note(fmt.Sprintf("대기열에 들어왔습니다: 순번 %d", one.place.Ticket), fmt.Sprintf("joined the line: ticket %d", one.place.Ticket), one.joined, t.remote == nil)
		switch {
		case one == t.line.left:
			note("대기를 취소했습니다", "left the line", one.ended, t.remote == nil)
		case t.line.why == "closed":
			note("종료되어 대기열이 끝났습니다", "the line ended, closed", one.ended, true)
		default:
			note("소진되어 대기열이 끝났습니다", "the line ended, sold out", one.ended, true)
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.t.Errorf("%s, %s: what happened (-so +told):\n%s", t.step.name, t.lang, diff)
	}
}

// byCode looks for the newest coupon by its code: the ledger finds it once it has the coupon.
func (t teller) byCode(b *visitor) {
	t.t.Helper()
	for user, number := range t.held {
		if slices.ContainsFunc(keysOfHeld(t.held), func(n int64) bool { return n > number }) {
			continue
		}
		query := "q=" + stage.Secret().Code("spring", number)
		if number <= t.issued-t.unrecorded {
			t.hears(b, query, t.holds(t.given[user]))
			continue
		}
		b.finds("campaign=spring&"+query, 200, []string{fmt.Sprintf(t.say("이 코드는 ‘추석’의 번호 %d입니다. 쿠폰이 아직 원장에 없습니다.", "This is the code of number %d of “추석”. Its coupon is not in the ledger yet."), number)})
	}
}

func keysOfHeld(held map[string]int64) (numbers []int64) {
	for _, n := range held {
		numbers = append(numbers, n)
	}
	return numbers
}

// waiters compares what support sees about the users in line with the test's own line.
func (t teller) waiters(b *visitor) {
	t.t.Helper()
	for n, one := range t.line.waiting {
		query := "q=" + one.user
		if t.blind {
			t.hears(b, query, t.unknown(false))
			continue
		}
		likely, not := t.say("발급 예상 가능", "Likely to get one yes"), t.say("발급 예상 어려움", "Likely to get one no")
		if !t.likely(n) {
			likely, not = not, likely
		}
		b.finds("campaign=spring&"+query, 200, []string{t.say("지금 대기열에 있습니다", "In line now"), likely}, not)
		most := ahead.FindStringSubmatch(b.get("/console/customer?campaign=spring&" + query).body)[1]
		t.hears(b, query, t.inLine(n, one, most))
	}
}

// ahead finds how many people at most are ahead of a user. TestWhatIsSaidIsTrueInEveryState compares the figure by the API.
var ahead = regexp.MustCompile(`(?s)tip-ahead.*?<dd>([0-9,]*)</dd>`)

// spoken returns an instant as support says it, in Seoul.
func spoken(lang string, at time.Time) string {
	at = at.In(time.FixedZone("KST", 9*60*60))
	if lang == "en" {
		return strings.Replace(at.Format("3:04:05 pm on 2 January (Seoul time)"), ":00 ", " ", 1)
	}
	half := map[bool]string{true: "오전", false: "오후"}[at.Hour() < 12]
	return strings.TrimSuffix(strings.TrimSuffix(at.Format("1월 2일 ")+half+at.Format(" 3시 4분 5초"), " 0초"), " 0분")
}
