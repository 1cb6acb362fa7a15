package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A customerPage shows the result of a customer lookup.
type customerPage struct {
	User, Code, Campaign string // as typed
	Wrong                string
	Campaigns            []ledger.Status // the latest, to choose from
	Of                   *campaignRow    // nil if no campaign was named
	Left                 *int64          // coupons left in the campaign; nil if unlimited or unknown
	Found                []customerCoupon
	Place                *firstcome.Place
	Untold               bool   // the user's place is unknown: the line's log does not answer or lacks records
	Sentence             string // for support to copy; empty if there is nothing to say yet
	Asked                bool
	None                 string // why nothing was found; empty if something was, or if Sentence says why
	More                 bool   // the user has coupons of more campaigns than are shown
	// The form that issues a coupon shows why it failed, and the reason as typed.
	NotIssued, Reason string
}

// A customerCoupon is a coupon and its history.
type customerCoupon struct {
	firstcome.Coupon
	Lost   bool // the user was told of the coupon, but it is invalid: its gate's epoch had ended
	Events []event
}

// An event happened to a customer.
type event struct {
	What string
	At   time.Time // zero if unknown
	Note string
}

// walletRows is the most campaigns that a customer's page shows.
const walletRows = 50

// customerHandlers look up one customer, and issue and void their coupons.
type customerHandlers struct{ *core }

func (c *customerHandlers) show(v *view) error {
	get := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	page := customerPage{User: get("user_id"), Code: get("code"), Campaign: get("campaign")}
	status := http.StatusOK
	if page.User != "" || page.Code != "" {
		page.Asked = true
		if err := c.lookUp(v, &page); err != nil {
			return err
		}
	}
	page.Campaigns = c.choices(v)
	if page.Wrong != "" {
		status = http.StatusUnprocessableEntity
	}
	return v.render(status, "customer", v.say("고객 조회", "Customer lookup"), page)
}

// choices returns the campaigns that a form offers. It returns none if the ledger does not answer.
func (c *core) choices(v *view) []ledger.Status {
	found, err := c.Ledger.List(v.r.Context(), ledger.Listing{At: c.Clock(), Limit: campaignsPerPage})
	if err != nil {
		return nil
	}
	return found
}

// lookUp finds the coupons of a user, or of the user who holds a code.
func (c *customerHandlers) lookUp(v *view, page *customerPage) error {
	var user firstcome.UserID
	var code string
	var err error
	if page.User != "" {
		if user, err = firstcome.ParseUserID(page.User); err != nil {
			page.Wrong = v.whyID("user_id", err)
			return nil
		}
	}
	if page.Code != "" {
		if code, err = firstcome.ParseCode(page.Code); err != nil {
			page.Wrong = v.lang.notCode()
			return nil
		}
	}
	if page.Campaign == "" {
		if code != "" {
			page.Wrong = v.say("코드로 찾으려면 캠페인도 적어 주세요.", "Name the campaign, too, to look for a code.")
			return nil
		}
		return c.wallet(v, page, user)
	}
	id, err := firstcome.ParseCampaignID(page.Campaign)
	var s ledger.Status
	if err == nil {
		s, err = c.Ledger.Campaign(v.r.Context(), id)
	} else {
		err = firstcome.ErrNoCampaign
	}
	if errors.Is(err, firstcome.ErrNoCampaign) {
		var found []ledger.Status
		if found, err = c.Ledger.List(v.r.Context(), ledger.Listing{Text: page.Campaign, At: c.Clock(), Limit: 2}); err == nil && len(found) == 1 {
			s, id = found[0], found[0].ID
			page.Campaign = string(id)
		} else if err == nil {
			err = firstcome.ErrNoCampaign
		}
	}
	if errors.Is(err, firstcome.ErrNoCampaign) {
		page.Wrong = v.say("‘%s’는 캠페인 ID가 아닙니다. 목록에서 고르거나 ID를 적어 주세요.", "“%s” is no campaign's id. Choose one from the list, or write its id.", page.Campaign)
		return nil
	}
	if err != nil {
		return err
	}
	now := c.Watcher.Of(v.r.Context(), []ledger.Status{s})[0]
	row := rowOf(&s, now)
	page.Of, page.Left = &row, left(now)
	if code != "" {
		found, err := c.find(v, id, ledger.Choice{Code: code, Page: ledger.Page{Voided: true}})
		if err != nil {
			return err
		}
		if len(found) == 0 { // only the ledger finds a code
			page.None = customerWords{v.lang, v.Clock()}.noSuchCode(now.Unrecorded)
			return nil
		}
		user = found[0].User
	}
	return c.inCampaign(v, page, &s, user)
}

// notCode returns the error message for an invalid code.
func (l language) notCode() string {
	return l.say("쿠폰 코드는 U를 뺀 글자와 숫자 16자입니다.", "A coupon code has 16 letters and digits, without U.")
}

// customerWords writes the sentences about a customer in one language.
type customerWords struct {
	locale
	now time.Time
}

// noSuchCode says that the ledger has no coupon with the code. onWay is the number of unrecorded coupons, or nil if unknown.
func (w customerWords) noSuchCode(onWay *int64) string {
	none := w.say("원장에 이 코드의 쿠폰이 없습니다.", "The ledger has no coupon with this code.")
	switch {
	case onWay == nil:
		return none + " " + w.say("원장으로 오고 있는 쿠폰이 더 있는지 지금은 알 수 없습니다. 고객 ID로 찾아보세요.", "Whether more are on their way to the ledger is not known now: look for the user id.")
	case *onWay > 0:
		return none + " " + w.say("원장으로 오고 있는 쿠폰이 %s장 있습니다. 잠시 뒤 다시 찾거나 고객 ID로 찾아보세요.", "On their way to the ledger: %s. Look again in a moment, or look for the user id.", w.number(onWay))
	}
	return none + " " + w.say("코드를 다시 확인하세요.", "Check the code.")
}

// find looks up coupons in all parts of the campaign.
func (c *core) find(v *view, id firstcome.CampaignID, choice ledger.Choice) ([]firstcome.Coupon, error) {
	for {
		found, next, err := c.Ledger.Find(v.r.Context(), id, choice)
		if err != nil || len(found) > 0 || next == 0 {
			return found, err
		}
		choice.After = next
	}
}

// wallet finds a user's coupons in force in all campaigns.
func (c *customerHandlers) wallet(v *view, page *customerPage, user firstcome.UserID) error {
	found, err := c.Ledger.Wallet(v.r.Context(), user, "", walletRows+1)
	if err != nil {
		return err
	}
	page.More = len(found) > walletRows
	for _, coupon := range found[:min(len(found), walletRows)] {
		page.Found = append(page.Found, customerCoupon{Coupon: coupon, Events: customerWords{v.lang, v.Clock()}.happened(coupon, time.Time{}, nil, nil)})
	}
	if len(found) == 0 {
		page.None = v.say("이 고객의 유효한 쿠폰이 원장에 없습니다. 방금 발급된 쿠폰은 잠시 뒤에 기록됩니다. 캠페인도 적으면 게이트에서도 찾고 이유를 알려 줍니다.", "The ledger has no coupon in force of this user. One that was just issued is recorded a moment later. Name the campaign, too: then the gate is asked, and you see why.")
	}
	return nil
}

// inCampaign finds a user's coupons, place and history in one campaign.
func (c *customerHandlers) inCampaign(v *view, page *customerPage, s *ledger.Status, user firstcome.UserID) error {
	ctx := v.r.Context()
	found, err := c.find(v, s.ID, ledger.Choice{User: user, Page: ledger.Page{Voided: true}})
	if err != nil {
		return err
	}
	var place firstcome.Place
	var held firstcome.Coupon
	if err = firstcome.ErrNoTicket; page.Of.Why == "" { // if the gate decides nothing, only the ledger is read
		place, held, err = c.Places.Place(ctx, s.ID, user)
	}
	switch {
	case errors.Is(err, firstcome.ErrNoTicket):
	case errors.Is(err, firstcome.ErrLineLogAway), errors.Is(err, firstcome.ErrLineLogLost):
		page.Untold = true
	case err != nil:
		return err
	case held.Number == 0:
		page.Place = &place
	default:
		known := false
		for _, coupon := range found {
			known = known || coupon.Number == held.Number
		}
		if !known { // issued, but not in the ledger yet
			found = append(found, held)
		}
	}
	log, err := c.Ledger.AuditLog(ctx, ledger.LogFilter{Campaign: s.ID, User: user, Limit: 100})
	if err != nil {
		return err
	}
	names, err := c.keyNames(v)
	if err != nil {
		return err
	}
	for _, coupon := range found {
		var issued, voided *recordLine
		for n := range log {
			line := v.lang.lineOf(&log[n], names)
			switch {
			case log[n].Number != coupon.Number:
			case strings.HasSuffix(log[n].Action, ".void"):
				voided = &line
			case log[n].Action == ledger.CouponIssue:
				issued = &line
			}
		}
		steps, err := c.Ledger.StepsAt(ctx, s.ID, []int64{coupon.Number})
		if err != nil {
			return err
		}
		var recorded time.Time
		if len(steps) > 0 {
			recorded = steps[0].RecordedAt
		}
		page.Found = append(page.Found, customerCoupon{Coupon: coupon, Events: customerWords{v.lang, v.Clock()}.happened(coupon, recorded, issued, voided)})
	}
	for n := range log {
		if lost, is := (customerWords{v.lang, v.Clock()}).lostOf(&log[n]); is {
			page.Found = append(page.Found, lost)
		}
	}
	page.User = string(user)
	page.Sentence = customerWords{v.lang, v.Clock()}.sentence(s, page)
	return nil
}

// lostOf returns the lost coupon that an audit log entry describes. It returns false if the entry describes none.
func (w customerWords) lostOf(e *ledger.LogEntry) (c customerCoupon, is bool) {
	var detail struct {
		Code     string `json:"code"`
		IssuedAt int64  `json:"issued_at"`
	}
	if e.Action != ledger.CouponLost || json.Unmarshal(e.Detail, &detail) != nil {
		return c, false
	}
	c.Coupon = firstcome.Coupon{Campaign: e.Campaign, Number: e.Number, User: e.User, Code: detail.Code, IssuedAt: time.UnixMicro(detail.IssuedAt).UTC()}
	c.Lost = true
	c.Events = []event{
		{What: w.say("발급되었습니다: 번호 %s", "was issued number %s", w.number(c.Number)), At: c.IssuedAt},
		{What: w.say("이전 Redis에서 발급되어 무효가 된 번호입니다. 고객은 다시 신청할 수 있습니다", "was lost: the gate that gave it was one whose epoch had ended. The customer may claim again"), At: e.At},
	}
	return c, true
}

// happened returns the history of a coupon, in order. issued and voided are the audit log's lines of its direct issue and its void, or nil. They
// say who did it and why.
func (w customerWords) happened(c firstcome.Coupon, recorded time.Time, issued, voided *recordLine) (events []event) {
	if c.Ticket > 0 {
		events = append(events, event{What: w.say("대기열에 들어왔습니다: 순번 %s", "stood in line: ticket %s", w.number(c.Ticket))})
	}
	e := event{What: w.say("발급되었습니다: 번호 %s", "was issued number %s", w.number(c.Number)), At: c.IssuedAt}
	if c.Direct {
		e.What = w.say("직접 발급되었습니다: 번호 %s", "was issued number %s directly", w.number(c.Number))
	}
	if issued != nil {
		e.Note = issued.by()
	}
	events = append(events, e)
	switch {
	case !recorded.IsZero():
		events = append(events, event{What: w.say("원장에 기록되었습니다", "was recorded in the ledger"), At: recorded})
	case !c.Recorded:
		events = append(events, event{What: w.say("원장에 기록되는 중입니다", "is on its way to the ledger")})
	}
	if !c.VoidedAt.IsZero() {
		e := event{What: w.say("회수되었습니다", "was voided"), At: c.VoidedAt}
		if voided != nil {
			e.Note = voided.by()
		}
		events = append(events, e)
	}
	return events
}

// sentence returns the sentence that support may tell the customer.
func (w customerWords) sentence(s *ledger.Status, page *customerPage) string {
	var voided, lost *firstcome.Coupon
	for n := range page.Found {
		c := &page.Found[n].Coupon
		if page.Found[n].Lost {
			lost = c
			continue
		}
		if c.VoidedAt.IsZero() {
			return w.say("고객님은 %s에 ‘%s’ 쿠폰(번호 %s)을 받으셨습니다. 코드는 %s입니다.", "You got number %[3]s of “%[2]s” at %[1]s. Your code is %[4]s.",
				w.spoken(w.now, c.IssuedAt), s.Name, w.number(c.Number), c.Code)
		}
		voided = c
	}
	of := page.Of
	switch {
	case page.Place != nil:
		return w.say("고객님은 지금 대기열에 계십니다. 순번은 %s, 앞에 최대 %s명이 있습니다.", "You are in line: your ticket is %s, and at most %s people are ahead of you.",
			w.number(page.Place.Ticket), w.number(page.Place.Ahead))
	case voided != nil:
		return w.say("고객님이 받으셨던 ‘%s’ 쿠폰(번호 %s)은 %s에 회수되었습니다.", "Your coupon number %[2]s of “%[1]s” was taken back at %[3]s.", s.Name, w.number(voided.Number), w.spoken(w.now, voided.VoidedAt))
	case lost != nil:
		return w.say("고객님이 %s에 안내받으신 ‘%s’ 쿠폰(번호 %s)은 저희 장애로 남지 않았습니다. 죄송합니다.", "Number %[3]s of “%[2]s”, which you were told at %[1]s, was lost because of a failure on our side. We are sorry.", w.spoken(w.now, lost.IssuedAt), s.Name, w.number(lost.Number))
	case page.Untold:
		return w.none(s) + " " + w.say("대기하고 계신지는 지금 확인할 수 없습니다. 잠시 뒤 다시 확인해 드리겠습니다.", "Whether you are in line cannot be told now. We will look again in a moment.")
	case of.Why != "":
		return w.say(stopWords[of.Why].ko, stopWords[of.Why].en, s.Name) + " " + w.say("고객님이 받으셨는지 아직 알 수 없습니다. 잠시 뒤 다시 확인해 드리겠습니다.", "So we do not know yet whether you have a coupon. We will look again in a moment.")
	}
	return w.none(s) + " " + w.chance(s, page)
}

// stopWords has, for each word of figures.Whys about the gate, the sentence that tells a customer why the gate's decisions are unknown.
var stopWords = map[string]sentence{
	"silent":     {"‘%s’ 쿠폰을 결정하는 서버가 지금 응답하지 않습니다.", "What decides “%s” does not answer now."},
	"unverified": {"‘%s’ 쿠폰을 결정하는 서버가 복구되는 중입니다.", "What decides “%s” is recovering."},
	"rebuilding": {"‘%s’ 쿠폰을 결정하는 서버가 복구되는 중입니다.", "What decides “%s” is recovering."},
	"lost":       {"‘%s’ 쿠폰을 결정하는 서버에 문제가 있습니다.", "What decides “%s” is out of order."},
	"older":      {"‘%s’ 쿠폰을 결정하는 서버에 문제가 있습니다.", "What decides “%s” is out of order."},
	"behind":     {"‘%s’ 쿠폰을 결정하는 서버에 문제가 있습니다.", "What decides “%s” is out of order."},
	"creating":   {"‘%s’ 쿠폰은 아직 준비되지 않았습니다.", "“%s” is not ready yet."},
	"mismatch":   {"저희가 보고 있는 서버는 ‘%s’ 쿠폰을 결정하지 않습니다.", "The server that we look at does not decide “%s”."},
}

// none returns the sentence that the customer has no coupon of a campaign.
func (w customerWords) none(s *ledger.Status) string {
	return w.say("고객님은 ‘%s’ 쿠폰을 가지고 계시지 않습니다. 받지 못한 신청은 기록하지 않습니다.", "You have no coupon of “%s”. Refused claims are not recorded.", s.Name)
}

// chance returns the sentence on what a claim would get now.
func (w customerWords) chance(s *ledger.Status, page *customerPage) string {
	of := page.Of
	if told := endingOf(of.State).told; told != (sentence{}) {
		return w.words(told)
	}
	switch {
	case of.State == "sold_out" && of.SoldOutAt.IsZero():
		return w.say("쿠폰은 모두 나갔습니다.", "All coupons are gone.")
	case of.State == "sold_out":
		return w.say("쿠폰은 모두 나갔습니다. 처음 소진된 시각은 %s입니다.", "All coupons are gone. They first sold out at %s.", w.spoken(w.now, of.SoldOutAt))
	case of.State == "not_open":
		return w.say("쿠폰은 %s에 열립니다.", "It opens at %s.", w.spoken(w.now, s.OpensAt))
	case s.Pace != nil || of.Waiting != nil && *of.Waiting > 0: // a removed line exists until it is empty
		return w.say("대기열에 들어오실 수 있습니다.", "You may join the line.")
	case s.Quantity == firstcome.Unlimited:
		return w.say("쿠폰은 수량 제한 없이 열려 있습니다.", "It is open, without a limit.")
	}
	return w.say("지금 %s장이 남아 있습니다.", "Coupons left now: %s.", w.number(page.Left))
}

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
		page.Asked = true
		if err := c.lookUp(v, &page); err != nil {
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
	return v.redirectDone(Root+"/customer", query, "voided")
}
