package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAStreamEndsWhenItsKeyIsRevoked: the other's goes on, and a place is still told.
func TestAStreamEndsWhenItsKeyIsRevoked(t *testing.T) {
	s := openAtNoon(t, guarded)
	admin := s.key(firstcome.Admin)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`, admin...).want(t, 201, "")
	for _, user := range []string{"a", "b"} {
		s.call("POST", "/v1/campaigns/c/claims", "", s.token(user)...).want(t, 202, "waiting")
	}
	stolen, kept := s.key(firstcome.Service), s.key(firstcome.Service)
	ending, staying := s.follow("b", stolen...), s.follow("b", kept...)
	ending.want("place", "1.2.1", `{`)
	staying.want("place", "1.2.1", `{`)
	ending.retry = ""
	stage.Must(t, s.ledger.RevokeKey(t.Context(), "test", strings.Split(stolen[1], "_")[1]))
	stage.Must(t, s.auth.Reload(t.Context())) // as the node does twice a second
	ending.wantEnd()
	if ending.retry == "" {
		t.Error("whose key was revoked is not told to come back, which would say why")
	}
	if r := s.askStream("b", stolen...); r.StatusCode != 401 {
		t.Errorf("the revoked key is answered %s", r.Status)
	}
	s.serve()
	staying.want("place", "1.2.0", `{`)
	if open, _, _ := s.server.Streams(); open != 1 {
		t.Errorf("%d streams are open", open)
	}
}

// TestACrowdThatOpensStreamsLeavesConnectionsToTheKeys: only so many look for their first places at once, and all are answered.
func TestACrowdThatOpensStreamsLeavesConnectionsToTheKeys(t *testing.T) {
	const most, crowd = 64, 100 // api.mostOpenings, and more
	places := &heldPlaces{let: make(chan struct{})}
	users := auth.NewLimiter(1000, 1000, 1000)
	s := openAtNoon(t, guarded, func(s *shop, c *api.Config) {
		places.Ledger = s.ledger.Ledger
		c.Places, c.UserLimit = places, users
	})
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`, s.key(firstcome.Admin)...).want(t, 201, "")
	service := s.key(firstcome.Service)
	statuses := make(chan int, crowd)
	for n := range crowd {
		s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"`+fmt.Sprint("u", n)+`"}`, service...).want(t, 202, "waiting")
	}
	places.holds.Store(true)
	for n := range crowd {
		user := fmt.Sprint("u", n)
		go func() {
			statuses <- s.call("HEAD", "/v1/campaigns/c/claims/"+user+"/events", "", s.token(user)...).status
		}()
	}
	stage.Await(t, "all of the crowd admitted", true, func() bool { return users.Len() == crowd && places.inside.Load() >= most })
	stage.Must(t, s.auth.Reload(t.Context()))
	close(places.let)
	for range crowd {
		if status := <-statuses; status != 200 {
			t.Errorf("one of the crowd is answered %d", status)
		}
	}
	if got := places.most.Load(); got != most {
		t.Errorf("%d looked for their places at once, and %d may", got, most)
	}
}

// heldPlaces are a ledger's, which are found only once they are let.
type heldPlaces struct {
	*ledger.Ledger
	let          chan struct{}
	holds        atomic.Bool
	inside, most atomic.Int64
}

func (p *heldPlaces) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	if p.holds.Load() {
		inside := p.inside.Add(1)
		defer p.inside.Add(-1)
		for most := p.most.Load(); inside > most && !p.most.CompareAndSwap(most, inside); most = p.most.Load() {
		}
		select {
		case <-p.let:
		case <-ctx.Done():
			return firstcome.Place{}, firstcome.Coupon{}, ctx.Err()
		}
	}
	return p.Ledger.Place(ctx, id, user)
}
