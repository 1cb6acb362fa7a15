package redis_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
)

// TestWhatIsSettledIsPublishedAndNeverGoesBack settles one after the other, and what
// is older after each.
func TestWhatIsSettledIsPublishedAndNeverGoesBack(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 500)
	heard := make(chan flow.Settled, 10)
	watch(t, s.gate, func(id firstcome.CampaignID, settled flow.Settled) {
		if id == "c" {
			heard <- settled
		}
	})
	var letters []int64
	for n := range 200 {
		letters = append(letters, int64(n+100))
	}
	for _, step := range []struct{ settle, hear, read flow.Settled }{
		{
			flow.Settled{Through: 10, Order: 2, Unrecorded: []int64{3, 7}, Epoch: 1},
			flow.Settled{Through: 10, Order: 2, Unrecorded: []int64{3, 7}, Epoch: 1},
			flow.Settled{Through: 10, Order: 2, Since: 2, Unrecorded: []int64{3, 7}, Epoch: 1},
		},
		{ // what it tells besides is as it is known
			flow.Settled{Through: 10, Order: 3, Since: 1, Unrecorded: []int64{7}, Recorded: []int64{3}, Epoch: 1},
			flow.Settled{Through: 10, Order: 3, Unrecorded: []int64{7}, Epoch: 1},
			flow.Settled{Through: 10, Order: 3, Since: 3, Unrecorded: []int64{7}, Epoch: 1},
		},
		{ // a number that is settled becomes a dead letter
			flow.Settled{Through: 10, Order: 4, Since: 3, Unrecorded: []int64{3}, Epoch: 1},
			flow.Settled{Through: 10, Order: 4, Unrecorded: []int64{3, 7}, Epoch: 1},
			flow.Settled{Through: 10, Order: 4, Since: 4, Unrecorded: []int64{3, 7}, Epoch: 1},
		},
		{
			flow.Settled{Through: 400, Order: 5, Since: 4, Unrecorded: letters, Epoch: 2},
			flow.Settled{Through: 400, Order: 5, Since: 5, Epoch: 2}, // they are many
			flow.Settled{Through: 400, Order: 5, Since: 5, Unrecorded: append([]int64{3, 7}, letters...), Epoch: 2},
		},
		{ // a later order about an earlier number and epoch
			flow.Settled{Through: 390, Order: 6, Since: 5, Recorded: []int64{7}, Epoch: 1},
			flow.Settled{Through: 400, Order: 6, Since: 6, Epoch: 2},
			flow.Settled{Through: 400, Order: 6, Since: 6, Unrecorded: append([]int64{3}, letters...), Epoch: 2},
		},
	} {
		late := []flow.Settled{
			{Through: 5, Order: 2, Since: 1, Epoch: 2},
			{Through: 10, Order: 2, Unrecorded: []int64{3, 7, 8}, Epoch: 1},
			{Through: 5, Order: 1, Recorded: []int64{3, 7, 150}, Epoch: 1},
			step.settle,
		}
		for _, settled := range append([]flow.Settled{step.settle}, late...) {
			if settled.Epoch > step.settle.Epoch {
				continue
			}
			if err := s.gate.Settle(t.Context(), "c", settled); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(step.hear, <-heard); diff != "" {
			t.Errorf("what was heard is otherwise (-want +heard):\n%s", diff)
		}
		read, err := s.gate.SettledThrough(t.Context(), "c", append([]int64{1, 3, 7, 401}, letters...))
		if diff := cmp.Diff(step.read, read); diff != "" || err != nil {
			t.Errorf("what is read is otherwise: %v (-want +read):\n%s", err, diff)
		}
	}
	if len(heard) > 0 {
		t.Errorf("what is older was heard: %+v", <-heard)
	}
	s.do("XTRIM", keysOf[2], "MAXLEN", "0") // as a recorder that is done with the entries
	for user, recorded := range map[int]bool{0: true, 2: false, 100: false, 99: false, 98: true, 399: true, 400: false} {
		d := s.issue(user, 1)[0]
		c, err := s.gate.CouponOf(t.Context(), "c", crowd(user, 1)[0])
		if err != nil || d.Coupon.Recorded != recorded || c.Recorded != recorded {
			t.Errorf("number %d is recorded: %v and %v, %v", user+1, d.Coupon.Recorded, c.Recorded, err)
		}
	}
}

// TestASettlingThatNeverCameIsReadFromTheLedger loses one of three settlings, and then
// gives it late.
func TestASettlingThatNeverCameIsReadFromTheLedger(t *testing.T) {
	var asked []int64
	missed := map[int64]flow.Settled{ // in two parts
		1: {Order: 2, Since: 1, Recorded: []int64{3}},
		2: {Through: 12, Order: 3, Since: 2, Unrecorded: []int64{5}, Epoch: 1},
	}
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited, func(o *redis.Options) {
		o.SettledSince = func(_ context.Context, id firstcome.CampaignID, since int64) (flow.Settled, error) {
			asked = append(asked, since)
			return missed[since], nil
		}
	})
	s.issue(0, 20)
	settle := func(settled flow.Settled) {
		t.Helper()
		if err := s.gate.Settle(t.Context(), "c", settled); err != nil {
			t.Fatal(err)
		}
	}
	settle(flow.Settled{Through: 10, Order: 1, Unrecorded: []int64{3}, Epoch: 1})
	settle(flow.Settled{Through: 14, Order: 4, Since: 3, Unrecorded: []int64{13}, Epoch: 1})
	settle(flow.Settled{Through: 11, Order: 2, Since: 1, Recorded: []int64{3}, Epoch: 1})
	if diff := cmp.Diff([]int64{1, 2}, asked); diff != "" {
		t.Errorf("the ledger was asked otherwise (-want +got):\n%s", diff)
	}
	read, err := s.gate.SettledThrough(t.Context(), "c", []int64{3, 4, 5, 13, 15})
	want := flow.Settled{Through: 14, Order: 4, Since: 4, Unrecorded: []int64{5, 13}, Epoch: 1}
	if diff := cmp.Diff(want, read); diff != "" || err != nil {
		t.Errorf("what is read is otherwise: %v (-want +read):\n%s", err, diff)
	}
}

// TestNothingIsSettledWhileWhatCameBeforeIsNotKnown has a ledger that does not answer.
func TestNothingIsSettledWhileWhatCameBeforeIsNotKnown(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited, func(o *redis.Options) {
		o.SettledSince = func(context.Context, firstcome.CampaignID, int64) (flow.Settled, error) {
			return flow.Settled{}, errors.New("the ledger is down")
		}
	})
	s.issue(0, 20)
	if err := s.gate.Settle(t.Context(), "c", flow.Settled{Through: 10, Order: 2, Since: 1, Epoch: 1}); err == nil {
		t.Error("no error")
	}
	if read, err := s.gate.SettledThrough(t.Context(), "c", nil); err != nil || read.Through != 0 {
		t.Errorf("settled: %+v, %v", read, err)
	}
}
