package api_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheLineSaysWhoIsLikelyToGetACoupon: a user who follows a place by the line sees what their claim would say, also after the quantity was raised
// and after others left.
func TestTheLineSaysWhoIsLikelyToGetACoupon(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":2,"pace":{"per_second":1}}`)
	c := client.New(s.url, "")
	t.Cleanup(c.CloseIdle)
	places := map[string]client.Place{}
	for _, user := range []string{"a", "b", "c", "d"} {
		answer, err := c.Claim(t.Context(), "c", user)
		stage.Must(t, err)
		places[user] = *answer.Place
	}
	looks := func(what string, through any, likely string, eta int64) {
		t.Helper()
		if got := s.line().json("likely_through"); got != through {
			t.Errorf("%s, the line says %v, want %v", what, got, through)
		}
		line, err := c.Line(t.Context(), "c")
		stage.Must(t, err)
		told := ""
		for user, place := range places {
			if place.Ticket < line.Serving {
				continue
			}
			moved := place.Moved(line)
			own, err := c.ClaimOf(t.Context(), "c", user)
			if status(err) == 404 {
				continue
			}
			stage.Must(t, err)
			own.Place.PollAfter, own.Place.ClosesAt = moved.PollAfter, moved.ClosesAt // the line does not have these
			if diff := cmp.Diff(*own.Place, moved); diff != "" {
				t.Errorf("%s, %s is told (-by their claim +by the line):\n%s", what, user, diff)
			}
			if moved.Likely && user > told {
				told = user
			}
			if user == "d" && (moved.ETASeconds == nil) != (eta < 0) || user == "d" && eta >= 0 && *moved.ETASeconds != eta {
				t.Errorf("%s, d is told %+v, want %d s to go", what, moved, eta)
			}
		}
		if told != likely {
			t.Errorf("%s, the last one who is likely to get a coupon is %s, want %s", what, told, likely)
		}
	}
	looks("at first", 2.0, "b", 3)
	s.call("DELETE", "/v1/campaigns/c/claims/b", "").want(t, 200, "")
	looks("after one left", 3.0, "c", 2)
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":3}`).want(t, 200, "")
	looks("after a raise", 5.0, "d", 2)
	s.call("PATCH", "/v1/campaigns/c", `{"closes_at":"2026-11-20T12:00:02Z"}`).want(t, 200, "")
	looks("once it closes sooner", 3.0, "c", 2)
	s.call("PATCH", "/v1/campaigns/c", `{"closes_at":null,"quantity":null}`).want(t, 200, "")
	looks("without a limit", nil, "d", 2)
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":2,"waitlist":true}`).want(t, 200, "")
	looks("in a line that stands by", 3.0, "c", -1)
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":0}`).want(t, 200, "")
	looks("in a line that stands by, with nothing left", 0.0, "", -1)
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":null,"waitlist":false}`).want(t, 200, "")
	s.serve()
	looks("after one was served", nil, "d", 1)
}

// TestANewETAAloneIsNotTold: whenever a user leaves, the ETA of everybody after them changes a little.
func TestANewETAAloneIsNotTold(t *testing.T) {
	places := &countedPlaces{}
	s := openAtNoon(t, func(s *shop, c *api.Options) {
		places.Gate = s.ledger.Gate
		c.Places, c.FollowEvery = places, 10*time.Millisecond
	})
	s.create(`{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`)
	for _, user := range []string{"a", "b", "c"} {
		s.claim("c", user).want(t, 202, "waiting")
	}
	c := s.follow("c")
	c.want("place", "1.3.2", `{"outcome":"waiting","ticket":3,"generation":1,"ahead":2,"eta_seconds":2,`)
	s.call("DELETE", "/v1/campaigns/c/claims/b", "").want(t, 200, "")
	before := places.read.Load()
	stage.Await(t, "two more looks at the line", true, func() bool { return places.read.Load() > before+2 })
	s.serve()
	c.want("place", "1.3.1", `{"outcome":"waiting","ticket":3,"generation":1,"ahead":1,"eta_seconds":0,`) // b has left, and is passed over later
}
