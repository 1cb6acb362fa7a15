package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Claim asks for a coupon of a campaign for a user. A refusal is an Answer with its outcome and no coupon. A place in line is an Answer with that
// place: see Follow. An error means that the claim may have been decided; asking again is safe and finds the coupon. With a user's own token, user
// may be empty.
func (c *Client) Claim(ctx context.Context, id, user string) (Answer, error) {
	r := request{method: http.MethodPost, path: campaignPath(id, "claims")}
	if user != "" {
		r.body = claim{user}
	}
	var answer Answer
	if err := c.do(ctx, r, &answer); err != nil {
		return refused(err)
	}
	return answer, nil
}

type claim struct {
	UserID string `json:"user_id"`
}

// ClaimOf returns the coupon that a user holds of a campaign, or their place in its line, like the answer to a repeated claim. A Problem with status
// 404 means that there is neither. If from has the Place that an earlier claim was answered with, Outcome also says how that place ended. Only the
// first Place counts.
func (c *Client) ClaimOf(ctx context.Context, id, user string, from ...Place) (Answer, error) {
	var q url.Values
	if len(from) > 0 && from[0].Ticket > 0 {
		q = query("place", fmt.Sprint(from[0].Generation, ".", from[0].Ticket))
	}
	return ask[Answer](ctx, c, request{method: http.MethodGet, path: campaignPath(id, "claims", user), query: q})
}

// Issue claims for at most 1,000 users, with no other claim in between, and returns an answer for each, in order. The audit log has the reason, which
// may be empty. An error means that some may have been issued a coupon; asking again is safe.
func (c *Client) Issue(ctx context.Context, id string, users []string, reason string) ([]Answer, error) {
	var answers List[Answer]
	body := directIssue{users, reason}
	err := c.do(ctx, request{method: http.MethodPost, path: campaignPath(id, "coupons"), body: body}, &answers)
	if err == nil && len(answers.Items) != len(users) {
		err = fmt.Errorf("the server gave %d answers for %d users", len(answers.Items), len(users))
	}
	return answers.Items, err
}

type directIssue struct {
	UserIDs []string `json:"user_ids"`
	Reason  string   `json:"reason,omitempty"`
}

// Coupons calls each with every coupon of a campaign in the ledger, with or without the voided ones, in number order and from one snapshot, until
// each returns an error. It returns nil only if all coupons came.
func (c *Client) Coupons(ctx context.Context, id string, voided bool, each func(Coupon) error) error {
	body, err := c.export(ctx, id, Export{NDJSON: true, Voided: voided})
	if err != nil {
		return err
	}
	defer body.Close()
	// A server that fails half-way cuts the connection. The last chunk of the stream is then missing, which is an error other than io.EOF.
	lines := json.NewDecoder(body)
	for {
		var coupon Coupon
		err := lines.Decode(&coupon)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the coupons of %s came in part only: %w", id, err)
		}
		if err := each(coupon); err != nil {
			return err
		}
	}
}

// An Export is the format of a campaign's exported coupons. The zero value is CSV without the voided ones.
type Export struct {
	NDJSON bool   // a line of JSON for each coupon, instead of CSV
	Voided bool   // voided ones too
	Excel  bool   // CSV that Excel opens correctly
	Zone   string // the time zone in CSV, like Asia/Seoul; empty means UTC
}

// ExportCoupons writes every coupon of a campaign in the ledger to w, in number order and from one snapshot. It returns nil only if all coupons came;
// otherwise w has only a part.
func (c *Client) ExportCoupons(ctx context.Context, id string, e Export, w io.Writer) error {
	body, err := c.export(ctx, id, e)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(w, body); err != nil {
		return fmt.Errorf("the coupons of %s came in part only: %w", id, err)
	}
	return nil
}

// export requests all coupons of a campaign, and returns the body of the answer, which the caller must read and close.
func (c *Client) export(ctx context.Context, id string, e Export) (io.ReadCloser, error) {
	r := request{method: http.MethodGet, path: campaignPath(id, "coupons"), query: query("voided", include(e.Voided), "tz", e.Zone), header: http.Header{"Accept": {"text/csv"}}}
	if e.NDJSON {
		r.header.Set("Accept", "application/x-ndjson")
	}
	if e.Excel {
		r.query.Set("excel", "1")
	}
	response, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, problem(response)
	}
	return response.Body, nil
}

// A CouponFilter selects coupons of a campaign. The zero values of User, Code and Number select all.
type CouponFilter struct {
	User   string
	Code   string // as people type it: lower case, hyphens and O for 0 are accepted
	Number int64
	Voided bool   // voided ones too
	After  string // the Next of the previous page
	Limit  int    // the most to return; 0 means 100
}

// FindCoupons returns the selected coupons of a campaign in number order. If Next is not nil, there may be more.
func (c *Client) FindCoupons(ctx context.Context, id string, f CouponFilter) (List[Coupon], error) {
	q := query("user_id", f.User, "code", f.Code, "voided", include(f.Voided), "after", f.After, "limit", number(f.Limit))
	if f.Number != 0 { // even an impossible one, which the server refuses
		q.Set("number", strconv.FormatInt(f.Number, 10))
	}
	return ask[List[Coupon]](ctx, c, request{method: http.MethodGet, path: campaignPath(id, "coupons"), query: q})
}

// A Holding is what became of a code.
type Holding struct {
	Coupon *Coupon `json:"coupon"` // also a voided one; nil if the code's number has none, for the Reason
	// Reason is why there is no coupon: lost (the gate may have given the number, and lost it), dead_letter (the ledger refused the coupon, and an
	// operator has not resolved the dead letter) or dead_letter_voided.
	Reason     string `json:"reason,omitempty"`
	CampaignID string `json:"campaign_id,omitempty"` // like Number, only with a Reason
	Number     int64  `json:"number,omitempty"`
}

// FindCode returns what became of a code, in any spelling that the server accepts. campaign is a campaign's id, or empty to look in all campaigns.
// Statuses of a Problem: 404, no coupon has the code; 409, the campaign's codes were made with another secret; 503, the coupon is on its way to the
// ledger: ask again.
func (c *Client) FindCode(ctx context.Context, campaign, code string) (Holding, error) {
	body := map[string]string{"code": code}
	if campaign != "" {
		body["campaign_id"] = campaign
	}
	return ask[Holding](ctx, c, request{method: http.MethodPost, path: "/v1/coupons/find", body: body})
}

// Facts returns at most limit facts of a campaign (0 means 100) with positions above after. If there are none, it waits for one, for up to a minute,
// and may return none. The list's Next is always the position to continue from.
func (c *Client) Facts(ctx context.Context, id string, after int64, wait time.Duration, limit int) (List[Fact], error) {
	q := query("after", strconv.FormatInt(after, 10), "limit", number(limit))
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	return ask[List[Fact]](ctx, c, request{method: http.MethodGet, path: campaignPath(id, "facts"), query: q})
}

// Void voids a coupon: its stock returns, its number is never issued again, and its user may claim again. Statuses of a Problem: 404, there is no
// such coupon; 409, it was already voided.
func (c *Client) Void(ctx context.Context, id string, number int64, reason string) (Coupon, error) {
	path := campaignPath(id, "coupons", strconv.FormatInt(number, 10), "void")
	return ask[Coupon](ctx, c, request{method: http.MethodPost, path: path, body: map[string]string{"reason": reason}})
}
