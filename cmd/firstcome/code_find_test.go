//go:build !check

package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestACodeIsNotDeniedWhileItsCampaignIsClaimed looks for codes around the last number of a Redis that issues coupons while a recorder records them. The
// code of a coupon that was answered must lead to it or be awaited, and a code above the gate's last number must be denied.
func TestACodeIsNotDeniedWhileItsCampaignIsClaimed(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		const coupons = 90
		r := &rewind{desk: newDesk(t, services.Redis.Database(t), name, nil, "c")}
		var answered atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			var journal []firstcome.Coupon
			for n := int64(1); n <= coupons; n++ {
				decisions, err := r.remote.gate.Claim(t.Context(), "c", []firstcome.UserID{firstcome.UserID(fmt.Sprint("user-", n))})
				if err != nil || decisions[0].Coupon.Number != n {
					t.Errorf("claim %d: %v, %v", n, decisions, err)
					return
				}
				answered.Store(n)
				if journal = append(journal, decisions[0].Coupon); len(journal) < 3 {
					continue // the first two are only at the gate for a while
				}
				if _, err := r.ledger.Recorder.Record(t.Context(), batch(journal...)); err != nil {
					t.Error(err)
				}
				journal = nil
			}
		}()
		looks := func(number, least int64) {
			t.Helper()
			found, err := r.ledger.Reads.ByCode(t.Context(), "", stage.Secret().Code("c", number))
			denied := errors.Is(err, firstcome.ErrNoCoupon)
			if !denied {
				stage.Must(t, err)
				denied = found.Why == ledger.NotThere && !found.Awaited(t.Context(), r.remote.gate)
			}
			state, err := r.remote.gate.State(t.Context(), "c")
			stage.Must(t, err)
			switch {
			case denied && number <= least:
				t.Errorf("the code of number %d is denied, although %d were answered", number, least)
			case !denied && number > state.LastNumber:
				t.Errorf("number %d is %+v, although the gate has given %d", number, found, state.LastNumber)
			case found.Coupon.Number != 0 && found.Coupon.Number != number:
				t.Errorf("the code of number %d finds %+v", number, found.Coupon)
			}
		}
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			last := answered.Load()
			for number := max(1, last-2); number <= last+2; number++ {
				looks(number, last)
			}
		}
		for number := int64(1); number <= coupons+2; number++ {
			looks(number, coupons)
		}
	})
}
