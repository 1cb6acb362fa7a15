package api_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

func TestF62AVoidedCouponsStockReturnsOnceAndItsNumberNever(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":1}`)
	s.claim("c", "a").want(t, 201, "issued")
	s.claim("c", "b").want(t, 410, "sold_out")
	voided := s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"returned"}`).want(t, 200, "")
	if voided.text("state") != "voided" || voided.text("user_id") != "a" {
		t.Errorf("it is %s", voided.body)
	}
	if r := s.claim("c", "b").want(t, 201, "issued"); r.number("coupon", "number") != 2 {
		t.Errorf("the number is %s", r.body)
	}
	s.claim("c", "a").want(t, 410, "sold_out")
	s.call("GET", "/v1/campaigns/c/claims/a", "").want(t, 404, "")
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"again"}`).want(t, 409, "")
	if log := s.call("GET", "/v1/audit-log?user_id=a", "").items(); len(log) != 1 || log[0]["number"] != 1.0 {
		t.Errorf("the log has %v", log)
	}
	if c := s.call("GET", "/v1/campaigns/c", ""); c.number("in_force") != 1 || c.number("issued") != 2 || c.number("remaining") != 0 {
		t.Errorf("the campaign is %s", c.body)
	}
}

func TestCouponsAreListedInPagesAndStreamedWhole(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":null,"coupon":{"benefit":{"won":5000}}}`)
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["a","b","c","d","e"]}`).want(t, 200, "")
	s.call("POST", "/v1/campaigns/c/coupons/2/void", `{"reason":"r"}`).want(t, 200, "")
	for query, want := range map[string]string{"": "1 3 4 5", "&voided=include": "1 2 3 4 5"} {
		if got := s.pages("/v1/campaigns/c/coupons?limit=2"+query+"&after=", "number"); got != want {
			t.Errorf("%s has %s, want %s", query, got, want)
		}
	}
	lines := s.call("GET", "/v1/campaigns/c/coupons?voided=include", "", "Accept", "application/x-ndjson")
	if n := strings.Count(string(lines.body), "\n"); n != 5 || lines.header.Get("Content-Type") != "application/x-ndjson; charset=utf-8" {
		t.Errorf("%d lines of %q", n, lines.header.Get("Content-Type"))
	}
	s.call("GET", "/v1/campaigns/none/coupons", "").want(t, 404, "")
	s.call("GET", "/v1/campaigns/none/coupons", "", "Accept", "text/csv").want(t, 404, "")
	s.call("GET", "/v1/campaigns/c/coupons?voided=yes&after=-1", "").want(t, 422, "")
}

func TestAnExportThatFailsHalfWayHasNoCleanEnd(t *testing.T) {
	s := open(t, func(_ *shop, c *api.Options) { c.PartTime = time.Second })
	s.create(`{"id":"c","name":"n","quantity":null,"coupon":{"benefit":"` + strings.Repeat("b", 15000) + `"}}`)
	users := stage.Users("u-", 1, 1000) // 15 MB: more than the sockets hold
	stage.Must(t, stage.Err(s.issuer.Issue(context.Background(), gate.Order{Actor: "op"}, "c", users)))
	r, err := http.NewRequest("GET", s.url+"/v1/campaigns/c/coupons", nil)
	stage.Must(t, err)
	r.Header.Set("Accept", "application/x-ndjson")
	response, err := s.client.Do(r)
	stage.Must(t, err)
	defer response.Body.Close()
	if line := <-s.heard.warned; !strings.Contains(line, "an export was cut") { // nobody reads, so that it cannot be sent
		t.Errorf("the log says %s", line)
	}
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("a part of the campaign ends as if it were the whole")
	}
	s.server.PartTime = time.Minute // a busy client may need a second for a part
	c := client.New(s.url, "")
	defer c.CloseIdle()
	whole := 0
	err = c.Coupons(context.Background(), "c", false, func(client.Coupon) error {
		whole++
		return nil
	})
	if err != nil || whole != len(users) {
		t.Errorf("afterwards it has %d coupons, %v", whole, err)
	}
}

// TestAnExportWhoseLedgerFailsHalfWayHasNoCleanEnd uses a client that reads everything. The answer would end cleanly if the
// server did not cut the connection.
func TestAnExportWhoseLedgerFailsHalfWayHasNoCleanEnd(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":null,"coupon":{"benefit":"` + strings.Repeat("b", 1000) + `"}}`)
	users := stage.Users("u-", 1, 200) // 200 KB: several parts of a stream
	stage.Must(t, stage.Err(s.issuer.Issue(context.Background(), gate.Order{Actor: "op"}, "c", users)))
	s.behind(`UPDATE coupons SET terms_version = 0 WHERE number = 150`) // no terms are as old
	for _, media := range []string{"text/csv", "application/x-ndjson"} {
		r, err := s.try("GET", "/v1/campaigns/c/coupons", "", "Accept", media)
		if lines := strings.Count(string(r.body), "\n"); err == nil || lines < 100 {
			t.Errorf("%s: after %d lines it ends with %v", media, lines, err)
		}
	}
	c := client.New(s.url, "")
	defer c.CloseIdle()
	if err := c.Coupons(context.Background(), "c", false, func(client.Coupon) error { return nil }); err == nil {
		t.Error("the client takes a part of the campaign for the whole")
	}
}

func TestFactsAreFollowedWithoutMissingOne(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":null}`)
	if r := s.call("GET", "/v1/campaigns/c/facts", "").want(t, 200, ""); len(r.items()) != 0 || r.text("next") != "0" {
		t.Errorf("without facts it is %s", r.body)
	}
	got := make(chan string)
	go func() {
		var kinds []string
		for next := "0"; len(kinds) < 4; {
			r := s.call("GET", "/v1/campaigns/c/facts?wait=30s&limit=2&after="+next, "")
			for _, item := range r.items() {
				kinds = append(kinds, item["kind"].(string)+" "+strconv.Itoa(int(item["number"].(float64))))
			}
			next = r.text("next")
		}
		got <- strings.Join(kinds, ", ")
	}()
	s.claim("c", "a")
	s.claim("c", "b")
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"r"}`)
	s.claim("c", "a")
	if kinds := <-got; kinds != "coupon.issued 1, coupon.issued 2, coupon.voided 1, coupon.issued 3" {
		t.Errorf("the facts are %s", kinds)
	}
	for _, query := range []string{"wait=2m", "wait=-1s", "wait=5", "after=x", "limit=0"} {
		s.call("GET", "/v1/campaigns/c/facts?"+query, "").want(t, 422, "")
	}
	s.call("GET", "/v1/campaigns/none/facts?wait=30s", "").want(t, 404, "")
	started := time.Now()
	s.call("GET", "/v1/campaigns/c/facts?after=4&wait=50ms", "").want(t, 200, "")
	if waited := time.Since(started); waited < 50*time.Millisecond {
		t.Errorf("it waited %v", waited)
	}
}

func TestAWaitForFactsEndsWhenTheServerDrains(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":null}`)
	answered := make(chan reply)
	go func() { answered <- s.call("GET", "/v1/campaigns/c/facts?wait=60s", "") }()
	s.call("GET", "/readyz", "").want(t, 200, "")
	s.server.Drain()
	if r := <-answered; r.status != 200 {
		t.Errorf("it answers %d", r.status)
	}
	if r := s.call("GET", "/readyz?verbose", ""); r.status != 503 || r.text("status") != "draining" {
		t.Errorf("a draining node is %d %s", r.status, r.body)
	}
	s.call("GET", "/livez", "").want(t, 200, "")
}

func TestAWalletHasTheCouponsInForceOfEveryCampaign(t *testing.T) {
	s := open(t)
	for _, id := range []string{"a", "b", "c"} {
		s.create(`{"id":"` + id + `","name":"n","quantity":1,"coupon":{"benefit":"` + id + `"}}`)
		s.claim(id, "u/1").want(t, 201, "issued")
	}
	s.call("POST", "/v1/campaigns/b/coupons/1/void", `{"reason":"r"}`).want(t, 200, "")
	first := s.call("GET", "/v1/users/u%2F1/coupons?limit=1", "").want(t, 200, "")
	second := s.call("GET", "/v1/users/u%2F1/coupons?after="+first.text("next"), "").want(t, 200, "")
	if first.text("next") != "a" || len(second.items()) != 1 || second.items()[0]["benefit"] != "c" || second.json("next") != nil {
		t.Errorf("the pages are %s and %s", first.body, second.body)
	}
	if none := s.call("GET", "/v1/users/nobody/coupons", "").want(t, 200, ""); len(none.items()) != 0 {
		t.Errorf("a stranger's wallet is %s", none.body)
	}
}

func TestTheAuditLogIsReadBackwardsInPages(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":1}`)
	s.call("POST", "/v1/campaigns/c/pause", "")
	s.call("POST", "/v1/campaigns/c/resume", "")
	if got := s.pages("/v1/audit-log?limit=1&before=", "action"); got != "campaign.resume campaign.pause campaign.create" {
		t.Errorf("the log has %s", got)
	}
}
