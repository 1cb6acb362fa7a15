//go:build !check

package redis_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF18WhatAttemptsLoadedIsRemovedByALaterOne lets two owners load holders. The first continues after the second has frozen the campaign. The
// numbers of their attempts are not consecutive, because a part of each is random.
func TestF18WhatAttemptsLoadedIsRemovedByALaterOne(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 5)
	load := func(r recovery.Rebuild) (end func() error) {
		put, end, err := s.gate.Loading(t.Context(), r)
		stage.Must(t, err)
		stage.Must(t, put(stage.Coupon("c", 1)))
		return end
	}
	freeze := func(attempt int64) (recovery.Rebuild, recovery.Frozen) {
		r := recovery.Rebuild{Campaign: "c", CampaignUID: "-", Attempt: attempt}
		f, err := s.gate.Freeze(t.Context(), r)
		stage.Must(t, err)
		return r, f
	}
	left := func() int {
		keys, err := s.do("KEYS", "*:attempt:*").AsStrSlice()
		stage.Must(t, err)
		return len(slices.Compact(keys))
	}
	first, _ := freeze(1<<24 + 7)
	late := load(first)
	second, frozen := freeze(1<<24 + 9_000_000)
	stage.Must(t, load(second)())
	stage.Must(t, late())
	stage.Same(t, "what two owners loaded", 2, left())
	fill := recovery.Refill{Epoch: 2, LastNumber: 5}
	stage.Must(t, s.gate.Replace(t.Context(), second, frozen, recovery.Loaded{Least: 1, Most: 1}, fill))
	stage.Same(t, "what is left of the first one's", 1, left())
	freeze(2<<24 + 5)
	stage.Same(t, "what is left behind the next freeze", 0, left())
}

// TestF18NothingIsSwitchedAtAServerThatIsAnotherOne restarts the server between the load and the switch. Here the server still has everything that
// was loaded, but a server that had lost its last writes would give the same answers.
func TestF18NothingIsSwitchedAtAServerThatIsAnotherOne(t *testing.T) {
	server := services.Redis.Server(t, "--appendfsync", "always")
	s := newShop(t, server.URL(), 5)
	r := recovery.Rebuild{Campaign: "c", CampaignUID: "-", Attempt: 1}
	f, err := s.gate.Freeze(t.Context(), r)
	stage.Must(t, err)
	stage.Must(t, server.Restart(t.Context()))
	stage.Await(t, "an answer", true, func() bool {
		_, err := s.gate.Runs(t.Context())
		return err == nil
	})
	if err := s.gate.Replace(t.Context(), r, f, recovery.Loaded{}, recovery.Refill{Epoch: 2}); !errors.Is(err, recovery.ErrMoved) {
		t.Errorf("the switch ends with %v, want %v", err, recovery.ErrMoved)
	}
}

// TestF54ACampaignThatCannotBeNotedAsCreatedIsNotSwitched: a campaign that issues without this note is forgotten together with its ledger, and its id
// could be used again.
func TestF54ACampaignThatCannotBeNotedAsCreatedIsNotSwitched(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 5)
	r := recovery.Rebuild{Campaign: "c", CampaignUID: "-", Attempt: 1}
	f, err := s.gate.Freeze(t.Context(), r)
	stage.Must(t, err)
	s.do("SET", "firstcome:created:-", "no hash")
	if err := s.gate.Replace(t.Context(), r, f, recovery.Loaded{}, recovery.Refill{Epoch: 2}); err == nil {
		t.Error("it is switched")
	}
	stopped, err := s.gate.GateState(t.Context(), gate.Revision{Campaign: "c", CampaignUID: "-"})
	stage.Must(t, err)
	stage.Same(t, "whether it is frozen", true, stopped.Frozen)
}
