package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/stage"
)

// TestTheReasonOfADirectIssueStandsInTheAuditLog sends a reason, none, and some that the log cannot take. With a refused reason nothing is issued.
func TestTheReasonOfADirectIssueStandsInTheAuditLog(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":4}`)
	issue := func(body string, want int) reply {
		return s.call("POST", "/v1/campaigns/c/coupons", body).want(t, want, "")
	}
	logged := func() any {
		return s.call("GET", "/v1/audit-log?campaign=c&limit=1", "").items()[0]["detail"].(map[string]any)["reason"]
	}
	issue(`{"user_ids":["a"],"reason":"잘못 회수한 쿠폰"}`, 200)
	stage.Same(t, "the reason", any("잘못 회수한 쿠폰"), logged())
	issue(`{"user_ids":["b"]}`, 200)
	stage.Same(t, "without a reason", nil, logged())
	issue(`{"user_ids":["c"],"reason":"`+strings.Repeat("쿠", 500)+`"}`, 200)
	for body, status := range map[string]int{
		`{"user_ids":["d"],"reason":"` + strings.Repeat("쿠", 501) + `"}`: 422, `{"user_ids":["d"],"reason":" "}`: 422, `{"user_ids":["d"],"reason":"\u0000x"}`: 422,
		`{"user_ids":["d"],"reason":1}`: 400, `{"user_ids":["d"],"reason":null}`: 400, `{"user_ids":["d"],"why":"x"}`: 422,
	} {
		issue(body, status)
	}
	stage.Same(t, "in force", int64(3), s.call("GET", "/v1/campaigns/c", "").number("in_force"))
}

// TestF61ADirectIssueComesBeforeTheOpeningAndInAPause also issues when the node answers not_open by itself.
func TestF61ADirectIssueComesBeforeTheOpeningAndInAPause(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":4,"opens_at":"2026-11-20T12:00:10Z","closes_at":"2026-11-20T13:00:00Z"}`)
	issue := func(users string) (outcomes []any) {
		for _, item := range s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":[`+users+`]}`).want(t, 200, "").items() {
			outcomes = append(outcomes, item["outcome"])
			if coupon, has := item["coupon"].(map[string]any); has && coupon["direct"] != true {
				t.Errorf("the coupon is %v", coupon)
			}
		}
		return outcomes
	}
	for range 3 {
		s.claim("c", "early").want(t, 403, "not_open")
	}
	stage.Same(t, "before the opening", []any{"issued", "issued"}, issue(`"a","b"`))
	s.claim("c", "early").want(t, 403, "not_open")
	if c := s.claim("c", "a").want(t, 200, "already_issued").json("coupon").(map[string]any); c["direct"] != true {
		t.Errorf("its user hears of %v", c)
	}
	s.later(10 * time.Second)
	s.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, "")
	s.claim("c", "late").want(t, 403, "paused")
	stage.Same(t, "in a pause", []any{"issued", "already_issued"}, issue(`"c","a"`))
	s.call("POST", "/v1/campaigns/c/resume", "").want(t, 200, "")
	if c := s.claim("c", "d").want(t, 201, "issued").json("coupon").(map[string]any); c["direct"] != nil {
		t.Errorf("a claim is issued %v", c)
	}
	for _, item := range s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["e"]}`).want(t, 200, "").items() {
		stage.Same(t, "without stock", any("sold_out"), item["outcome"])
	}
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"r"}`).want(t, 200, "")
	s.later(time.Hour)
	stage.Same(t, "after the window", []any{"closed"}, issue(`"e"`))

	var direct []any
	for _, item := range s.call("GET", "/v1/campaigns/c/coupons?voided=include", "").want(t, 200, "").items() {
		direct = append(direct, item["direct"])
	}
	stage.Same(t, "which coupons say so", []any{true, true, true, nil}, direct)
	stage.Same(t, "the facts", any(true), s.call("GET", "/v1/campaigns/c/facts", "").want(t, 200, "").items()[1]["direct"])
}
