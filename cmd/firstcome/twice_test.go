//go:build !check

package main

import (
	"context"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// TestANumberThatWasGivenTwiceIsRecordedForTheOneOnlyWhoseCouponTheLedgerHas takes the gate back to before numbers 2 and 3, and issues number 2 to another
// user.
func TestANumberThatWasGivenTwiceIsRecordedForTheOneOnlyWhoseCouponTheLedgerHas(t *testing.T) {
	for name, steps := range map[string]func(r *rewind, first []firstcome.Coupon, drained record.Result){
		"the recorder finds out first": func(r *rewind, _ []firstcome.Coupon, _ record.Result) {
			second := r.issue("c", "user-4")[0]
			r.drain()
			r.wait(second, issue.ErrUnrecorded)
		},
		"the gate is told late how far the ledger was": func(r *rewind, first []firstcome.Coupon, drained record.Result) {
			second := r.issue("c", "user-4")[0]
			r.settle(drained)
			r.wait(second, issue.ErrUnrecorded)
			r.wait(first[1], nil) // it is in the ledger, although the gate has forgotten it
		},
		"what was issued behind it is recorded first": func(r *rewind, _ []firstcome.Coupon, _ record.Result) {
			second := r.issue("c", "user-4")[0]
			behind := r.issue("c", "user-5", "user-6")
			r.settle(r.record(behind[1]))
			r.drain()
			r.wait(second, issue.ErrUnrecorded)
			r.wait(behind[1], nil)
		},
		"the node knows how far it was": func(r *rewind, first []firstcome.Coupon, drained record.Result) {
			ctx, cancel := context.WithCancel(r.t.Context())
			left := make(chan error)
			go func() { left <- r.waiter.Wait(ctx, nil, firstcome.Coupon{Campaign: "c", Number: 100}) }()
			stage.Await(r.t, "who waits", 1, r.waiter.Waiting)
			r.settle(drained)
			nobodys := first[2]
			nobodys.User = "nobody"
			r.wait(nobodys, issue.ErrUnrecorded) // so the node has read it: a message alone would not tell
			r.back()
			second := r.issue("c", "user-4")[0]
			r.wait(second, issue.ErrUnrecorded)
			cancel()
			<-left
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRewind(t)
			first := r.issue("c", "user-1")
			r.settleByHand(r.record(first...))
			r.keep()
			first = append(first, r.issue("c", "user-2", "user-3")...)
			drained := r.record(first...)
			r.settleByHand(drained)
			r.wait(first[1], nil)
			r.back()
			steps(r, first, drained)
		})
	}
}

// TestWhoseCouponIsLostIsNotToldThatItIsRecorded loses a coupon before the ledger has it, and issues its number to another user.
func TestWhoseCouponIsLostIsNotToldThatItIsRecorded(t *testing.T) {
	r := newRewind(t)
	r.keep()
	lost := r.issue("c", "user-1")[0]
	r.back()
	given := r.issue("c", "user-2")[0]
	if lost.Number != given.Number {
		t.Fatalf("the numbers are %d and %d", lost.Number, given.Number)
	}
	again := r.issue("c", "user-1")[0]
	r.drain()
	r.wait(lost, issue.ErrUnrecorded)
	r.wait(given, nil)
	r.wait(again, nil)
}

// TestWhoHoldsANumberThatIsSomebodyElsesIsNeverToldThatItIsRecorded asks the gate again, before and after a recorder has noticed.
func TestWhoHoldsANumberThatIsSomebodyElsesIsNeverToldThatItIsRecorded(t *testing.T) {
	r := newRewind(t)
	r.keep()
	r.settleByHand(r.record(r.issue("c", "user-1", "user-2")...))
	r.back()
	r.issue("c", "user-3", "user-4", "user-5")
	again := func(when string) {
		t.Helper()
		for _, c := range r.issue("c", "user-3", "user-4") {
			if c.Recorded || c.Number == 0 {
				t.Errorf("%s %s is answered %+v", when, c.User, c)
			}
			held, err := r.remote.gate.CouponOf(t.Context(), "c", c.User)
			if err != nil || held.Recorded {
				t.Errorf("%s the coupon is read as %+v, %v", when, held, err)
			}
		}
	}
	r.settle(r.record())
	again("before")
	r.drain()
	again("afterwards")
	if c := r.issue("c", "user-5")[0]; !c.Recorded {
		t.Errorf("a number that was given once is %+v", c)
	}
	select {
	case err := <-r.alarms:
		t.Log(err)
	default:
		t.Error("nobody is told that numbers were given twice")
	}
	open, err := r.ledger.Reads.DeadLetters(t.Context(), ledger.Letters{})
	if err != nil || len(open) != 2 {
		t.Errorf("the dead letters are %+v, %v", open, err)
	}
}
