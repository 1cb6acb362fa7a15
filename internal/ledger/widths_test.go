package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestEverybodyInABatchOfAnySizeIsFoundWhenTheyAskAgain looks up batches that fit no statement's width, and that fit one.
func TestEverybodyInABatchOfAnySizeIsFoundWhenTheyAskAgain(t *testing.T) {
	l := start(t, file(t), nil)
	lined := terms(firstcome.Unlimited)
	lined.Pace = &firstcome.Pace{PerSecond: 1}
	create(t, l, "coupons", firstcome.Unlimited)
	stage.Must(t, l.Campaigns.Create(context.Background(), "test", "line", lined))
	for size := 1; size <= 130; size++ {
		users := make([]firstcome.UserID, size)
		for n := range users {
			users[n] = firstcome.UserID(fmt.Sprintf("%d of %d", n, size))
		}
		for id, want := range map[firstcome.CampaignID]firstcome.Outcome{"coupons": firstcome.AlreadyIssued, "line": firstcome.Waiting} {
			first, err := l.Gate.Claim(t.Context(), id, users)
			stage.Must(t, err)
			second, err := l.Gate.Claim(t.Context(), id, users)
			stage.Must(t, err)
			same := slices.EqualFunc(first, second, func(a, b firstcome.Decision) bool {
				return b.Outcome == want && a.Coupon.Number == b.Coupon.Number && a.Place.Ticket == b.Place.Ticket
			})
			if !same {
				t.Fatalf("a batch of %d who ask again at %s: not everybody is found:\n%v\n%v", size, id, first, second)
			}
		}
	}
}
