package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// coupons serves the coupons of a campaign or of a user.
type coupons struct {
	*core
	exports auth.Room // by actor
}

// issue answers POST /v1/campaigns/{id}/coupons.
func (s *coupons) issue(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	b := s.buffer()
	defer s.release(b)
	if err := b.read(w, r, maxIssue); err != nil {
		return err
	}
	users, reason, err := parseIssue(b.bytes)
	if err != nil {
		return err
	}
	decisions, err := s.Operator.Issue(r.Context(), gate.Order{Actor: c.Name, Reason: reason}, id, users)
	if err != nil {
		return err
	}
	items := make([]json.RawMessage, len(decisions))
	for n := range decisions {
		d := &decisions[n]
		s.Observer.Decided(id, d.Outcome)
		if !d.Outcome.HasCoupon() {
			items[n] = json.RawMessage(`{"outcome":"` + d.Outcome.String() + `","coupon":null}`)
			continue
		}
		t, err := s.Terms.get(r.Context(), id, d.Coupon.TermsVersion)
		if err != nil {
			return err
		}
		s.revealIfGood(r.Context(), &d.Coupon, t)
		items[n] = appendAnswer(nil, d.Outcome, &d.Coupon, t)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"items": items})
}

// parseIssue reads {"user_ids":[…],"reason":"…"}. The reason is optional.
func parseIssue(body []byte) (users []firstcome.UserID, reason string, err error) {
	o, wrong, err := parseObject(body, "user_ids", "reason")
	if err != nil {
		return nil, "", err
	}
	raw, ok := o["user_ids"]
	var ids []json.RawMessage
	switch {
	case !ok:
		wrong.require("user_ids")
	case json.Unmarshal(raw, &ids) != nil || ids == nil:
		wrong.mistype("user_ids", "an array of user ids")
	case len(ids) == 0 || len(ids) > maxUserIDs:
		wrong.refuse("user_ids", "must have 1 to "+strconv.Itoa(maxUserIDs)+" user ids")
	}
	users = make([]firstcome.UserID, len(ids))
	for n, raw := range ids {
		users[n] = wrong.readUser("user_ids["+strconv.Itoa(n)+"]", raw)
	}
	if raw, ok := o["reason"]; ok {
		reason = wrong.readReason(raw)
	}
	return users, reason, wrong.err()
}

// list answers GET /v1/campaigns/{id}/coupons with a page as JSON, or with the whole campaign as CSV or NDJSON.
func (s *coupons) list(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	q := parseQuery(r)
	page := ledger.Page{After: q.number("after"), Limit: q.limit(), Voided: q.included("voided")}
	choice := ledger.Choice{Page: page, User: parsed(q, "user_id", firstcome.ParseUserID), Code: parsed(q, "code", firstcome.ParseCode), Number: q.positive("number")}
	as := couponsAs(r, q)
	if q.err() != nil {
		return q.err()
	}
	if as.media != "" && !auth.SeesAll.Has(c) {
		return newProblem(roleForbidden, "your role may not export a campaign")
	}
	named := auth.SeesAll.Has(c) || choice.User != "" || choice.Code != ""
	bounded, over := reading(r)
	defer over()
	found, err := s.Ledger.Campaign(bounded.Context(), id)
	if err != nil {
		return err
	}
	switch {
	case as.media != "":
		return s.export(w, r, c.Name, found, page, as)
	case choice.Chosen():
		return s.chosen(w, bounded, c, id, choice, named)
	}
	return s.page(w, bounded, id, page, named)
}

// couponsAs returns the requested form of an export. Its media type is empty if the caller asks for a page. Only pages
// can be filtered by user, code or number.
func couponsAs(r *http.Request, q *query) form {
	as := form{sheet: sheet{excel: q.flag("excel"), zone: q.zone("tz")}}
	accept := r.Header.Get("Accept")
	switch {
	case strings.Contains(accept, typeCSV):
		as.media = typeCSV
	case strings.Contains(accept, typeNDJSON):
		as.media = typeNDJSON
	case as.excel: // for example a link, which cannot set Accept
		as.media = typeCSV
	}
	for _, name := range []string{"user_id", "code", "number"} {
		if as.media != "" && q.values.Has(name) {
			q.refuse(name, "is for pages of JSON only")
		}
	}
	for _, name := range []string{"excel", "tz"} {
		if as.media != typeCSV && q.values.Has(name) {
			q.refuse(name, "is for CSV only")
		}
	}
	return as
}

// chosen answers with the coupons of a user, a code or a number.
func (s *coupons) chosen(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID, choice ledger.Choice, named bool) error {
	found, next, err := s.Ledger.Find(r.Context(), id, choice)
	if err != nil {
		return err
	}
	var after *string
	if next != 0 {
		text := strconv.FormatInt(next, 10)
		after = &text
	}
	return s.write(w, r, found, after, named, func(ctx context.Context, coupon *firstcome.Coupon, t *terms) error {
		return s.revealTo(ctx, c, coupon, t)
	})
}

func (s *coupons) page(w http.ResponseWriter, r *http.Request, id firstcome.CampaignID, page ledger.Page, named bool) error {
	var found []firstcome.Coupon
	ask := page
	ask.Limit++
	err := s.Ledger.Coupons(r.Context(), id, ask, func(c firstcome.Coupon) error {
		found = append(found, c)
		return nil
	})
	if err != nil {
		return err
	}
	found, next := pageOf(found, page.Limit, func(c firstcome.Coupon) int64 { return c.Number })
	return s.write(w, r, found, next, named, func(_ context.Context, c *firstcome.Coupon, t *terms) error {
		t.hide(c) // a list has no imported codes
		return nil
	})
}

// write answers with a page of coupons. It masks them unless named. next is where the next page begins, or nil if there
// is none. reveal sets the codes that are imported.
func (s *coupons) write(w http.ResponseWriter, r *http.Request, found []firstcome.Coupon, next *string, named bool,
	reveal func(context.Context, *firstcome.Coupon, *terms) error,
) error {
	items := make([]json.RawMessage, len(found))
	for n := range found {
		if !named {
			found[n] = found[n].Masked()
		}
		t, err := s.Terms.get(r.Context(), found[n].Campaign, found[n].TermsVersion)
		if err == nil {
			err = reveal(r.Context(), &found[n], t)
		}
		if err != nil {
			return err
		}
		items[n] = appendCoupon(nil, &found[n], t)
	}
	return writeJSON(w, http.StatusOK, client.List[json.RawMessage]{Items: items, Next: next})
}

// find answers POST /v1/coupons/find. The code is in the body, because URLs end in logs.
func (s *coupons) find(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	o, wrong, err := s.readObject(w, r, "code", "campaign_id")
	if err != nil {
		return err
	}
	if _, ok := o["code"]; !ok {
		wrong.require("code")
	}
	var code string
	var id firstcome.CampaignID
	for name, raw := range o {
		switch name {
		case "code":
			code = parsedField(wrong, name, raw, firstcome.ParseCode)
		case "campaign_id":
			id = parsedField(wrong, name, raw, firstcome.ParseCampaignID)
		}
	}
	if err := wrong.err(); err != nil {
		return err
	}
	r, over := reading(r) // the guard limits GET only
	defer over()
	if c.User != "" {
		return s.findOwn(w, r, c.User, id, code)
	}
	found, err := s.Ledger.ByCode(r.Context(), id, code)
	switch {
	case errors.Is(err, firstcome.ErrNoCoupon):
		return errNoCoupon(found.Unread)
	case err != nil:
		return err
	case found.Why == "":
		return s.foundCoupon(w, r, &found.Coupon)
	case found.Why != ledger.NotThere:
		return writeJSON(w, http.StatusOK, map[string]any{"coupon": nil, "campaign_id": found.Campaign, "number": found.Number, "reason": found.Why})
	case found.Awaited(r.Context(), s.Gate):
		return unavailable(notRecorded, "the ledger does not have this number yet: the gate has given it, or does not answer. Ask again")
	}
	return errNoCoupon(0)
}

// errNoCoupon returns the error for a code that no coupon has. unread is how many campaigns were not searched because they have another secret.
func errNoCoupon(unread int) error {
	detail := "no coupon has this code"
	if unread > 0 {
		detail += fmt.Sprintf(". Campaigns whose codes were made with another secret than this node's, or by an earlier firstcome, were not searched: %d", unread)
	}
	return newProblem(noCoupon, detail)
}

// foundCoupon answers with a coupon that was found.
func (s *coupons) foundCoupon(w http.ResponseWriter, r *http.Request, c *firstcome.Coupon) error {
	t, err := s.Terms.get(r.Context(), c.Campaign, c.TermsVersion)
	if err != nil {
		return err
	}
	if t.hide(c) { // its code is an imported one
		return errNoCoupon(0)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"coupon": json.RawMessage(appendCoupon(nil, c, t))})
}

// findOwn looks among the coupons in force of a user, and nowhere else: a user learns nothing of other codes.
func (s *coupons) findOwn(w http.ResponseWriter, r *http.Request, user firstcome.UserID, id firstcome.CampaignID, code string) error {
	for after := firstcome.CampaignID(""); ; {
		page, err := s.Ledger.Wallet(r.Context(), user, after, maxLimit)
		if err != nil {
			return err
		}
		for n := range page {
			if c := &page[n]; c.Code == code && (id == "" || id == c.Campaign) {
				return s.foundCoupon(w, r, c)
			}
			after = page[n].Campaign
		}
		if len(page) < maxLimit {
			return errNoCoupon(0)
		}
	}
}

// void answers POST /v1/campaigns/{id}/coupons/{number}/void.
func (s *coupons) void(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	number, err := pathNumber(r, "number")
	if err != nil {
		return err
	}
	reason, err := s.reason(w, r)
	if err != nil {
		return err
	}
	coupon, err := s.Operator.Void(r.Context(), c.Name, id, number, reason)
	if err != nil {
		return err
	}
	t, err := s.Terms.get(r.Context(), id, coupon.TermsVersion)
	if err != nil {
		return err
	}
	if !auth.SeesAll.Has(c) { // the caller gave a number, and may not see the user
		coupon = coupon.Masked()
	}
	t.hide(&coupon) // its entry is burnt
	writeBody(w, http.StatusOK, appendCoupon(nil, &coupon, t))
	return nil
}

// reason reads a body that has only a reason, which is required.
func (s *core) reason(w http.ResponseWriter, r *http.Request) (string, error) {
	o, wrong, err := s.readObject(w, r, "reason")
	if err != nil {
		return "", err
	}
	return wrong.requireReason(o), wrong.err()
}

// requireReason returns the reason in a body, which is required.
func (m *mistakes) requireReason(body map[string]json.RawMessage) string {
	raw, ok := body["reason"]
	if !ok {
		m.require("reason")
		return ""
	}
	return m.readReason(raw)
}

// readReason reads a reason, which the audit log keeps.
func (m *mistakes) readReason(raw json.RawMessage) string {
	reason := m.readString("reason", raw)
	switch {
	case m.names("reason"):
	case strings.TrimSpace(reason) == "" || utf8.RuneCountInString(reason) > firstcome.MaxReason:
		m.refuse("reason", "must have 1 to "+strconv.Itoa(firstcome.MaxReason)+" characters, and more than blanks")
	case !storable(reason):
		m.refuse("reason", unstorable)
	}
	return reason
}

// wallet answers GET /v1/users/{user_id}/coupons.
func (s *coupons) wallet(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	user, err := userID(r, c)
	if err != nil {
		return err
	}
	q := parseQuery(r)
	after, most := firstcome.CampaignID(q.text("after")), q.limit()
	if q.err() != nil {
		return q.err()
	}
	found, err := s.Ledger.Wallet(r.Context(), user, after, most+1)
	if err != nil {
		return err
	}
	found, next := pageOf(found, most, func(c firstcome.Coupon) firstcome.CampaignID { return c.Campaign })
	return s.write(w, r, found, next, true, func(ctx context.Context, coupon *firstcome.Coupon, t *terms) error {
		return s.revealTo(ctx, c, coupon, t)
	})
}
