package console

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

const (
	couponsPerPage = 50
	// maxVoids is the most coupons that one form voids. Each void is a change of its own.
	maxVoids = 500
)

// A couponsPage lists a campaign's coupons.
type couponsPage struct {
	Row     campaignRow
	Filter  couponFilter
	Rows    []couponRow
	None    string    // why there are no rows, if a code has a number without a coupon
	Prizes  bool      // the campaign has prizes
	Next    nextPrize // the rank and the prize of its next coupon
	More    string    // link to the next page
	Numbers string    // of the bulk void, as typed
	Reason  string
	Ask     *bulkVoid // what the bulk void would do
	Wrong   string
	// WrongField is the name of the field that is wrong, or empty if none is.
	WrongField string
	Version    int64
	OnWay      *int64 // issued and not in the ledger yet; nil if unknown
}

// Pending reports whether coupons are known to be on their way to the ledger.
func (p couponsPage) Pending() bool { return p.OnWay != nil && *p.OnWay > 0 }

// A bulkVoid is a preview of voiding several coupons.
type bulkVoid struct {
	Void    []firstcome.Coupon
	Already int64   // voided before
	None    []int64 // numbers without a coupon in the ledger
}

// Numbers returns the numbers that were shown, for the form that confirms the void. A coupon that is recorded later, within a typed range, is not
// among them.
func (b *bulkVoid) Numbers() string {
	numbers := make([]string, len(b.Void))
	for n := range b.Void {
		numbers[n] = strconv.FormatInt(b.Void[n].Number, 10)
	}
	return strings.Join(numbers, " ")
}

// couponHandlers list a campaign's coupons, and void several at once.
type couponHandlers struct{ *core }

func (c *couponHandlers) show(v *view) error {
	return c.render(v, http.StatusOK, couponsPage{})
}

func (c *couponHandlers) render(v *view, status int, page couponsPage) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	now := c.Watcher.Of(v.r.Context(), []ledger.Status{s})[0]
	page.Row, page.Version, page.OnWay = c.rowOf(v.r.Context(), &s, now), s.Version, now.Unrecorded
	page.Filter = v.couponFilter()
	rows, field, wrong, err := c.chosen(v, s.ID, page.Filter)
	if err != nil {
		return err
	}
	if wrong != "" {
		page.Wrong, page.WrongField, status = wrong, field, http.StatusUnprocessableEntity
	} else if len(rows) == 0 && page.Filter.Code != "" {
		if page.None, err = c.whyNone(v, &s, page.Filter.Code); err != nil {
			return err
		}
	}
	if len(rows) > couponsPerPage && page.Filter.User == "" && page.Filter.Code == "" {
		page.More = v.r.URL.Path + "?" + page.Filter.query(rows[couponsPerPage].Number)
		rows = rows[:couponsPerPage]
	}
	page.Prizes, page.Next = len(s.Prizes) > 0, nextPrizeOf(&s.Terms, &now)
	if page.Rows, err = c.rowsOf(v, s.ID, rows); err != nil {
		return err
	}
	return v.renderOf(tabsOf(&s, "coupons"), status, "coupons", v.say("발급 내역", "Coupons"), page)
}

// export sends all coupons of a campaign in a format that Excel opens, with the language and the zone of the page.
func (c *couponHandlers) export(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	return c.Excel(v.w, v.r, v.who.Actor, s, v.lang.zone, v.lang.language == korean)
}

// void previews a bulk void, and performs it once the campaign's name or ID was typed.
func (c *couponHandlers) void(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	page := couponsPage{Numbers: strings.TrimSpace(strings.Join(v.form["numbers"], " ")), Reason: v.form.Get("reason")}
	numbers, err := parseNumbers(page.Numbers)
	switch {
	case err != nil || len(numbers) == 0:
		page.WrongField, page.Wrong = "numbers", v.say("번호를 1,204 1,300-1,310 형식으로 입력하세요.", "Write numbers like 1204 1300-1310.")
	case len(numbers) > maxVoids:
		page.WrongField, page.Wrong = "numbers", v.say("한 번에 최대 %d장까지 회수할 수 있습니다.", "You can void at most %d at once.", maxVoids)
	}
	reason, err := v.reason()
	if err != nil && page.Wrong == "" {
		page.Wrong, page.WrongField = v.why(err), "reason"
	}
	if page.Wrong != "" {
		return c.render(v, http.StatusUnprocessableEntity, page)
	}
	if page.Ask, err = c.dryRun(v, s.ID, numbers); err != nil {
		return err
	}
	if !v.typed(&s) {
		if page.Wrong = v.notTyped(); page.Wrong != "" {
			page.WrongField = "typed"
		}
		return c.render(v, http.StatusOK, page)
	}
	if version, err := v.shownVersion(); err != nil || version != s.Version {
		return firstcome.ErrStale
	}
	for n, coupon := range page.Ask.Void {
		_, err := c.Operator.Void(v.r.Context(), v.who.Actor, s.ID, coupon.Number, reason)
		if err != nil && !errors.Is(err, firstcome.ErrAlreadyVoided) {
			page.Wrong = v.say("%d장을 회수한 뒤 중단되었습니다. 같은 번호로 다시 시도하면 나머지만 회수합니다.", "It stopped after %d coupons. Send the same numbers again to void the rest.", n)
			v.Log.Warn("a bulk void stopped", "campaign", s.ID, "done", n, "err", err)
			page.Ask = nil
			return c.render(v, http.StatusServiceUnavailable, page)
		}
	}
	return v.redirectDone(Root+"/campaigns/"+string(s.ID)+"/coupons", url.Values{"voided": {"yes"}}, "voided")
}

// dryRun returns the preview of voiding these numbers.
func (c *couponHandlers) dryRun(v *view, id firstcome.CampaignID, numbers []int64) (*bulkVoid, error) {
	would := &bulkVoid{}
	for _, number := range numbers {
		found, _, err := c.Ledger.Find(v.r.Context(), id, ledger.Choice{Number: number, Page: ledger.Page{Voided: true}})
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			would.None = append(would.None, number)
		case found[0].VoidedAt.IsZero():
			would.Void = append(would.Void, found[0])
		default:
			would.Already++
		}
	}
	return would, nil
}

var errNumbers = errors.New("these are no numbers")

// parseNumbers parses numbers, and ranges like 1300-1310, separated by whitespace. It returns each number once, in order, and stops
// shortly after maxVoids.
func parseNumbers(text string) (numbers []int64, err error) {
	for part := range strings.FieldsSeq(strings.ReplaceAll(text, ",", "")) {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseInt(low, 10, 64)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseInt(high, 10, 64)
		}
		if err != nil || first < 1 || last < first {
			return nil, errNumbers
		}
		for number := first; number <= last && len(numbers) <= maxVoids; number++ {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// A couponFilter selects coupons of a campaign, as typed in the form.
type couponFilter struct {
	From, To   string // numbers
	User, Code string
	Voided     bool // include voided coupons
	OnlyVoided bool // exclude all others
}

func (v *view) couponFilter() couponFilter {
	get := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	number := func(name string) string { return strings.ReplaceAll(get(name), ",", "") }
	return couponFilter{From: number("from"), To: number("to"), User: get("user_id"), Code: get("code"), Voided: get("voided") != "", OnlyVoided: get("voided") == "only"}
}

// read returns the ledger query and the highest number, or the field that is wrong and an error message.
func (f couponFilter) read(v *view) (ask ledger.Choice, to int64, field, wrong string) {
	from, err := numberOr(f.From, 1)
	if field = "from"; err == nil {
		field = "to"
		to, err = numberOr(f.To, math.MaxInt64)
	}
	if err != nil {
		return ask, 0, field, v.say("번호는 1 이상의 정수로 입력하세요.", "A number is a whole number from 1 up.")
	}
	ask.Page = ledger.Page{After: from - 1, Voided: f.Voided, OnlyVoided: f.OnlyVoided}
	if f.User != "" {
		if ask.User, err = firstcome.ParseUserID(f.User); err != nil {
			return ask, 0, "user_id", v.whyID("user_id", err)
		}
	}
	if f.Code != "" {
		if ask.Code, err = firstcome.ParseCode(f.Code); err != nil {
			return ask, 0, "code", v.lang.notCode()
		}
	}
	return ask, to, "", ""
}

// numberOr parses a coupon's number. If text is empty, it returns otherwise.
func numberOr(text string, otherwise int64) (int64, error) {
	if text == "" {
		return otherwise, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err == nil && number < 1 {
		err = errNumbers
	}
	return number, err
}

// query returns the filter as the query of a link, starting at another number.
func (f couponFilter) query(from int64) string {
	query := url.Values{"from": {strconv.FormatInt(from, 10)}}
	if f.To != "" {
		query.Set("to", f.To)
	}
	switch {
	case f.OnlyVoided:
		query.Set("voided", "only")
	case f.Voided:
		query.Set("voided", "yes")
	}
	return query.Encode()
}

// chosen returns the first coupons that match a filter. If there are more than a page holds, it returns one more.
func (c *couponHandlers) chosen(v *view, id firstcome.CampaignID, f couponFilter) (rows []firstcome.Coupon, field, wrong string, err error) {
	ask, to, field, wrong := f.read(v)
	if wrong != "" {
		return nil, field, wrong, nil
	}
	named := v.may(run) || ask.Chosen() // the API masks by the same rule
	keep := func(one firstcome.Coupon) error {
		if !named {
			one = one.Masked()
		}
		if one.Number <= to {
			rows = append(rows, one)
		}
		return nil
	}
	if !ask.Chosen() {
		ask.Limit = couponsPerPage + 1
		return rows, "", "", c.Ledger.Coupons(v.r.Context(), id, ask.Page, keep)
	}
	found, err := c.find(v, id, ask)
	if errors.Is(err, ledger.ErrOtherSecret) {
		return nil, "code", v.say("이 노드의 코드 비밀키가 캠페인의 것과 달라 코드로 찾을 수 없습니다. 고객 ID나 번호로 찾아보세요.", "This node has another code secret than the campaign, so it finds no code. Look for the user id or a number."), nil
	}
	for _, one := range found {
		_ = keep(one) // keep returns no error
	}
	return rows, "", "", err
}
