package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/stage"
)

// code fails unless a problem has this code, and a 503 says when to ask again.
func (r reply) code(t testing.TB, status int, code string) reply {
	t.Helper()
	if r.status != status || r.text("code") != code || (status == 503) != (r.header.Get("Retry-After") != "") {
		t.Errorf("it answers %d %q, Retry-After %q, and should %d %q: %s", r.status, r.text("code"), r.header.Get("Retry-After"), status, code, r.body)
	}
	return r
}

// A loggedGate is a ledger whose lines have a log, as lines of a gate beside it may have.
type loggedGate struct{ *sqlgate.Gate }

func (g loggedGate) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	place, coupon, err := g.Gate.Place(ctx, id, user)
	place.Log = &firstcome.Logged{Epoch: 1}
	return place, coupon, err
}

func (g loggedGate) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, error) {
	place, err := g.Gate.Leave(ctx, id, user)
	place.Log = &firstcome.Logged{Epoch: 1}
	return place, err
}

func (loggedGate) Decides(context.Context, firstcome.CampaignID, int64) error { return nil }

// A lineLog takes records, unless the test makes it fail.
type lineLog struct{ fails atomic.Pointer[error] }

func (l *lineLog) Append(context.Context, firstcome.CampaignID, []line.Record) error {
	if err := l.fails.Load(); err != nil {
		return fmt.Errorf("append to the log: %w", *err)
	}
	return nil
}

// loggedPlaces return a place once the log has it.
type loggedPlaces struct {
	*line.Teller
	gate loggedGate
}

func (p loggedPlaces) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	return p.gate.Gate.LineOf(ctx, id)
}

// openLogged opens a shop whose lines have a log.
func openLogged(t *testing.T) (*shop, *lineLog) {
	t.Helper()
	log := &lineLog{}
	s := openAtNoon(t, func(s *shop, c *api.Options) {
		gate := loggedGate{s.ledger.Gate}
		c.Places, c.FollowEvery = loggedPlaces{line.NewTeller(gate, log), gate}, 10*time.Millisecond
	})
	return s, log
}

// TestAPlaceIsNotToldBeforeTheLogHasIt uses a log that does not answer, and one that lacks records. The place is returned once
// the log has it. The stream of a user who already has a place continues.
func TestAPlaceIsNotToldBeforeTheLogHasIt(t *testing.T) {
	s, log := openLogged(t)
	s.create(`{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`)
	for _, user := range []string{"told", "a", "b"} {
		s.claim("c", user).want(t, 202, "waiting")
	}
	told := s.follow("told")
	told.want("place", "1.1.0", `{`)
	const claim = "/v1/campaigns/c/claims/a"
	for _, fails := range []struct {
		err    error
		code   string
		detail string
	}{
		{firstcome.ErrLineLogAway, "line_unavailable", "nobody loses a place. Ask again: it is safe"},
		{firstcome.ErrLineLogGone, "line_lost", "firstcome gate rebuild ID --without-line-log"},
	} {
		log.fails.Store(&fails.err)
		for _, asked := range [][2]string{{"GET", claim}, {"GET", claim + "?place=1.2"}, {"GET", claim + "/events"}} {
			if r := s.call(asked[0], asked[1], "").code(t, 503, fails.code); !strings.Contains(r.text("detail"), fails.detail) {
				t.Errorf("%s %s: %s", asked[0], asked[1], r.body)
			}
		}
		s.call("GET", "/v1/campaigns/c/claims/told", "").want(t, 200, "waiting")
		if waiting := s.call("GET", "/v1/campaigns/c", "").number("waiting"); waiting != 3 {
			t.Errorf("%d wait", waiting)
		}
		s.line().want(t, 200, "")
	}
	s.call("DELETE", "/v1/campaigns/c/claims/b", "").code(t, 503, "line_lost")
	s.serve()
	told.want("outcome", "end", `{"outcome":"already_issued",`)
	log.fails.Store(nil)
	s.call("GET", claim, "").wantPlace(t, 200, "2 of 1, 0 ahead, 0 s, likely true, <nil> <nil>")
	s.call("DELETE", "/v1/campaigns/c/claims/b", "").want(t, 200, "")
	s.follow("a").want("place", "1.2.0", `{`)
}

// TestAClaimWhosePlaceTheLogLacksIsAnsweredThatItIsKept: the answer also says what to do.
func TestAClaimWhosePlaceTheLogLacksIsAnsweredThatItIsKept(t *testing.T) {
	for err, code := range map[error]string{firstcome.ErrLineLogAway: "line_unavailable", firstcome.ErrLineLogGone: "line_lost"} {
		s := openFar(t)
		s.gate.Before = func(context.Context, firstcome.CampaignID) error { return fmt.Errorf("decide 3 claims: %w", err) }
		if r := s.claim("c", "mina").code(t, 503, code); !strings.Contains(r.text("detail"), "nothing was told: nobody loses a place") {
			t.Errorf("%v: %s", err, r.body)
		}
	}
}

// TestACampaignSaysThatItsLineIsLogged: no request can set it.
func TestACampaignSaysThatItsLineIsLogged(t *testing.T) {
	s := openFar(t)
	terms := firstcome.Terms{Name: "n", Quantity: 9, Answer: firstcome.Recorded, Pace: &firstcome.Pace{}, Log: &firstcome.LineLog{Topic: "t"}}
	stage.Must(t, s.ledger.Campaigns.Create(t.Context(), "op", "logged", terms))
	s.create(`{"id":"d","name":"n","quantity":9,"pace":{}}`)
	for id, logged := range map[string]bool{"logged": true, "d": false} {
		if r := s.call("GET", "/v1/campaigns/"+id+"/changes", "").items(); r[0]["terms"].(map[string]any)["line_log"] != logged {
			t.Errorf("the terms of %s are %v", id, r)
		}
	}
	if r := s.call("GET", "/v1/campaigns/d", ""); r.json("line_log") != false {
		t.Errorf("the campaign is %s", r.body)
	}
	s.call("POST", "/v1/campaigns", `{"id":"x","name":"n","quantity":1,"line_log":true}`).code(t, 422, "not_allowed")
	s.call("PATCH", "/v1/campaigns/d", `{"line_log":true}`).code(t, 422, "not_allowed")
}
