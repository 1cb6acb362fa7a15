package console

import (
	"errors"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// readings are what the text of a look-up may be.
type readings struct{ code, campaign, user bool }

// lookUp finds whom or what the text names, and what support may say. It tries a code first, then a campaign's exact id or name, and then a user.
func (c *customerHandlers) lookUp(v *view, page *customerPage, as readings) error {
	if err := c.chosen(v, page); err != nil || page.Wrong != "" {
		return err
	}
	unknownCode := ""
	if as.code {
		code, err := firstcome.ParseCode(page.Q)
		if err == nil {
			var is bool
			if is, unknownCode, err = c.byCode(v, page, code); is || err != nil {
				return err
			}
			page.None = unknownCode
		} else if !as.user {
			page.Wrong = v.lang.notCode()
		}
	}
	if as.campaign {
		s, err := c.exactly(v, page.Q)
		if err != nil {
			return err
		}
		if s != nil {
			page.None = ""
			c.choose(v, page, s)
			page.Answer = customerWords{v.lang, v.Clock()}.campaign(page)
			page.Events, err = c.story(v, page, nil)
			return err
		}
	}
	if !as.user {
		return nil
	}
	return c.byUser(v, page, unknownCode)
}

// byUser looks for a user. If the text might be a code that no coupon has, and nothing is known of such a user, the page says so.
func (c *customerHandlers) byUser(v *view, page *customerPage, unknownCode string) error {
	user, err := firstcome.ParseUserID(page.Q)
	if err != nil {
		page.Wrong = v.whyID("user_id", err)
		return nil
	}
	page.User = string(user)
	if page.Status != nil {
		if err := c.inCampaign(v, page, user); err != nil {
			return err
		}
	}
	if err := c.wallet(v, page, user); err != nil {
		return err
	}
	if unknownCode == "" {
		return nil
	}
	if page.None = ""; len(page.Found)+len(page.Others)+len(page.Stays) == 0 && page.Place == nil {
		page.None, page.Answer, page.Events, page.User = unknownCode, "", nil, ""
	}
	return nil
}

// chosen sets the page's campaign, if one was typed or is remembered.
func (c *customerHandlers) chosen(v *view, page *customerPage) error {
	id, wrong, err := c.named(v, page.Campaign)
	if wrong != "" && !v.form.Has("campaign") { // the ledger no longer has the one that is remembered
		page.Campaign = ""
		return err
	}
	page.Wrong, page.WrongCampaign = wrong, wrong != ""
	if err != nil || id == "" {
		return err
	}
	s, err := c.Ledger.Campaign(v.r.Context(), id)
	if err == nil {
		c.choose(v, page, &s)
	}
	return err
}

// choose makes a campaign that of the page.
func (c *customerHandlers) choose(v *view, page *customerPage, s *ledger.Status) {
	now := c.Watcher.Of(v.r.Context(), []ledger.Status{*s})[0]
	row := c.rowOf(v.r.Context(), s, now)
	page.Of, page.Status, page.Left, page.Next, page.Campaign = &row, s, left(now), nextPrizeOf(&s.Terms, &now), string(s.ID)
}

// exactly returns the campaign with an id or a name, or nil.
func (c *customerHandlers) exactly(v *view, text string) (*ledger.Status, error) {
	if id, err := firstcome.ParseCampaignID(text); err == nil {
		s, err := c.Ledger.Campaign(v.r.Context(), id)
		if !errors.Is(err, firstcome.ErrNoCampaign) {
			return &s, err
		}
	}
	found, err := c.Ledger.List(v.r.Context(), ledger.Listing{Text: text, At: c.Clock(), Limit: campaignsPerPage})
	var only *ledger.Status
	for n := range found {
		if !strings.EqualFold(found[n].Name, text) {
			continue
		}
		if only != nil { // two have the name
			return nil, err
		}
		only = &found[n]
	}
	return only, err
}

// byCode looks for a code in all campaigns, and chooses the one that has it. If there is no coupon, why says so.
func (c *customerHandlers) byCode(v *view, page *customerPage, code string) (is bool, why string, err error) {
	found, err := c.Ledger.ByCode(v.r.Context(), "", code)
	if errors.Is(err, firstcome.ErrNoCoupon) {
		return false, customerWords{v.lang, v.Clock()}.noSuchCode(found.Unread), nil
	}
	if err != nil {
		return false, "", err
	}
	s, err := c.Ledger.Campaign(v.r.Context(), found.Campaign)
	if err != nil || found.Why != "" {
		return false, c.without(v, s.Name, &found), err
	}
	c.choose(v, page, &s)
	if err := c.inCampaign(v, page, found.Coupon.User); err != nil {
		return true, "", err
	}
	return true, "", c.wallet(v, page, found.Coupon.User)
}

// without says why a code's number in the campaign with a name has no coupon.
func (c *core) without(v *view, name string, found *ledger.Holding) string {
	words := customerWords{v.lang, v.Clock()}
	if found.Why == ledger.NotThere && !found.Awaited(v.r.Context(), c.Gate) {
		return words.noSuchCode(0)
	}
	return words.without(name, found)
}

// whyNone returns why a code that is a number of the campaign has no coupon, or an empty text.
func (c *couponHandlers) whyNone(v *view, s *ledger.Status, text string) (string, error) {
	code, err := firstcome.ParseCode(text)
	if err != nil {
		return "", err
	}
	found, err := c.Ledger.ByCode(v.r.Context(), s.ID, code)
	switch {
	case errors.Is(err, firstcome.ErrNoCoupon):
		return "", nil
	case err != nil || found.Why == "": // another filter excludes it
		return "", err
	}
	return c.without(v, s.Name, &found), nil
}
