package console

import (
	"errors"
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
	// maxVoids is how many coupons are voided at once: each is a change of its own.
	maxVoids = 500
)

// A couponsPage lists a campaign's coupons.
type couponsPage struct {
	Row     campaignRow
	Filter  couponFilter
	Rows    []firstcome.Coupon
	More    string // link to the next ones
	Numbers string // of the bulk void, as typed
	Reason  string
	Ask     *bulkVoid // what it would do
	Wrong   string
	Version int64
	OnWay   *int64 // issued and not in the ledger yet; nil: unknown
}

// Pending tells whether coupons are known to be on their way to the ledger.
func (p couponsPage) Pending() bool { return p.OnWay != nil && *p.OnWay > 0 }

// A bulkVoid is what voiding many coupons would do.
type bulkVoid struct {
	Void    []firstcome.Coupon
	Already int64   // voided before
	None    []int64 // numbers without a coupon in the ledger
}

// Numbers returns the numbers that were shown, for the form that confirms them. A coupon that is recorded later, within a range that was
// typed, is not among them.
func (b *bulkVoid) Numbers() string {
	numbers := make([]string, len(b.Void))
	for n := range b.Void {
		numbers[n] = strconv.FormatInt(b.Void[n].Number, 10)
	}
	return strings.Join(numbers, " ")
}

func (c *Console) showCoupons(v *view) error {
	return c.renderCoupons(v, http.StatusOK, couponsPage{})
}

func (c *Console) renderCoupons(v *view, status int, page couponsPage) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	now := c.Watcher.Of(v.r.Context(), []ledger.Status{s})[0]
	page.Row, page.Version, page.OnWay = rowOf(&s, now), s.Version, now.Unrecorded
	page.Filter = v.couponFilter()
	rows, wrong, err := c.coupons(v, s.ID, page.Filter)
	if err != nil {
		return err
	}
	if page.Rows = rows; wrong != "" {
		page.Wrong, status = wrong, http.StatusUnprocessableEntity
	}
	if len(rows) > couponsPerPage && page.Filter.User == "" && page.Filter.Code == "" {
		page.Rows, page.More = rows[:couponsPerPage], v.r.URL.Path+"?"+page.Filter.query(rows[couponsPerPage].Number)
	}
	return v.renderOf(tabsOf(&s, "coupons"), status, "coupons", v.say("발급 내역", "Coupons"), page)
}

// exportCoupons answers with all of a campaign's coupons as Excel opens them in Korean.
func (c *Console) exportCoupons(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	return c.Excel(v.w, v.r, v.who.Actor, s)
}

// voidCoupons shows what a bulk void would do, and does it when the campaign's name or id was typed.
func (c *Console) voidCoupons(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	page := couponsPage{Numbers: strings.TrimSpace(strings.Join(v.form["numbers"], " ")), Reason: v.form.Get("reason")}
	numbers, err := parseNumbers(page.Numbers)
	switch {
	case err != nil || len(numbers) == 0:
		page.Wrong = v.say("번호를 1,204 1,300-1,310처럼 적어 주세요.", "Write numbers like 1204 1300-1310.")
	case len(numbers) > maxVoids:
		page.Wrong = v.say("한 번에 %d장까지입니다.", "At most %d at once.", maxVoids)
	}
	reason, err := v.reason()
	if err != nil && page.Wrong == "" {
		page.Wrong = v.why(err)
	}
	if page.Wrong != "" {
		return c.renderCoupons(v, http.StatusUnprocessableEntity, page)
	}
	if page.Ask, err = c.dryRun(v, s.ID, numbers); err != nil {
		return err
	}
	if !v.typed(&s) {
		page.Wrong = v.notTyped()
		return c.renderCoupons(v, http.StatusOK, page)
	}
	if version, err := v.shownVersion(); err != nil || version != s.Version {
		return firstcome.ErrStale
	}
	for n, coupon := range page.Ask.Void {
		_, err := c.Operator.Void(v.r.Context(), v.who.Actor, s.ID, coupon.Number, reason)
		if err != nil && !errors.Is(err, firstcome.ErrAlreadyVoided) {
			page.Wrong = v.say("%d장을 회수한 뒤 멈췄습니다. 같은 번호로 다시 하면 남은 것만 회수합니다.", "It stopped after %d. The same numbers again void only what is left.", n)
			v.Log.Warn("a bulk void stopped", "campaign", s.ID, "done", n, "err", err)
			page.Ask = nil
			return c.renderCoupons(v, http.StatusServiceUnavailable, page)
		}
	}
	return v.leadDone(Root+"/campaigns/"+string(s.ID)+"/coupons", url.Values{"voided": {"yes"}}, "voided")
}

// dryRun returns what voiding these numbers would do.
func (c *Console) dryRun(v *view, id firstcome.CampaignID, numbers []int64) (*bulkVoid, error) {
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

// parseNumbers reads numbers, and ranges like 1300-1310, with blanks or line ends between. It returns each once, in order, and
// not many more than maxVoids.
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
