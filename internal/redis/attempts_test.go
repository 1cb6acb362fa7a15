//go:build !check

package redis_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
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

// TestF82AGateKeepsTheTextOfItsTerms creates, changes and replaces a campaign. The gate keeps the text of the terms in force, which a reconcile takes, and a
// freeze says which terms these are and which number was the last.
func TestF82AGateKeepsTheTextOfItsTerms(t *testing.T) {
	url := services.Redis.Database(t)
	s := &shop{t: t, url: url, gate: open(t, url), client: connect(t, url)}
	terms := func(version int64, text string, edit func(*firstcome.Change)) {
		t.Helper()
		change := firstcome.Change{Version: version, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: 5}, Payload: text}
		if edit != nil {
			edit(&change)
		}
		s.apply(change)
	}
	kept := func(want string) {
		t.Helper()
		state, err := s.gate.GateState(t.Context(), gate.Revision{Campaign: "c", CampaignUID: "-"})
		stage.Must(t, err)
		stage.Same(t, "the text", want, state.Payload)
	}
	terms(1, "one", nil)
	kept("one")
	terms(2, "two 번", nil)
	kept("two 번")
	s.issue(0, 2)
	terms(3, "fewer", func(c *firstcome.Change) { c.Terms.Quantity = 1 })
	terms(4, "moved", func(c *firstcome.Change) { c.Before = 2 })
	s.apply(firstcome.Change{Version: 5, Kind: firstcome.ChangePause})
	kept("two 번")
	r := recovery.Rebuild{Campaign: "c", CampaignUID: "-", Attempt: 1}
	f, err := s.gate.Freeze(t.Context(), r)
	stage.Must(t, err)
	stage.Same(t, "the version, that of the terms, and the last number", []int64{5, 2, 2}, []int64{f.Version, f.TermsVersion, f.LastNumber})
	kept("two 번")
	stage.Must(t, s.gate.Replace(t.Context(), r, f, recovery.Loaded{}, recovery.Refill{Epoch: 2, Payload: "three", LastNumber: 5}))
	kept("three")
}

// TestF84P10AGateRefusesAChangeThatMustComeBeforeANumber has a change that must come before number 2.
func TestF84P10AGateRefusesAChangeThatMustComeBeforeANumber(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 5)
	change := func(version, before int64) bool {
		return s.apply(firstcome.Change{Version: version, Kind: firstcome.ChangeTerms, Terms: firstcome.Terms{Quantity: 5}, Before: before})
	}
	s.issue(0, 1)
	stage.Same(t, "before number 2, with number 1 given", false, change(2, 2))
	s.issue(1, 1)
	stage.Same(t, "before number 2, with number 2 given, and once more", []bool{true, true}, []bool{change(3, 2), change(3, 2)})
	stage.Same(t, "before any number, before number 3, and before number 1", []bool{false, false, true}, []bool{change(4, 0), change(5, 3), change(6, 1)})
}
