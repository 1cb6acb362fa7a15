package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/gate"
)

// A newPage asks for a campaign's terms.
type newPage struct {
	Form    newForm
	Wrong   map[string]string // by field
	Checked []doctor.Finding  // nil: not checked yet
	OpensAt time.Time         // as it was understood
	Terms   firstcome.Terms
}

// A newForm is what somebody typed.
type newForm struct {
	ID, Name, Quantity, OpensAt, ClosesAt, Answer, Line, PerSecond, Waitlist, Benefit, ValidFor, ValidUnit, ValidUntil string
}

// formTime is how a browser writes an instant without a zone: it is Seoul's.
const formTime = "2006-01-02T15:04:05"

func (c *campaignHandlers) showNew(v *view) error {
	page := newPage{Form: newForm{Answer: string(firstcome.Recorded), Line: "none", ValidUnit: validUnits[0].name}}
	if from := v.form.Get("clone"); from != "" {
		id, err := firstcome.ParseCampaignID(from)
		if err != nil {
			return firstcome.ErrNoCampaign
		}
		s, err := c.Ledger.Campaign(v.r.Context(), id)
		if err != nil {
			return err
		}
		page.Form = formOf(s.Terms)
		page.Form.OpensAt, page.Form.ClosesAt = "", "" // when it opens is for people to say
	}
	return v.render(http.StatusOK, "new", v.say("새 캠페인", "A new campaign"), page)
}

// A unit is one in which people type how long a coupon is valid.
type unit struct {
	name string
	of   time.Duration
}

// validUnits are the units, the largest first.
var validUnits = []unit{{"days", 24 * time.Hour}, {"hours", time.Hour}, {"minutes", time.Minute}, {"seconds", time.Second}}

// formOf returns the form of terms.
func formOf(t firstcome.Terms) newForm {
	f := newForm{
		Name: t.Name, Answer: string(t.Answer), Line: "none", Benefit: string(t.Benefit), ValidUnit: validUnits[0].name,
		OpensAt: typedTime(t.OpensAt), ClosesAt: typedTime(t.ClosesAt), ValidUntil: typedTime(t.ValidUntil),
	}
	if f.Benefit == "null" {
		f.Benefit = ""
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

// typedTime returns an instant as the form has it, or nothing for none.
func typedTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(seoul).Format(formTime)
}

// typedForm returns what somebody typed.
func (v *view) typedForm() newForm {
	get := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	return newForm{
		ID: get("id"), Name: get("name"), Quantity: get("quantity"), OpensAt: get("opens_at"), ClosesAt: get("closes_at"), Answer: get("answer"),
		Line: get("line"), PerSecond: get("per_second"), Waitlist: get("waitlist"), Benefit: get("benefit"),
		ValidFor: get("valid_for"), ValidUnit: get("valid_unit"), ValidUntil: get("valid_until"),
	}
}

// create shows what is understood first, with what to look at before it opens; the second time it makes the campaign.
func (c *campaignHandlers) create(v *view) error {
	page := newPage{Wrong: map[string]string{}, Form: v.typedForm()}
	id := page.read(v)
	status := http.StatusOK
	switch {
	case len(page.Wrong) > 0:
		status = http.StatusUnprocessableEntity
	case v.form.Get("step") == "create":
		if _, err := c.Operator.Create(v.r.Context(), v.who.Actor, id, page.Terms); err == nil {
			return v.doneAt(id, "created")
		} else if page.Wrong["id"] = c.taken(v, err); page.Wrong["id"] == "" {
			return err
		}
		status = http.StatusConflict
	default:
		page.Form.ID = string(id) // the form makes this one, also if it is sent twice
		page.Checked = c.checkList(v, &page)
	}
	return v.render(status, "new", v.say("새 캠페인", "A new campaign"), page)
}

// taken returns why a campaign cannot have an id; empty: that is not what an error says.
func (c *campaignHandlers) taken(v *view, err error) string {
	switch {
	case errors.Is(err, firstcome.ErrCampaignExists):
		return v.say("이 ID의 캠페인이 이미 있습니다.", "There is a campaign with this id.")
	case errors.Is(err, gate.ErrForgotten):
		return v.say("이 ID의 캠페인이 백업 복구로 원장에서 사라졌습니다. 코드가 겹치므로 다른 ID를 쓰세요.",
			"The ledger had a campaign with this id before a backup was restored, and its codes would come again: use another id.")
	}
	return ""
}

// read understands the form, and returns the campaign's id.
func (p *newPage) read(v *view) firstcome.CampaignID {
	f, t := &p.Form, &p.Terms
	t.Answer, t.Waitlist = firstcome.AnswerWhen(f.Answer), f.Waitlist != ""
	p.readInto(v, t)
	p.OpensAt = t.OpensAt
	var wrong string
	if t.Pace, wrong = v.formPace(); wrong != "" {
		p.Wrong["per_second"] = wrong
	}
	id, err := firstcome.ParseCampaignID(f.ID)
	if f.ID == "" {
		var made uuid.UUID
		if made, err = uuid.NewV7(); err == nil {
			id, err = firstcome.ParseCampaignID(made.String())
		}
	}
	if err != nil {
		p.Wrong["id"] = v.whyID("campaign", err)
	}
	p.refuse(v, t.Check())
	return id
}

// readInto puts into terms what the form says otherwise than they do, of those that may be changed while people claim. A form has less than
// terms may: it has no microseconds.
func (p *newPage) readInto(v *view, t *firstcome.Terms) {
	f, was := &p.Form, formOf(*t)
	t.Name = f.Name
	if f.Quantity != was.Quantity {
		t.Quantity = firstcome.Unlimited
		if f.Quantity != "" {
			n, err := strconv.ParseInt(strings.NewReplacer(",", "", " ", "").Replace(f.Quantity), 10, 64)
			if err != nil {
				p.Wrong["quantity"] = v.say("정수로 적어 주세요. 비우면 무제한입니다.", "Write a whole number, or nothing for unlimited.")
			}
			t.Quantity = n
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
		t.Benefit = p.benefit(v, f.Benefit)
	}
	if f.ValidFor != was.ValidFor || f.ValidUnit != was.ValidUnit {
		t.ValidFor = p.validFor(v, f)
	}
}

// benefit reads a text or JSON.
func (p *newPage) benefit(v *view, typed string) json.RawMessage {
	benefit := json.RawMessage(typed)
	switch {
	case typed == "":
		return nil
	case !json.Valid(benefit):
		benefit, _ = json.Marshal(typed) // a text is a benefit, too
	case !isPlain(benefit):
		p.Wrong["benefit"] = v.say("같은 이름이 두 번 있거나, 너무 깊거나, 글자가 깨졌습니다.", "A name is there twice, or it is nested too deep, or a character is broken.")
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
		p.Wrong["valid_for"] = v.say("1 이상의 정수로 적어 주세요.", "Write a whole number from 1 on.")
		return 0
	}
	return time.Duration(n) * validUnits[at].of
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

// instant reads a time of the form, which is Seoul's.
func (p *newPage) instant(v *view, field, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	for _, layout := range []string{formTime, formTime[:16]} {
		if at, err := time.ParseInLocation(layout, text, seoul); err == nil {
			return at.UTC()
		}
	}
	p.Wrong[field] = v.say("2026-12-01T10:00처럼 적어 주세요.", "Write it like 2026-12-01T10:00.")
	return time.Time{}
}

// refuse puts what is wrong with terms to its fields.
func (p *newPage) refuse(v *view, err error) {
	var field *firstcome.FieldError
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // Terms.Check joins them
		for _, one := range joined.Unwrap() {
			if errors.As(one, &field) && p.Wrong[field.Field] == "" {
				p.Wrong[field.Field] = v.fieldWrong(field)
			}
		}
	}
}

// checkList says what to look at before the campaign opens.
func (c *campaignHandlers) checkList(v *view, p *newPage) (found doctor.Findings) {
	t, now := &p.Terms, c.Clock()
	found.Hold(t.OpensAt.IsZero() || t.OpensAt.After(now), doctor.Warn, v.say("오픈", "opens"), v.say("시각을 확인하세요.", "Check the time."), "%s", c.opening(v, t.OpensAt, now))
	found.Hold(t.Quantity > 0, doctor.Fail, v.say("수량", "quantity"), v.say("한 장도 나가지 않습니다.", "Nobody will get one."), "%s", v.lang.quantity(t.Quantity))
	if !t.ClosesAt.IsZero() {
		found.Hold(t.ClosesAt.After(now), doctor.Fail, v.say("마감", "closes"), v.say("이미 지난 시각입니다.", "That is over already."), "%s", v.lang.both(t.ClosesAt))
	}
	if t.Pace != nil && t.Pace.PerSecond > 0 && t.Quantity != firstcome.Unlimited {
		takes := time.Duration(float64(t.Quantity) / float64(t.Pace.PerSecond) * float64(time.Second))
		from := now
		if t.OpensAt.After(now) {
			from = t.OpensAt
		}
		fits := t.ClosesAt.IsZero() || !from.Add(takes).After(t.ClosesAt)
		found.Hold(fits, doctor.Warn, v.say("속도", "pace"), v.say("마감 전에 다 나가지 않습니다.", "Not all are served before it closes."), "%s: %s", v.lang.pace(t.Pace), v.lang.span(takes))
	}
	found.Hold(len(t.Benefit) > 0, doctor.Warn, v.say("혜택", "benefit"), v.say("쿠폰이 무엇을 주는지 비어 있습니다.", "The coupon does not say what it is good for."), "%s", string(t.Benefit))
	if t.Answer == firstcome.Decided && c.Gate == nil {
		found.Add(doctor.OK, v.say("응답", "answered"), "", "%s", v.say("원장이 직접 결정하므로 결정과 기록이 같은 순간입니다.", "The ledger decides here, so decided and recorded are the same instant."))
	}
	found.Hold(!c.Auth.Open(), doctor.Warn, v.say("인증", "credentials"), v.say("키를 만들고 다시 시작하세요.", "Make a key and start again."), "%s", c.credentials(v))
	return found
}

func (c *campaignHandlers) credentials(v *view) string {
	if v.Auth.Open() {
		return v.say("개발 모드: 누구나 관리자입니다.", "development mode: everybody is admin")
	}
	return v.say("키나 토큰이 필요합니다.", "a key or a token is needed")
}

// opening returns when it opens, in Seoul and UTC, and how far that is.
func (c *campaignHandlers) opening(v *view, at, now time.Time) string {
	switch {
	case at.IsZero():
		return v.say("만드는 즉시 열립니다.", "It opens as soon as it is made.")
	case at.After(now):
		return v.lang.both(at) + " · " + v.say("%s 뒤", "in %s", v.lang.span(at.Sub(now)))
	}
	return v.lang.both(at) + " · " + v.say("이미 지났습니다. 만드는 즉시 열립니다.", "That is over: it opens as soon as it is made.")
}

// both returns an instant in Seoul and in UTC.
func (l language) both(at time.Time) string {
	return at.In(seoul).Format(toSecond) + l.say(" 서울", " Seoul") + " = " + utc(at) + " UTC"
}
