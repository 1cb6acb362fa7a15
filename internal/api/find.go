package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
)

// find answers POST /v1/coupons/find. The code is in the body, because URLs end in logs.
func (s *coupons) find(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	o, wrong, err := s.readObject(w, r, "code", "campaign_id")
	if err != nil {
		return err
	}
	code, id := o.readCode(wrong), o.readCampaign(wrong)
	if err := wrong.err(); err != nil {
		return err
	}
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
		detail += fmt.Sprintf(". Campaigns with another secret than this node's were not searched: %d", unread)
	}
	return newProblem(noCoupon, detail)
}

// readCode reads the field code, which is required.
func (o object) readCode(wrong *mistakes) string {
	raw, ok := o["code"]
	if !ok {
		wrong.require("code")
		return ""
	}
	text := wrong.readString("code", raw)
	code, err := firstcome.ParseCode(text)
	if err != nil && !wrong.names("code") {
		wrong.refuse("code", err.Error())
	}
	return code
}

// readCampaign reads the field campaign_id, which may be missing.
func (o object) readCampaign(wrong *mistakes) firstcome.CampaignID {
	raw, ok := o["campaign_id"]
	if !ok {
		return ""
	}
	text := wrong.readString("campaign_id", raw)
	id, err := firstcome.ParseCampaignID(text)
	if err != nil && !wrong.names("campaign_id") {
		wrong.refuse("campaign_id", err.Error())
	}
	return id
}

// foundCoupon answers with a coupon that was found.
func (s *coupons) foundCoupon(w http.ResponseWriter, r *http.Request, c *firstcome.Coupon) error {
	t, err := s.Terms.get(r.Context(), c.Campaign, c.TermsVersion)
	if err != nil {
		return err
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
