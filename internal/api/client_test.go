package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// status returns the status of a Problem, or 0 if the error is none.
func status(err error) int {
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return 0
}

func TestTheClientHasEveryOutcome(t *testing.T) {
	var words []string
	for _, o := range firstcome.Outcomes() {
		words = append(words, o.String())
	}
	has := []string{client.AlreadyIssued, client.Closed, client.NotOpen, client.Paused, client.SoldOut, client.Waiting, client.Issued}
	if diff := cmp.Diff(words, has); diff != "" {
		t.Errorf("the rule (-) and the client (+):\n%s", diff)
	}
}

func TestTheClientDoesWhatItsContractSays(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	c := client.New(s.url+"/", "ignored")
	t.Cleanup(c.CloseIdle)
	stage.Must(t, c.Ready(ctx))
	two := int64(2)
	made, err := c.CreateCampaign(ctx, client.NewCampaign{ID: "c", Name: "n", Quantity: &two})
	stage.Must(t, err)
	if _, err := c.CreateCampaign(ctx, client.NewCampaign{ID: "c", Name: "n"}); status(err) != 409 {
		t.Errorf("an id twice is %v", err)
	}

	won, err := c.Claim(ctx, "c", "a/b")
	stage.Must(t, err)
	again, err := c.ClaimOf(ctx, "c", "a/b")
	stage.Must(t, err)
	if diff := cmp.Diff(won.Coupon, again.Coupon); diff != "" || won.Outcome != "issued" || again.Outcome != "already_issued" {
		t.Errorf("%s and then %s:\n%s", won.Outcome, again.Outcome, diff)
	}
	issued, err := c.Issue(ctx, "c", []string{"d", "e"}, "sorry")
	stage.Must(t, err)
	if issued[0].Outcome != "issued" || issued[1].Outcome != "sold_out" || issued[1].Coupon != nil {
		t.Errorf("the answers are %+v", issued)
	}
	lost, err := c.Claim(ctx, "c", "f")
	stage.Must(t, err)
	if lost.Outcome != "sold_out" || lost.Coupon != nil {
		t.Errorf("the answer is %+v", lost)
	}

	voided, err := c.Void(ctx, "c", 2, "because")
	stage.Must(t, err)
	if voided.State != "voided" {
		t.Errorf("the coupon is %+v", voided)
	}
	if _, err := c.Void(ctx, "c", 2, "because"); status(err) != 409 {
		t.Errorf("a second void is %v", err)
	}
	if _, err := c.UpdateCampaign(ctx, "c", made.Version, map[string]any{"name": "m"}); status(err) != 412 {
		t.Errorf("a stale change is %v", err)
	}
	changed, err := c.UpdateCampaign(ctx, "c", 0, map[string]any{"quantity": nil})
	stage.Must(t, err)
	if changed.Quantity != nil || changed.Version != 3 {
		t.Errorf("the campaign is %+v", changed)
	}
	for _, turn := range []struct {
		do    func(context.Context, string) (client.Campaign, error)
		state string
	}{{c.Pause, "paused"}, {c.Resume, "open"}, {c.Close, "closed"}} {
		if after, err := turn.do(ctx, "c"); err != nil || after.State != turn.state {
			t.Errorf("it is %s and should be %s: %v", after.State, turn.state, err)
		}
	}
}

func TestTheClientReadsPrizes(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	c := client.New(s.url, "")
	t.Cleanup(c.CloseIdle)
	one := int64(1)
	prizes := []client.PrizeSpec{{ID: "drink", Name: "A drink", Quantity: &one, Benefit: json.RawMessage(`{"item":"drink"}`)}, {ID: "shipping", Name: "Free shipping", Benefit: json.RawMessage(`null`)}}
	made, err := c.CreateCampaign(ctx, client.NewCampaign{ID: "c", Name: "n", Prizes: prizes})
	stage.Must(t, err)
	zero := int64(0)
	if diff := cmp.Diff([]client.Prize{{PrizeSpec: prizes[0], From: 1, To: &one, Given: &zero}, {PrizeSpec: prizes[1], From: 2, Given: &zero}}, made.Prizes); diff != "" {
		t.Errorf("the campaign (-want +got):\n%s", diff)
	}
	first, err := c.Claim(ctx, "c", "u")
	stage.Must(t, err)
	stage.Same(t, "the coupon", client.CouponPrize{ID: "drink", Name: "A drink"}, *first.Coupon.Prize)
	stage.Same(t, "its rank and benefit", []any{int64(1), `{"item":"drink"}`}, []any{first.Coupon.Rank, string(first.Coupon.Benefit)})
	facts, err := c.Facts(ctx, "c", 0, 0, 0)
	stage.Must(t, err)
	stage.Same(t, "the fact", []any{int64(1), "drink"}, []any{facts.Items[0].Rank, facts.Items[0].Prize.ID})
	prizes[0].Name = "A coffee"
	changed, err := c.UpdateCampaign(ctx, "c", 0, map[string]any{"prizes": prizes})
	stage.Must(t, err)
	stage.Same(t, "the changed name", "A coffee", changed.Prizes[0].Name)
	changes, err := c.Operator().Changes(ctx, "c", 0, 0)
	stage.Must(t, err)
	stage.Same(t, "the terms of the change", prizes, changes.Items[1].Terms.Prizes)
	var fixed *client.Problem
	if _, err := c.UpdateCampaign(ctx, "c", 0, map[string]any{"prizes": nil}); !errors.As(err, &fixed) || fixed.Code != "prizes_fixed" {
		t.Errorf("prizes that are taken away: %v", err)
	}
}

func TestTheClientReadsEveryList(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	c := client.New(s.url, "")
	t.Cleanup(c.CloseIdle)
	for _, id := range []string{"a", "b"} {
		s.create(`{"id":"` + id + `","name":"n","quantity":null}`)
		s.claim(id, "u")
	}
	s.call("POST", "/v1/campaigns/a/coupons/1/void", `{"reason":"r"}`)
	campaigns, err := c.Campaigns(ctx, "", 1)
	if err != nil || len(campaigns.Items) != 1 || campaigns.Next == nil || *campaigns.Next != "a" {
		t.Errorf("the campaigns are %+v, %v", campaigns, err)
	}
	campaign, err := c.Campaign(ctx, "b")
	if err != nil || campaign.InForce == nil || *campaign.InForce != 1 {
		t.Errorf("the campaign is %+v, %v", campaign, err)
	}
	wallet, err := c.Wallet(ctx, "u", "", 0)
	if err != nil || len(wallet.Items) != 1 || wallet.Items[0].CampaignID != "b" {
		t.Errorf("the wallet is %+v, %v", wallet, err)
	}
	facts, err := c.Facts(ctx, "a", 1, time.Second, 10)
	if err != nil || len(facts.Items) != 1 || facts.Items[0].Kind != "coupon.voided" || *facts.Next != "2" {
		t.Errorf("the facts are %+v, %v", facts, err)
	}
	log, err := c.Operator().AuditLog(ctx, client.LogFilter{Campaign: "a", User: "u", Limit: 5})
	if err != nil || len(log.Items) != 1 || log.Items[0].Action != "coupon.void" {
		t.Errorf("the log is %+v, %v", log, err)
	}
	count := 0
	if err := c.Coupons(ctx, "a", true, func(client.Coupon) error { count++; return nil }); err != nil || count != 1 {
		t.Errorf("%d coupons, %v", count, err)
	}
	if err := c.Coupons(ctx, "none", true, nil); status(err) != 404 {
		t.Errorf("the coupons of no campaign are %v", err)
	}
	stop := errors.New("stop")
	if err := c.Coupons(ctx, "b", false, func(client.Coupon) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("it did not stop: %v", err)
	}
	s.server.Drain()
	var p *client.Problem
	if err := c.Ready(ctx); !errors.As(err, &p) || p.Status != 503 || p.RetryAfter == 0 {
		t.Errorf("a draining server is %v", err)
	}
}
