//go:build !check

package redis_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestAGateThatHasLostPartOfACampaignDecidesNothing(t *testing.T) {
	for name, lose := range map[string]func(s *shop){
		"holders":    func(s *shop) { s.do("DEL", keysOf[1]) },
		"one holder": func(s *shop) { s.do("HDEL", keysOf[1], "user-3") },
		"the campaign": func(s *shop) {
			s.do("DEL", keysOf[0])
		},
		"the latest claims, which the ledger has": func(s *shop) {
			s.do("COPY", keysOf[0], "old-campaign")
			s.do("COPY", keysOf[1], "old-holders")
			s.issue(10, 10)
			s.do("COPY", "old-campaign", keysOf[0], "REPLACE")
			s.do("COPY", "old-holders", keysOf[1], "REPLACE")
			stage.Must(s.t, stage.Err(s.gate.Settle(s.t.Context(), "c", "", record.Result{Through: 20})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, services.Redis.Database(t), 100, func(o *redis.Options) { o.OnUnknown = beingMade })
			s.issue(0, 10)
			lose(s)
			s.gate = open(t, s.url, func(o *redis.Options) {
				o.OnUnknown = func(context.Context, firstcome.CampaignID) error { return gate.ErrGone }
			})
			if d, err := s.gate.Claim(t.Context(), "c", crowd(3, 1)); !errors.Is(err, gate.ErrGone) {
				t.Errorf("a claim got %v, %v", outcomes(d), err)
			}
			for _, change := range []firstcome.Change{
				{Campaign: "c", Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: 100}},
				{Campaign: "c", Version: 2, Kind: firstcome.ChangeVoid, Number: 4, User: "user-3"},
			} {
				if _, err := s.gate.Apply(t.Context(), change); !errors.Is(err, gate.ErrGone) {
					t.Errorf("change %d got %v", change.Version, err)
				}
			}
		})
	}
}

// TestACampaignThatAnotherNodeMakesMeanwhileIsNotLost lets two nodes create a campaign. One finds no campaign at Redis; then the other creates it;
// then the first reads in the ledger that Redis has it.
func TestACampaignThatAnotherNodeMakesMeanwhileIsNotLost(t *testing.T) {
	url := services.Redis.Database(t)
	other := open(t, url, func(o *redis.Options) { o.OnUnknown = beingMade })
	gate := open(t, url, func(o *redis.Options) {
		o.OnUnknown = func(ctx context.Context, _ firstcome.CampaignID) error {
			if _, err := other.Apply(ctx, first); err != nil {
				return err
			}
			return gate.ErrGone
		}
	})
	if refused, err := gate.Apply(t.Context(), first); refused || err != nil {
		t.Errorf("refused %v, %v", refused, err)
	}
	if s, err := gate.State(t.Context(), "c"); err != nil || s.Version != 1 {
		t.Errorf("version %d, %v", s.Version, err)
	}
}

// beingMade is the ledger's answer about a campaign that no gate has yet.
func beingMade(context.Context, firstcome.CampaignID) error { return firstcome.ErrBusy }

// first is the change that creates the campaign c.
var first = firstcome.Change{Campaign: "c", Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: 3}}

func TestAGateThatWasEmptiedIsNotMadeAgain(t *testing.T) {
	says := beingMade
	s := newShop(t, services.Redis.Database(t), 3, func(o *redis.Options) {
		o.OnUnknown = func(ctx context.Context, id firstcome.CampaignID) error { return says(ctx, id) }
	})
	s.issue(0, 3)
	says = func(context.Context, firstcome.CampaignID) error { return gate.ErrGone }
	if _, err := s.gate.Apply(t.Context(), first); err != nil {
		t.Errorf("a change that the gate has got %v", err)
	}
	s.do("DEL", keysOf[0], keysOf[1], keysOf[2])
	if _, err := s.gate.Apply(t.Context(), first); !errors.Is(err, gate.ErrGone) {
		t.Errorf("a campaign that the ledger knows at the gate got %v", err)
	}
	says = beingMade
	s.do("FLUSHDB")
	if _, err := s.gate.Apply(t.Context(), first); !errors.Is(err, gate.ErrGone) {
		t.Errorf("a Redis that is no longer the gate got %v", err)
	}
}

func TestANodeThatStoppedWhileItMadeACampaignMakesNone(t *testing.T) {
	var clock atomic.Int64
	clock.Store(time.Now().UnixMicro())
	g := open(t, services.Redis.Database(t), func(o *redis.Options) {
		o.Clock = func() time.Time { return time.UnixMicro(clock.Load()) }
		o.OnUnknown = func(context.Context, firstcome.CampaignID) error {
			clock.Add((10 * time.Second).Microseconds()) // in this time other nodes create it, it issues, and Redis loses it
			return firstcome.ErrBusy
		}
	})
	if _, err := g.Apply(t.Context(), first); !errors.Is(err, firstcome.ErrBusy) {
		t.Errorf("got %v", err)
	}
	if _, err := g.State(t.Context(), "c"); err == nil {
		t.Error("the campaign is there")
	}
}
