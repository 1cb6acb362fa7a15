package flow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// TestWhatIsSettledInSeveralCallsIsToldAsOne has number 1 refused and buried before
// number 2 is recorded.
func TestWhatIsSettledInSeveralCallsIsToldAsOne(t *testing.T) {
	buried := flow.Settled{Through: 1, Order: 4, Since: 3, Unrecorded: []int64{1}, Epoch: 1}
	for name, c := range map[string]struct{ second, want flow.Settled }{
		"nothing changed": {
			flow.Settled{Through: 2, Order: 4, Since: 4, Epoch: 1}, flow.Settled{Through: 2, Order: 4, Since: 3, Unrecorded: []int64{1}, Epoch: 1},
		},
		"it changed what the first did": {
			flow.Settled{Through: 2, Order: 5, Since: 4, Unrecorded: []int64{2}, Recorded: []int64{1}, Epoch: 1},
			flow.Settled{Through: 2, Order: 5, Since: 3, Unrecorded: []int64{2}, Recorded: []int64{1}, Epoch: 1},
		},
		"an operator replayed it in between": {
			flow.Settled{Through: 2, Order: 5, Since: 5, Epoch: 1}, flow.Settled{Through: 2, Order: 5, Since: 5, Epoch: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []flow.Settled
				j := &journal{took: func(s flow.Settled) error {
					told = append(told, s)
					return nil
				}}
				j.add(flow.Batch{Campaign: "c", Coupons: coupons("c", 1, 2)})
				runFor(t, flow.NewRecorder(j, inTurn{buried, c.second}, flow.RecorderLimits{}), time.Minute)
				if diff := cmp.Diff([]flow.Settled{c.want}, told, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("told otherwise (-want +told):\n%s", diff)
				}
			})
		})
	}
}

// inTurn is a keeper that refuses number 1, and returns the one when it is buried and
// the other when number 2 is recorded.
type inTurn struct{ buried, recorded flow.Settled }

func (k inTurn) Record(_ context.Context, _ firstcome.CampaignID, coupons []firstcome.Coupon) (flow.Settled, error) {
	if coupons[0].Number == 1 {
		return flow.Settled{}, flow.ErrRefused
	}
	return k.recorded, nil
}

func (k inTurn) Bury(context.Context, firstcome.CampaignID, []flow.DeadLetter) (flow.Settled, error) {
	return k.buried, nil
}
