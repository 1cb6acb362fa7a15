package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
)

// issueCoupons answers POST /v1/campaigns/{id}/coupons.
func (s *Server) issueCoupons(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	id, err := campaignID(r)
	if err != nil {
		return err
	}
	b := s.buffer()
	defer s.release(b)
	if err := b.read(w, r, maxIssue); err != nil {
		return err
	}
	users, err := parseUsers(b.bytes)
	if err != nil {
		return err
	}
	decisions, err := s.claims.ClaimAll(r.Context(), id, users)
	if err != nil {
		return err
	}
	b.bytes = append(b.bytes[:0], `{"items":[`...)
	for n := range decisions {
		d := &decisions[n]
		s.metrics.claims[d.Outcome].Inc()
		if n > 0 {
			b.bytes = append(b.bytes, ',')
		}
		if !d.Outcome.HasCoupon() {
			b.bytes = append(b.bytes, `{"outcome":"`+d.Outcome.String()+`","coupon":null}`...)
			continue
		}
		t, err := s.terms.get(r.Context(), id, d.Coupon.TermsVersion)
		if err != nil {
			return err
		}
		b.bytes = appendAnswer(b.bytes, d.Outcome, &d.Coupon, t)
	}
	b.bytes = append(b.bytes, `]}`...)
	writeBody(w, http.StatusOK, b.bytes)
	return nil
}

// parseUsers reads {"user_ids":[…]}.
func parseUsers(body []byte) ([]firstcome.UserID, error) {
	o, err := parseObject(body, "user_ids")
	if err != nil {
		return nil, err
	}
	raw, ok := o["user_ids"]
	if !ok {
		return nil, notAllowed(required("user_ids"))
	}
	var ids []json.RawMessage
	if err := json.Unmarshal(raw, &ids); err != nil || ids == nil {
		return nil, wrongType("user_ids", "an array of user ids")
	}
	if len(ids) == 0 || len(ids) > maxUserIDs {
		return nil, notAllowed(client.FieldError{Field: "user_ids", Reason: "must have 1 to " + strconv.Itoa(maxUserIDs) + " user ids"})
	}
	users := make([]firstcome.UserID, len(ids))
	for n, raw := range ids {
		if users[n], err = parseUser(raw); err != nil {
			return nil, err
		}
	}
	return users, nil
}

// listCoupons answers GET /v1/campaigns/{id}/coupons: a page of JSON, or the
// whole campaign as CSV or NDJSON.
func (s *Server) listCoupons(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	id, err := campaignID(r)
	if err != nil {
		return err
	}
	q := parseQuery(r)
	page := ledger.Page{After: q.number("after"), Limit: q.limit(), Voided: q.included("voided")}
	if q.err() != nil {
		return q.err()
	}
	bounded, over := reading(r)
	defer over()
	if _, err := s.Ledger.Campaign(bounded.Context(), id); err != nil {
		return err
	}
	switch accept := r.Header.Get("Accept"); {
	case strings.Contains(accept, typeCSV):
		return s.export(w, r, id, page, typeCSV)
	case strings.Contains(accept, typeNDJSON):
		return s.export(w, r, id, page, typeNDJSON)
	}
	return s.pageOfCoupons(w, bounded, id, page)
}

func (s *Server) pageOfCoupons(w http.ResponseWriter, r *http.Request, id firstcome.CampaignID, page ledger.Page) error {
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
	return s.writeCoupons(w, r, found, page.Limit, func(last firstcome.Coupon) string {
		return strconv.FormatInt(last.Number, 10)
	})
}

// writeCoupons answers with a page of at most most coupons of those found; next
// says where the page behind a coupon begins.
func (s *Server) writeCoupons(w http.ResponseWriter, r *http.Request, found []firstcome.Coupon, most int, next func(firstcome.Coupon) string) error {
	more := len(found) > most
	if more {
		found = found[:most]
	}
	body := []byte(`{"items":[`)
	for n := range found {
		t, err := s.terms.get(r.Context(), found[n].Campaign, found[n].TermsVersion)
		if err != nil {
			return err
		}
		if n > 0 {
			body = append(body, ',')
		}
		body = appendCoupon(body, &found[n], t)
	}
	body = append(body, `],"next":`...)
	if more {
		body = appendText(body, next(found[most-1]))
	} else {
		body = append(body, "null"...)
	}
	writeBody(w, http.StatusOK, append(body, '}'))
	return nil
}

// maxReason is the length of the longest reason for a void, in bytes.
const maxReason = 500

// voidCoupon answers POST /v1/campaigns/{id}/coupons/{number}/void.
func (s *Server) voidCoupon(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	id, err := campaignID(r)
	if err != nil {
		return err
	}
	number, err := pathNumber(r, "number")
	if err != nil {
		return err
	}
	reason, err := s.reason(w, r)
	if err != nil {
		return err
	}
	var coupon firstcome.Coupon
	err = s.Issuer.Change(id, func() (err error) {
		coupon, err = s.voided(r.Context(), c.Name, id, number, reason)
		return err
	})
	if err != nil {
		return err
	}
	t, err := s.terms.get(r.Context(), id, coupon.TermsVersion)
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, appendCoupon(nil, &coupon, t))
	return nil
}

// reason reads why a coupon is voided.
func (s *Server) reason(w http.ResponseWriter, r *http.Request) (string, error) {
	o, err := s.readObject(w, r, "reason")
	if err != nil {
		return "", err
	}
	raw, ok := o["reason"]
	if !ok {
		return "", notAllowed(required("reason"))
	}
	reason, err := parseString("reason", raw)
	if err == nil && (reason == "" || len(reason) > maxReason) {
		err = notAllowed(client.FieldError{Field: "reason", Reason: "must have 1 to " + strconv.Itoa(maxReason) + " bytes"})
	}
	if err == nil && !storable(reason) {
		err = notAllowed(client.FieldError{Field: "reason", Reason: unstorable})
	}
	return reason, err
}

// readWallet answers GET /v1/users/{user_id}/coupons.
func (s *Server) readWallet(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
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
	return s.writeCoupons(w, r, found, most, func(last firstcome.Coupon) string { return string(last.Campaign) })
}
