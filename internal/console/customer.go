package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A customerPage says what support may tell a person: see lookUp.
type customerPage struct {
	Q, Campaign   string // as typed, or the campaign that was found
	Wrong         string
	WrongCampaign bool             // Wrong is about the campaign
	Campaigns     []ledger.Status  // the latest, to choose from
	User          string           // whom the answer is about; empty if it is about a campaign, or about nobody
	Of            *campaignRow     // nil if no campaign was named
	Status        *ledger.Status   // of the same campaign
	Left          *int64           // coupons left in the campaign; nil if unlimited or unknown
	Next          nextPrize        // the rank and the prize of its next coupon
	Found         []customerCoupon // of the user in this campaign, voided and lost ones too
	Others        []customerCoupon // in force, of other campaigns
	Place         *firstcome.Place
	Stays         []gate.Stay
	Lined         bool // the campaign has or had a line
	Untold        bool // the user's place is unknown: the line's log does not answer or lacks records
	Unread        bool // only the ledger was read
	Answer        string
	Events        []event
	None          string // why nothing was found; empty if something was, or if Answer says why
	More          bool   // the user has coupons of more campaigns than are shown
	// The form that issues a coupon shows why it failed, and the reason as typed.
	NotIssued, Reason string
}

// A customerCoupon is a coupon, and what support may tell its user.
type customerCoupon struct {
	firstcome.Coupon
	couponPrize
	Name     string // of its campaign
	Lost     bool   // the user was told of the coupon, but it is invalid: its gate's epoch had ended
	Expired  bool
	Sentence string
}

// walletRows is the most campaigns that a customer's page shows.
const walletRows = 50

// customerHandlers look up one customer, and issue and void their coupons.
type customerHandlers struct{ *core }

// campaignCookie has the campaign that was looked at last.
const campaignCookie = "firstcome_campaign"

// show answers a look-up. Links may still say user_id or code instead of q: then the text is nothing else.
func (c *customerHandlers) show(v *view) error {
	get := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	page, as := customerPage{Q: get("q"), Campaign: get("campaign")}, readings{true, true, true}
	if user := get("user_id"); page.Q == "" && user != "" {
		page.Q, as = user, readings{user: true}
	} else if code := get("code"); page.Q == "" && code != "" {
		page.Q, as = code, readings{code: true}
	}
	if last, err := v.r.Cookie(campaignCookie); err == nil && !v.form.Has("campaign") && !v.form.Has("user_id") {
		if id, err := firstcome.ParseCampaignID(last.Value); err == nil {
			page.Campaign = string(id)
		}
	}
	if page.Q != "" {
		if err := c.lookUp(v, &page, as); err != nil {
			return err
		}
	}
	if page.Wrong == "" && v.form.Has("campaign") || page.Of != nil {
		v.remember(page.Campaign)
	}
	page.Campaigns = c.choices(v)
	status := http.StatusOK
	if page.Wrong != "" {
		status = http.StatusUnprocessableEntity
	}
	return v.render(status, "customer", v.say("고객 조회", "Customer lookup"), page)
}

// remember keeps the campaign for the next look-up, or forgets it if it is empty.
func (v *view) remember(campaign string) {
	cookie := http.Cookie{Name: campaignCookie, Value: campaign, Path: Root, MaxAge: 30 * 24 * 60 * 60, HttpOnly: true, Secure: v.Secure, SameSite: http.SameSiteLaxMode}
	if campaign == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(v.w, &cookie)
}

// choices returns the campaigns that a form offers. It returns none if the ledger does not answer.
func (c *core) choices(v *view) []ledger.Status {
	found, err := c.Ledger.List(v.r.Context(), ledger.Listing{At: c.Clock(), Limit: campaignsPerPage})
	if err != nil {
		return nil
	}
	return found
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

// wallet finds a user's coupons in force in all campaigns but the page's.
func (c *customerHandlers) wallet(v *view, page *customerPage, user firstcome.UserID) error {
	found, err := c.Ledger.Wallet(v.r.Context(), user, "", walletRows+1)
	if err != nil {
		return err
	}
	page.More = len(found) > walletRows
	for _, coupon := range found[:min(len(found), walletRows)] {
		if page.Of != nil && coupon.Campaign == page.Of.ID {
			continue
		}
		name := string(coupon.Campaign)
		if s, err := c.Ledger.Campaign(v.r.Context(), coupon.Campaign); err == nil {
			name = s.Name
		}
		page.Others = append(page.Others, c.told(v, name, coupon))
	}
	if page.Of == nil && len(page.Others) == 0 {
		page.None = v.say("이 고객의 유효한 쿠폰이 원장에 없습니다. 방금 발급된 쿠폰은 잠시 뒤에 기록됩니다. 캠페인도 고르면 게이트와 대기열에서도 찾고, 받지 못한 이유를 알려 줍니다.", "The ledger has no coupon in force of this user. One that was just issued is recorded a moment later. Choose the campaign, too: then the gate and the line are asked, and you see why.")
	}
	return nil
}

// told returns a coupon with what support may tell its user. If its terms cannot be read, that is without rank, benefit and expiry.
func (c *customerHandlers) told(v *view, name string, coupon firstcome.Coupon) customerCoupon {
	words := customerWords{v.lang, v.Clock()}
	terms, err := c.Ledger.Terms(v.r.Context(), coupon.Campaign, coupon.TermsVersion)
	if err != nil {
		terms = firstcome.Terms{Answer: firstcome.Recorded}
	}
	terms.Name = name
	var got couponPrize
	if err == nil {
		got = prizeOf(&terms, coupon.Number)
	}
	expires := terms.ExpiresAt(coupon.IssuedAt)
	return customerCoupon{Coupon: coupon, couponPrize: got, Name: name, Expired: !expires.IsZero() && !words.now.Before(expires), Sentence: words.coupon(&terms, &coupon)}
}

// inCampaign finds a user's coupons, place and history in the page's campaign.
func (c *customerHandlers) inCampaign(v *view, page *customerPage, user firstcome.UserID) error {
	ctx, s := v.r.Context(), page.Status
	found, err := c.find(v, s.ID, ledger.Choice{User: user, Page: ledger.Page{Voided: true}})
	if err != nil {
		return err
	}
	page.Unread = page.Of.Why != ""
	if held, err := c.atGate(v, page, user); err != nil {
		return err
	} else if held.Number > 0 && !slices.ContainsFunc(found, func(c firstcome.Coupon) bool { return c.Number == held.Number }) { // issued, but not in the ledger yet
		found = append(found, held)
	}
	log, err := c.Ledger.AuditLog(ctx, ledger.LogFilter{Campaign: s.ID, User: user, Limit: 100})
	if err != nil {
		return err
	}
	for _, coupon := range found {
		page.Found = append(page.Found, c.told(v, s.Name, coupon))
	}
	words := customerWords{v.lang, v.Clock()}
	for n := range log {
		if lost, is := words.lostOf(&log[n], s.Name); is {
			page.Found = append(page.Found, lost)
		}
	}
	page.User = string(user)
	if page.Answer = words.answer(page); len(page.Found) > 0 && !page.Unread && page.Place == nil && page.Answer != "" {
		last := &page.Found[len(page.Found)-1]
		last.Sentence, page.Answer = last.Sentence+" "+page.Answer, ""
	}
	page.Events, err = c.story(v, page, log)
	return err
}

// atGate asks the gate for a user's place, stays and coupon. If the gate decides nothing, it asks nothing.
func (c *customerHandlers) atGate(v *view, page *customerPage, user firstcome.UserID) (held firstcome.Coupon, err error) {
	if page.Unread {
		return held, nil
	}
	stays, err := c.Places.Stays(v.r.Context(), page.Of.ID, user) // before Place: a user who has no place now has no later stay
	if err != nil {
		return held, err
	}
	place, held, err := c.Places.Place(v.r.Context(), page.Of.ID, user)
	switch {
	case errors.Is(err, firstcome.ErrLineLogAway), errors.Is(err, firstcome.ErrLineLogGone):
		page.Untold = true
		return held, nil
	case errors.Is(err, firstcome.ErrNoTicket):
	case err != nil:
		return held, err
	case held.Number == 0:
		page.Place = &place
	}
	line, err := c.Places.LineOf(v.r.Context(), page.Of.ID)
	page.Stays, page.Lined = stays, line.Campaign.Pace != nil || line.Line.LastTicket > 0 || len(line.Past) > 0
	return held, err
}
