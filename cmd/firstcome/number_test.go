//go:build !check

package main

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// dead acts as a recorder that takes the journal's entries, records the first coupon, makes a dead letter of the second, and dies before the gate knows.
// It returns the report that the gate did not get.
func (r *rewind) dead(coupons ...firstcome.Coupon) record.Result {
	r.t.Helper()
	r.do("XREADGROUP", "GROUP", "recorders", "dead", "STREAMS", r.journal, ">")
	r.record(coupons[0])
	return r.bury(coupons[1])
}

// TestF18F23F44WhatBecameOfANumberIsToldAsItIs lets a recorder die between the ledger and the gate, with number 1 recorded and number 2 a dead letter.
// Then another event follows, and then number 3.
func TestF18F23F44WhatBecameOfANumberIsToldAsItIs(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(r *rewind, c []firstcome.Coupon, late record.Result) (replayed bool){
		"another one gives the entries again": func(*rewind, []firstcome.Coupon, record.Result) bool { return false },
		"an operator replays it, and then the recorder goes on": func(r *rewind, _ []firstcome.Coupon, late record.Result) bool {
			r.replay()
			r.settleByHand(late)
			return true
		},
		"an operator replays it, and another one gives the entries again": func(r *rewind, _ []firstcome.Coupon, late record.Result) bool {
			r.replay()
			r.drain()
			r.settle(late)
			return true
		},
		"it is replayed at last, of which nobody tells the gate": func(r *rewind, c []firstcome.Coupon, late record.Result) bool {
			r.settleByHand(late)
			r.truth(false, c[1])
			r.replay()
			return true
		},
		"an operator voids it, and then the recorder goes on": func(r *rewind, c []firstcome.Coupon, late record.Result) bool {
			r.void()
			again := r.issue("c", c[1].User)[0]
			if again.Number != 3 {
				r.t.Errorf("the user claimed again and got number %d", again.Number)
			}
			r.settle(late, r.entries()[:1]...)
			r.record(again)
			r.drain()
			r.truth(true, again)
			return false
		},
		"its entry is deleted by hand": func(r *rewind, _ []firstcome.Coupon, _ record.Result) bool {
			r.do("XTRIM", r.journal, "MAXLEN", "0")
			return false
		},
		"its entry is deleted by hand, and who comes behind is recorded": func(r *rewind, c []firstcome.Coupon, _ record.Result) bool {
			r.do("XTRIM", r.journal, "MAXLEN", "0")
			third := r.issue("c", "user-3")
			r.settleByHand(r.record(third...))
			r.truth(true, third[0], c[0])
			r.drain()
			r.issue("c", "user-4") // until a recorder checks, the gate takes each number that left the journal for recorded
			stage.Await(r.t, "the flag", true, func() bool { return r.issue("c", "user-2")[0].Buried })
			return false
		},
		"the recorders' group is deleted by hand": func(r *rewind, _ []firstcome.Coupon, _ record.Result) bool {
			r.do("XGROUP", "DESTROY", r.journal, "recorders")
			return false
		},
		"the journal is deleted by hand": func(r *rewind, _ []firstcome.Coupon, _ record.Result) bool {
			r.do("DEL", r.journal)
			return false
		},
		"the gate is told without a word of the dead letter": func(r *rewind, c []firstcome.Coupon, late record.Result) bool {
			late.Letters = nil // like the report of a sweep, which has only how far the ledger is drained
			r.settle(late)
			r.truthAtGate(c[1])
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRewind(t)
			c := r.issue("c", "user-1", "user-2")
			replayed := happens(r, c, r.dead(c...))
			r.drain()
			third := r.issue("c", "user-5")[0]
			r.truth(true, c[0], third)
			r.truth(replayed, c[1])
		})
	}
}
