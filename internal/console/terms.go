package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/zone"
)

// A newForm is what somebody typed.
type newForm struct {
	ID, Name, Quantity, OpensAt, ClosesAt, Answer, Line, PerSecond, Waitlist, Benefit, ValidFor, ValidUnit, ValidUntil string

	Prizes []typedPrize
	Focus  string // the button or the input of a prize to go to, or empty
}

// formTime is how a browser writes an instant without a zone.
const formTime = "2006-01-02T15:04:05"

// A unit is one in which people type how long a coupon is valid.
type unit struct {
	name string
	of   time.Duration
}

// validUnits are the units, the largest first.
var validUnits = []unit{{"days", 24 * time.Hour}, {"hours", time.Hour}, {"minutes", time.Minute}, {"seconds", time.Second}}

// formOrder has the fields of the forms in which several can be wrong, in their order on the page.
var formOrder = slices.Concat([]string{"id", "name", "quantity", "benefit", "opens_at", "closes_at", "valid_for", "valid_until"}, prizeInputs(), []string{"per_second", "waitlist"})

// formOf returns the form of terms.
func (l locale) formOf(t firstcome.Terms) newForm {
	f := newForm{
		Name: t.Name, Answer: string(t.Answer), Line: "none", Benefit: typedBenefit(t.Benefit), ValidUnit: validUnits[0].name,
		OpensAt: l.typedTime(t.OpensAt), ClosesAt: l.typedTime(t.ClosesAt), ValidUntil: l.typedTime(t.ValidUntil), Prizes: prizesOf(t.Prizes),
	}
	if t.Quantity != firstcome.Unlimited {
		f.Quantity = strconv.FormatInt(t.Quantity, 10)
	}
	if t.Pace != nil {
		f.Line = "fast"
		if t.Pace.PerSecond > 0 {
			f.Line, f.PerSecond = "paced", strconv.FormatInt(t.Pace.PerSecond, 10)
		}
	}
	if t.Waitlist {
		f.Waitlist = "on"
	}
	for _, u := range validUnits {
		if t.ValidFor > 0 && t.ValidFor%u.of == 0 {
			f.ValidFor, f.ValidUnit = strconv.FormatInt(int64(t.ValidFor/u.of), 10), u.name
			break
		}
	}
	return f
}

// typedBenefit returns a benefit as the form has it: a text without quotes, if reading it again results in the same benefit.
func typedBenefit(benefit json.RawMessage) string {
	text := benefitText(benefit)
	if text != strings.TrimSpace(text) || strings.ContainsAny(text, "\r\n") || json.Valid([]byte(text)) {
		text = string(benefit)
	}
	if text == "null" {
		return ""
	}
	return text
}

// benefitText returns a benefit that is a text without its quotes, and other JSON as it is. It returns "" if there is no benefit.
func benefitText(benefit json.RawMessage) string {
	var text string
	if string(benefit) == "null" || json.Unmarshal(benefit, &text) == nil {
		return text
	}
	return string(benefit)
}

// typedTime returns an instant as the form has it, or nothing for none.
func (l locale) typedTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(l.zone).Format(formTime)
}

// typedForm returns what somebody typed.
func (v *view) typedForm() newForm {
	get := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	return newForm{
		ID: get("id"), Name: get("name"), Quantity: get("quantity"), OpensAt: get("opens_at"), ClosesAt: get("closes_at"), Answer: get("answer"),
		Line: get("line"), PerSecond: get("per_second"), Waitlist: get("waitlist"), Benefit: get("benefit"),
		ValidFor: get("valid_for"), ValidUnit: get("valid_unit"), ValidUntil: get("valid_until"), Prizes: v.typedPrizes(),
	}
}

// readInto writes the fields that the user changed into the terms. It leaves out terms that may not change while people claim. An unchanged field
// changes nothing, because it may not show all of its term, such as microseconds.
func (p *newPage) readInto(v *view, t *firstcome.Terms) {
	f, was := &p.Form, v.lang.formOf(*t)
	t.Name = f.Name
	if f.Quantity != was.Quantity {
		t.Quantity = firstcome.Unlimited
		if f.Quantity != "" {
			var ok bool
			if t.Quantity, ok = wholeNumber(f.Quantity); !ok {
				p.Wrong["quantity"] = v.say("정수로 입력하세요. 비워 두면 무제한입니다.", "Write a whole number, or nothing for unlimited.")
			}
		}
	}
	for _, at := range []struct {
		name, typed, was string
		into             *time.Time
	}{{"opens_at", f.OpensAt, was.OpensAt, &t.OpensAt}, {"closes_at", f.ClosesAt, was.ClosesAt, &t.ClosesAt}, {"valid_until", f.ValidUntil, was.ValidUntil, &t.ValidUntil}} {
		if at.typed != at.was && at.typed+":00" != at.was { // browsers may drop seconds that are zero
			*at.into = p.instant(v, at.name, at.typed)
		}
	}
	if f.Benefit != was.Benefit {
		t.Benefit = p.benefit(v, "benefit", f.Benefit)
	}
	if !slices.Equal(f.Prizes, was.Prizes) {
		t.Prizes = p.prizes(v, t.Prizes)
	}
	if f.ValidFor != was.ValidFor || f.ValidUnit != was.ValidUnit {
		t.ValidFor = p.validFor(v, f)
	}
}

// benefit reads a text or JSON.
func (p *newPage) benefit(v *view, field, typed string) json.RawMessage {
	benefit := json.RawMessage(typed)
	switch {
	case typed == "":
		return nil
	case !json.Valid(benefit):
		benefit, _ = json.Marshal(typed) // a text is a benefit, too
	case !isPlain(benefit):
		p.Wrong[field] = v.say("JSON에 같은 이름이 두 번 있거나, 중첩이 너무 깊거나, 깨진 문자가 있습니다.", "A name is there twice, or it is nested too deep, or a character is broken.")
	}
	return benefit
}

// validFor reads how long a coupon is valid; zero means forever.
func (p *newPage) validFor(v *view, f *newForm) time.Duration {
	if f.ValidFor == "" {
		return 0
	}
	n, err := strconv.ParseInt(f.ValidFor, 10, 64)
	at := slices.IndexFunc(validUnits, func(u unit) bool { return u.name == f.ValidUnit })
	if err != nil || n < 1 || at < 0 || n > int64(math.MaxInt64/validUnits[at].of) {
		p.Wrong["valid_for"] = v.say("1 이상의 정수로 입력하세요.", "Write a whole number from 1 up.")
		return 0
	}
	return time.Duration(n) * validUnits[at].of
}

// holdExpiry warns if coupons may be issued after they have expired.
func holdExpiry(v *view, found *doctor.Findings, t *firstcome.Terms) {
	if t.ValidUntil.IsZero() {
		return
	}
	found.Hold(!t.ClosesAt.IsZero() && !t.ValidUntil.Before(t.ClosesAt), doctor.Warn, v.say("만료 일시", "valid until"),
		v.say("이때부터 마감까지 발급되는 쿠폰은 받자마자 만료됩니다.", "Coupons issued from then until the campaign closes are already expired."), "%s", v.lang.both(t.ValidUntil))
}

// isPlain reports whether every reader reads a benefit alike, as the API does: no key twice, no lone surrogate, at most 32 deep.
func isPlain(benefit []byte) bool {
	for d := jsontext.NewDecoder(bytes.NewReader(benefit)); ; {
		switch _, err := d.ReadToken(); {
		case errors.Is(err, io.EOF):
			return true
		case err != nil || d.StackDepth() > 32:
			return false
		}
	}
}

// instant reads a time of the form, which is in the zone of the page.
func (p *newPage) instant(v *view, field, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	wall, ok := zone.WallClock(text)
	if !ok {
		p.Wrong[field] = v.say("2026-12-01T10:00 형식으로 입력하세요.", "Write it like 2026-12-01T10:00.")
		return time.Time{}
	}
	at, err := zone.Instant(wall, v.lang.zone)
	switch {
	case errors.Is(err, zone.ErrSkipped):
		p.Wrong[field] = v.say("이 시간대에서는 시계를 앞당기면서 이 시각을 건너뜁니다. 다른 시각을 선택하세요.", "C"+err.Error()[1:]+": choose another time.")
	case errors.Is(err, zone.ErrTwice):
		p.Wrong[field] = v.say("이 시간대에서는 시계를 되돌리면서 이 시각이 두 번 있습니다. 다른 시각을 선택하거나 firstcome 명령에서 UTC 차이와 함께 적으세요.", "C"+err.Error()[1:]+": choose another time, or use the firstcome command and write the time with its offset from UTC.")
	}
	return at.UTC()
}

// differences returns what of the terms is not the same; of a new campaign all that is set.
func (l locale) differences(before, after *firstcome.Terms) (all []changed) {
	first := before == nil
	if first {
		before = &firstcome.Terms{}
	}
	was, is := l.termsOf(before), l.termsOf(after)
	for n := range max(len(was), len(is)) { // only prizes, which are the last, can be more or fewer
		var one changed
		switch {
		case n >= len(is):
			one = changed{was[n].Name, was[n].To, l.none()}
		case n >= len(was):
			one = changed{is[n].Name, l.none(), is[n].To}
		default:
			one = changed{is[n].Name, was[n].To, is[n].To}
		}
		if first {
			one.From = ""
		}
		if n >= len(was) || n >= len(is) || was[n].To != is[n].To {
			all = append(all, one)
		}
	}
	return append(all, l.skips(before, after)...)
}

// termsOf returns all terms in words, the prizes last.
func (l locale) termsOf(t *firstcome.Terms) []changed {
	none := l.none()
	instant := func(at time.Time) string {
		if at.IsZero() {
			return none
		}
		return l.shown(at, toSecond)
	}
	benefit, lasts := cmp.Or(benefitText(t.Benefit), none), none
	if t.ValidFor != 0 {
		lasts = l.exactSpan(t.ValidFor)
	}
	return append([]changed{
		{Name: l.say("이름", "name"), To: t.Name},
		{Name: l.say("수량", "quantity"), To: l.quantity(t.Quantity)},
		{Name: l.say("오픈", "opens"), To: instant(t.OpensAt)},
		{Name: l.say("마감", "closes"), To: instant(t.ClosesAt)},
		{Name: l.say("응답 시점", "answered when"), To: l.answered(t.Answer)},
		{Name: l.say("속도", "pace"), To: l.pace(t.Pace)},
		{Name: l.say("예비 대기", "waitlist"), To: l.yes(t.Waitlist)},
		{Name: l.say("혜택", "benefit"), To: benefit},
		{Name: l.say("만료 일시", "valid until"), To: instant(t.ValidUntil)},
		{Name: l.say("유효 기간", "valid for"), To: lasts},
	}, l.prizeTerms(t)...)
}

// pace returns a pace in words.
func (l language) pace(p *firstcome.Pace) string {
	switch {
	case p == nil:
		return l.say("대기열 없음", "no line")
	case p.PerSecond == 0:
		return l.say("최대한 빠르게", "as fast as possible")
	}
	return l.say("초당 %s장", "%s a second", l.number(p.PerSecond))
}

// answered returns when a claim is answered, in words.
func (l language) answered(when firstcome.AnswerWhen) string {
	if when == firstcome.Decided {
		return l.say("게이트가 결정하는 즉시", "as soon as the gate has decided")
	}
	return l.say("원장에 기록한 뒤", "once it is in the ledger")
}

// allowed says in Korean what a field takes, by its name in a FieldError.
var allowed = map[string]string{
	"name": "1자 이상, 200바이트까지 입력할 수 있습니다", "quantity": "0 이상이며 경품 수량의 합 이상인 정수여야 합니다. 비워 두면 무제한입니다",
	"opens_at": "1970년부터 9999년까지의 시각이어야 합니다", "closes_at": "1970년부터 9999년까지의 시각이며, 오픈보다 늦어야 합니다",
	"coupon.valid_until": "9999년까지의 시각이며, 지금과 오픈보다 늦어야 합니다", "coupon.valid_for": "0보다 길고 100년 이하여야 하며, 만료 일시와 함께 쓸 수 없습니다",
	"coupon.benefit": "16 KiB까지의 문구나 JSON이어야 하며, 경품과 함께 쓸 수 없습니다", "answer": "기록한 뒤와 결정하는 즉시 중에서 선택하세요", "pace.per_second": "1 이상의 정수여야 합니다",
	"waitlist": "대기열을 사용할 때만 쓸 수 있습니다", "campaign": "캠페인 ID에는 영어 소문자, 숫자, 하이픈(-)만 쓸 수 있으며, 1~63자입니다",
	"prizes": fmt.Sprintf("경품은 %d개까지 정할 수 있으며, 혜택은 모두 합해 16 KiB까지 입력할 수 있습니다", firstcome.MaxPrizes), "prizes.name": "1자 이상, 200바이트까지 입력할 수 있습니다",
	"prizes.id": "영어 소문자, 숫자, 하이픈(-)만 1~63자로 쓸 수 있으며, 경품마다 달라야 합니다", "prizes.quantity": "1 이상의 정수여야 합니다",
	"user_id": fmt.Sprintf("고객 ID는 1~%d바이트이며, 제어 문자를 쓸 수 없습니다", firstcome.MaxUserID),
}
