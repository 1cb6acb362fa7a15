package api_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/stage"
)

// blindPlaces reads a ledger's places. Reads of lines block while the lock is held.
type blindPlaces struct {
	*sqlgate.Gate
	sync.Mutex
}

func (p *blindPlaces) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	p.Lock()
	defer p.Unlock()
	return p.Gate.LineOf(ctx, id)
}

// TestWhoseCouponWasVoidedIsNotToldThatTheyLeft, nor that the coupons were gone, though their claim is read only after the void: by a stream, by a
// stream that reconnects, by reading the claim, and by the client.
func TestWhoseCouponWasVoidedIsNotToldThatTheyLeft(t *testing.T) {
	places := &blindPlaces{}
	s := openAtNoon(t, func(s *shop, c *api.Options) {
		places.Gate = s.ledger.Gate
		c.Places, c.FollowEvery = places, 10*time.Millisecond
	})
	s.create(`{"id":"c","name":"n","quantity":4,"pace":{}}`)
	for _, user := range []string{"served", "past", "again", "leaver", "late"} { // past gets a coupon directly, past the line
		s.claim("c", user).want(t, 202, "waiting")
	}
	follow := map[string]*listener{}
	for n, user := range []string{"served", "past", "again", "leaver"} {
		follow[user] = s.follow(user)
		follow[user].want("place", fmt.Sprintf("1.%d.%d", n+1, n), `{`)
	}
	places.Lock()
	s.call("DELETE", "/v1/campaigns/c/claims/leaver", "").want(t, 200, "")
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["past"]}`).want(t, 200, "")
	stage.Must(t, stage.Err(s.ledger.Gate.Serve(t.Context(), "c", 2)))
	for _, number := range []string{"1", "2", "3"} {
		s.call("POST", "/v1/campaigns/c/coupons/"+number+"/void", `{"reason":"r"}`).want(t, 200, "")
	}
	s.claim("c", "again").want(t, 202, "waiting") // and leaves from their second place
	s.call("DELETE", "/v1/campaigns/c/claims/again", "").want(t, 200, "")
	places.Unlock()
	for _, user := range []string{"served", "again"} {
		follow[user].want("outcome", "end", `{"outcome":"voided"}`)
		follow[user].wantEnd()
	}
	follow["past"].wantEnd()
	ofPlace := func(user, place, outcome string) {
		t.Helper()
		if r := s.call("GET", "/v1/campaigns/c/claims/"+user+"?place="+place, "").want(t, 404, outcome); r.text("code") != "not_found" {
			t.Errorf("%s's place %s is over, and the answer %s", user, place, r.body)
		}
	}
	ends := func(generation string) {
		ofPlace("served", generation+".1", "voided")
		ofPlace("past", generation+".2", "") // the coupon does not say whether it ended this place
		ofPlace("again", generation+".3", "voided")
	}
	ends("1")
	ofPlace("again", "1.6", "left")
	ofPlace("leaver", "1.4", "left")
	ofPlace("leaver", "7.4", "") // there was no such ticket
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":1}`).want(t, 200, "")
	s.serve() // late gets the coupon, and the generation ends
	ends("1")
	ofPlace("nobody", "1.9", "sold_out")
	s.call("GET", "/v1/campaigns/c/claims/served", "").want(t, 404, "") // the request names no place
	for _, strange := range []string{"", "1", "1.", "1.0", "0.1", "1.2.3", "-1.2", "x"} {
		s.call("GET", "/v1/campaigns/c/claims/served?place="+strange, "").want(t, 422, "")
	}
	back := s.follow("served", "Last-Event-ID", "1.1.0")
	back.want("outcome", "end", `{"outcome":"voided"}`)

	c := client.New(s.url, "")
	t.Cleanup(c.CloseIdle)
	answer, err := c.Follow(t.Context(), "c", "served", client.Place{Ticket: 1, Generation: 1, PollAfter: 0.01}, nil)
	if err != nil || answer.Outcome != client.Voided || answer.Coupon != nil {
		t.Errorf("the client ends with %+v, %v", answer, err)
	}
}

// TestWhoLeftIsNotToldThatTheirCouponWasVoided: an earlier coupon of theirs, without a ticket, was voided before they joined.
func TestWhoLeftIsNotToldThatTheirCouponWasVoided(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":9,"pace":{}}`)
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["u"]}`).want(t, 200, "")
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"r"}`).want(t, 200, "")
	s.claim("c", "u").want(t, 202, "waiting")
	s.call("DELETE", "/v1/campaigns/c/claims/u", "").want(t, 200, "")
	s.call("GET", "/v1/campaigns/c/claims/u?place=1.1", "").want(t, 404, "")
}

// TestWhoseCouponOfARemoteGateWasVoidedIsNotToldThatTheyLeft: the gate has the line, and the ledger knows the voided coupons.
func TestWhoseCouponOfARemoteGateWasVoidedIsNotToldThatTheyLeft(t *testing.T) {
	f := openFar(t)
	f.create(`{"id":"c","name":"n","quantity":9,"pace":{}}`)
	for _, user := range []string{"a", "leaver"} {
		f.claim("c", user).want(t, 202, "waiting")
	}
	f.served()
	f.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"r"}`).want(t, 200, "")
	f.call("DELETE", "/v1/campaigns/c/claims/leaver", "").want(t, 200, "")
	f.call("GET", "/v1/campaigns/c/claims/a?place=1.1", "").want(t, 404, "voided")
	f.call("GET", "/v1/campaigns/c/claims/leaver?place=1.2", "").want(t, 404, "left")
}
