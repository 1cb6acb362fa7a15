//go:build !check

package redis_test

import (
	"slices"
	"testing"

	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF18WhatAttemptsLoadedIsRemovedByALaterOne has two owners load holders, of whom one goes on when the other has frozen the campaign. The
// numbers of their attempts do not follow each other, because a part of them is random.
func TestF18WhatAttemptsLoadedIsRemovedByALaterOne(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 5)
	load := func(r recovery.Rebuild) (end func() error) {
		put, end, err := s.gate.Loading(t.Context(), r)
		stage.Must(t, err)
		stage.Must(t, put(stage.Coupon("c", 1)))
		return end
	}
	freeze := func(attempt int64) (recovery.Rebuild, recovery.Frozen) {
		r := recovery.Rebuild{Campaign: "c", Marker: "-", Attempt: attempt}
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
	stage.Must(t, s.gate.Switch(t.Context(), second, frozen, recovery.Loaded{Least: 1, Most: 1}, fill))
	stage.Same(t, "what is left of the first one's", 1, left())
	freeze(2<<24 + 5)
	stage.Same(t, "what is left behind the next freeze", 0, left())
}
