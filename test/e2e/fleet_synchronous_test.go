//go:build linux && !check

package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// readings are the paths at which a coupon of spring may be read, of its user bea and of the campaign.
var readings = []string{
	"/v1/campaigns", "/v1/campaigns/spring", "/v1/campaigns/spring/ledger", "/v1/campaigns/spring/audit", "/v1/campaigns/spring/claims/bea",
	"/v1/campaigns/spring/coupons", "/v1/campaigns/spring/coupons?user_id=bea", "/v1/campaigns/spring/coupons?number=2", "/v1/campaigns/spring/facts",
	"/v1/users/bea/coupons", "/v1/audit-log", "/console", "/console/campaigns/spring", "/console/campaigns/spring/coupons",
	"/console/campaigns/spring/coupons.csv", "/console/campaigns/spring/report", "/console/customer?campaign=spring&user_id=bea",
}

// TestF58NothingTellsOfACouponBeforeTheStandbyHasIt stops the synchronous standby of two nodes' PostgreSQL, has a user
// claim at one, and reads at both.
func TestF58NothingTellsOfACouponBeforeTheStandbyHasIt(t *testing.T) {
	t.Parallel()
	primary := services.PostgreSQL.Primary(t)
	at, err := primary.Database(t.Context())
	stage.Must(t, err)
	standby := primary.Standby(t)
	stage.Must(t, standby.Synchronize(t.Context()))
	start := func() *process {
		return serve(t, launch{args: []string{"--ledger", at, "--answer-wait", "1s"}, env: []string{"FIRSTCOME_SECRET=" + fleetSecret}})
	}
	nodes := []*process{start(), start()}
	nodes[0].create("spring", 10)
	k := &keyed{t: t, calls: []*client.Client{nodes[0].calls, nodes[1].calls}}
	k.told(0, "spring", "ann")
	stage.Must(t, standby.Stop())

	bodies := map[string]string{}
	for n := range 4 {
		if answer, text := nodes[n%2].ask(http.MethodPost, nodes[n%2].url+"/v1/campaigns/spring/claims", `{"user_id":"bea"}`); answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("claim %d: %s %s", n, answer.Status, text)
		}
		for _, path := range readings {
			for _, node := range nodes {
				answer, text := node.ask(http.MethodGet, node.url+path, "")
				body := string(text)
				if answer.StatusCode >= http.StatusInternalServerError && answer.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("%s: %s %s", path, answer.Status, body)
				}
				for _, told := range []string{`"issued":2`, `"in_force":2`, `"number":2`, `"position":2`, `"coupons":2`} {
					if strings.Contains(body, told) {
						t.Errorf("%s tells of the coupon: %s", path, body)
					}
				}
				bodies[path] += body
			}
		}
	}
	stage.Must(t, standby.Restart(t.Context()))
	var coupon client.Answer
	k.done("the standby is back", func(ctx context.Context) error {
		return insist(t, func() (err error) { coupon, err = k.calls[1].Claim(ctx, "spring", "bea"); return err })
	})
	if coupon.Coupon == nil || coupon.Coupon.Number != 2 {
		t.Fatalf("bea gets %+v", coupon)
	}
	for path, body := range bodies {
		if strings.Contains(body, coupon.Coupon.Code) {
			t.Errorf("%s told bea's code before the standby had it", path)
		}
	}
	if answer, text := nodes[0].ask(http.MethodGet, nodes[0].url+readings[len(readings)-1], ""); !strings.Contains(string(text), coupon.Coupon.Code) {
		t.Errorf("the customer's page lacks the code by which this test would find it: %s", answer.Status)
	}
}
