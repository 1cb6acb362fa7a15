package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A newPage asks for a campaign's terms.
type newPage struct {
	Form    newForm
	Wrong   map[string]string // by field
	Checked []doctor.Finding  // nil if not checked yet
	OpensAt time.Time         // as the form was understood
	Terms   firstcome.Terms
	Fixed   bool // the campaign has given a number: prizes stay
}

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
		page.Form = v.lang.formOf(s.Terms)
		page.Form.OpensAt, page.Form.ClosesAt = "", "" // a person must choose new times
	}
	return v.render(http.StatusOK, "new", v.say("새 캠페인", "Create a campaign"), page)
}

// create first shows how the form was understood, with a checklist for the opening. The second time it creates the campaign.
func (c *campaignHandlers) create(v *view) error {
	page := newPage{Wrong: map[string]string{}, Form: v.typedForm()}
	if page.Form.arranges(v) {
		return v.render(http.StatusOK, "new", v.say("새 캠페인", "Create a campaign"), page)
	}
	id := page.read(v, c.Clock())
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
		page.Form.ID = string(id) // if the form is sent twice, both name the same campaign
		page.Checked = c.checkList(v, &page)
	}
	return v.render(status, "new", v.say("새 캠페인", "Create a campaign"), page)
}

// taken returns why a campaign cannot have an id. It returns "" if the error has another cause.
func (c *campaignHandlers) taken(v *view, err error) string {
	switch {
	case errors.Is(err, firstcome.ErrCampaignExists):
		return v.say("이미 사용 중인 캠페인 ID입니다.", "There is a campaign with this id.")
	case errors.Is(err, gate.ErrLedgerForgot):
		return v.say("이 ID의 캠페인이 백업 복원으로 원장에서 사라졌습니다. 쿠폰 코드가 겹칠 수 있으니 다른 ID를 사용하세요.",
			"The ledger had a campaign with this id before a backup was restored, and its codes would come again: use another id.")
	}
	return ""
}

// read parses the form, and returns the campaign's id.
func (p *newPage) read(v *view, now time.Time) firstcome.CampaignID {
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
	p.refuse(v, t.CheckChange(firstcome.Terms{}, now))
	return id
}

// refuse puts each error about the terms beside its field.
func (p *newPage) refuse(v *view, err error) {
	var field *firstcome.FieldError
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // Terms.Check joins them
		for _, one := range joined.Unwrap() {
			if errors.As(one, &field) && p.Wrong[inputOf.Replace(field.Field)] == "" {
				p.Wrong[inputOf.Replace(field.Field)] = v.fieldWrong(field)
			}
		}
	}
}

// checkList returns what to check before the campaign opens.
func (c *campaignHandlers) checkList(v *view, p *newPage) (found doctor.Findings) {
	t, now := &p.Terms, c.Clock()
	found.Add(doctor.OK, v.say("이름", "name"), "", "%s", t.Name)
	found.Hold(t.OpensAt.IsZero() || t.OpensAt.After(now), doctor.Warn, v.say("오픈", "opens"), v.say("시각이 맞는지 확인하세요.", "Check the time."), "%s", c.opening(v, t.OpensAt, now))
	found.Hold(t.Quantity > 0, doctor.Fail, v.say("수량", "quantity"), v.say("쿠폰이 한 장도 발급되지 않습니다.", "No coupon will be issued."), "%s", v.lang.quantity(t.Quantity))
	if !t.ClosesAt.IsZero() {
		found.Hold(t.ClosesAt.After(now), doctor.Fail, v.say("마감", "closes"), v.say("이미 지난 시각입니다.", "This time has passed."), "%s", v.lang.both(t.ClosesAt))
	}
	holdExpiry(v, &found, t)
	if t.ValidFor > 0 {
		found.Add(doctor.OK, v.say("유효 기간", "valid for"), "", "%s", v.say("발급 시점부터 %s", "%s from the issue", v.lang.lasting(t.ValidFor)))
	}
	if t.Pace != nil && t.Pace.PerSecond > 0 && t.Quantity != firstcome.Unlimited {
		takes := time.Duration(float64(t.Quantity) / float64(t.Pace.PerSecond) * float64(time.Second))
		from := now
		if t.OpensAt.After(now) {
			from = t.OpensAt
		}
		fits := t.ClosesAt.IsZero() || !from.Add(takes).After(t.ClosesAt)
		found.Hold(fits, doctor.Warn, v.say("속도", "pace"), v.say("마감 전에 모두 발급되지 않습니다.", "The line is not fully served before the campaign closes."),
			"%s", v.say("%s (전량 발급까지 약 %s)", "%s (about %s until all are issued)", v.lang.pace(t.Pace), v.lang.span(takes)))
	}
	if t.Pace != nil && (t.Pace.PerSecond == 0 || t.Quantity == firstcome.Unlimited) {
		found.Add(doctor.OK, v.say("속도", "pace"), "", "%s", v.lang.pace(t.Pace))
	}
	if t.Waitlist {
		found.Add(doctor.OK, v.say("예비 대기", "waitlist"), "", "%s", v.say("소진된 뒤에도 대기열을 유지하고, 회수된 쿠폰을 다음 사람에게 발급합니다.", "The line stays after the sell-out, and a voided coupon goes to the next user."))
	}
	holdBenefit(v, &found, t)
	answered := v.lang.answered(t.Answer)
	if t.Answer == firstcome.Decided && c.Gate == nil {
		answered = v.say("원장이 직접 결정하므로 결정과 동시에 기록됩니다.", "The ledger decides here, so decided and recorded are the same instant.")
	}
	found.Hold(t.Answer != firstcome.Decided || c.Gate == nil, doctor.Warn, v.say("응답 시점", "answered when"),
		v.say("Redis가 데이터를 잃으면, 고객에게 안내한 쿠폰이 유실될 수 있습니다.", "If Redis loses data, coupons that customers were told of can be lost."), "%s", answered)
	needed := v.say("키나 토큰이 필요합니다.", "A key or a token is needed.")
	if c.Auth.Open() {
		needed = v.say("개발 모드: 누구나 관리자입니다.", "Development mode: everybody is admin.")
	}
	found.Hold(!c.Auth.Open(), doctor.Warn, v.say("인증", "credentials"), v.say("키를 만들고 서버를 다시 시작하세요.", "Create a key and restart."), "%s", needed)
	return found
}

// opening returns the instant of the opening in the zone and in UTC, and how far away it is.
func (c *campaignHandlers) opening(v *view, at, now time.Time) string {
	switch {
	case at.IsZero():
		return v.say("만드는 즉시 오픈됩니다.", "It opens as soon as it is created.")
	case at.After(now):
		return v.lang.both(at) + " · " + v.say("%s 뒤", "in %s", v.lang.span(at.Sub(now)))
	}
	return v.lang.both(at) + " · " + v.say("이미 지난 시각이므로, 만드는 즉시 오픈됩니다.", "This time has passed: it opens as soon as it is created.")
}

// A termsPage shows all terms of a campaign, and who changed what.
type termsPage struct {
	newPage  // the terms that may change, as they are or as typed
	Row      campaignRow
	Version  int64
	Closed   bool
	Answered string
	Pace     string
	Waitlist bool
	Terms    []changed // all terms of a closed campaign
	Changes  []changed // the requested changes, which need the campaign's name typed
	Typed    []field   // the requested changes, as fields of the form
	NotTyped string
	Note     string
	Told     []told       // the announcement, in both languages
	Lines    []recordLine // the latest changes
}

// A told is a text in one of the languages.
type told struct {
	Language language
	Text     string
}

// changesShown is how many changes the page shows.
const changesShown = 10

func (c *campaignHandlers) showTerms(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	return c.renderTerms(v, http.StatusOK, &s, &termsPage{newPage: newPage{Form: v.lang.formOf(s.Terms)}})
}

func (c *campaignHandlers) renderTerms(v *view, status int, s *ledger.Status, page *termsPage) error {
	now := c.Watcher.Of(v.r.Context(), []ledger.Status{*s})[0]
	page.Row, page.Version, page.Closed, page.Waitlist = c.rowOf(v.r.Context(), s, now), s.Version, s.Closed, s.Waitlist
	page.Fixed = now.Ranks != nil && *now.Ranks > 0 || s.Rank(s.LastNumber) > 0
	page.Answered, page.newPage.Terms = v.lang.answered(s.Answer), s.Terms
	page.Pace, page.Terms = v.lang.pace(s.Pace), v.lang.differences(nil, &s.Terms)
	for _, l := range languages {
		page.Told = append(page.Told, told{l, locale{l, v.lang.zone}.announcement(c.Clock(), &s.Terms)})
	}
	entries, err := c.Ledger.AuditLog(v.r.Context(), ledger.LogFilter{Campaign: s.ID, Limit: changesShown})
	if err != nil {
		return err
	}
	names, err := c.keyNames(v)
	if err != nil {
		return err
	}
	for n := range entries {
		page.Lines = append(page.Lines, v.lang.lineOf(&entries[n], names))
	}
	return v.renderOf(tabsOf(s, "terms"), status, "terms", v.say("조건", "Terms"), page)
}

// changeTerms previews a change of terms, and makes it once the campaign's name or ID was typed.
func (c *campaignHandlers) changeTerms(v *view) error {
	s, version, err := v.shownStatus()
	if err != nil {
		return err
	}
	page := termsPage{newPage: newPage{Form: v.typedForm(), Wrong: map[string]string{}}}
	if page.Form.arranges(v) {
		return c.renderTerms(v, http.StatusOK, &s, &page)
	}
	asked := s.Terms
	page.readInto(v, &asked)
	page.refuse(v, asked.CheckChange(s.Terms, c.Clock()))
	if len(page.Wrong) > 0 {
		return c.renderTerms(v, http.StatusUnprocessableEntity, &s, &page)
	}
	changes := v.lang.differences(&s.Terms, &asked)
	switch {
	case version != s.Version:
		return firstcome.ErrStale
	case len(changes) == 0:
		page.Note = v.say("변경할 내용이 없습니다.", "Nothing would change.")
		return c.renderTerms(v, http.StatusOK, &s, &page)
	case !v.typed(&s):
		page.Changes, page.Typed, page.NotTyped = changes, typedFields(v.form), v.notTyped()
		return c.renderTerms(v, http.StatusUnprocessableEntity, &s, &page)
	}
	_, err = c.Operator.SetTerms(v.r.Context(), v.who.Actor, s.ID, version, func(t *firstcome.Terms) { page.readInto(v, t) })
	if err != nil {
		return err
	}
	return v.saidAt(s.ID, c.termsSet(&s.Terms, &asked))
}

// termsSet returns the sentence about new terms, which names those that are new.
func (c *core) termsSet(before, after *firstcome.Terms) sentence {
	in := func(l language) string {
		var names []string
		for _, one := range c.locale(l).differences(before, after) {
			names = append(names, one.Name)
		}
		return l.say("조건을 변경했습니다: %s", "Changed: %s", strings.Join(names, ", "))
	}
	return sentence{in(korean), in(english)}
}

// typedFields returns the fields of a form of terms, for the form that confirms it.
func typedFields(form url.Values) (all []field) {
	for name, values := range form {
		if name != "version" && name != "typed" {
			all = append(all, field{Name: name, Value: values[0]})
		}
	}
	slices.SortFunc(all, func(a, b field) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
