package audit_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// books are a ledger's rows of a campaign, in memory.
type books struct {
	campaign audit.Campaign
	coupons  []firstcome.Coupon
	letters  []audit.Letter
	lost     []firstcome.Range
	past     []firstcome.PastLine
	changes  []audit.Change
}

// each returns a List of all of them.
func each[T any](all *[]T) audit.List[T] {
	return func(_ context.Context, _ firstcome.CampaignID, each func(T)) error {
		for _, one := range *all {
			each(one)
		}
		return nil
	}
}

func (b *books) source() audit.Source {
	return audit.Source{
		Campaign: func(context.Context, firstcome.CampaignID) (audit.Campaign, error) { return b.campaign, nil },
		Coupons:  each(&b.coupons), Letters: each(&b.letters), Lost: each(&b.lost), Past: each(&b.past), Changes: each(&b.changes),
	}
}

var opening = time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)

// at returns the time a number of seconds after the opening.
func at(seconds int) time.Time { return opening.Add(time.Duration(seconds) * time.Second) }

// issue gives a user a number, a second after the one before.
func (b *books) issue(number int64, user firstcome.UserID) {
	b.campaign.LastNumber = number
	b.coupons = append(b.coupons, firstcome.Coupon{Campaign: "c", Number: number, User: user, IssuedAt: at(int(number - 1)), TermsVersion: 1, Recorded: true})
}

// sound returns books without a breach: number 2 is voided, and its user now has number 4.
func sound() *books {
	b := &books{}
	b.campaign.ID, b.campaign.Quantity, b.campaign.Version, b.campaign.Applied, b.campaign.Epoch = "c", 3, 2, 2, 1
	for n, user := range []firstcome.UserID{"a", "b", "c", "b"} {
		b.issue(int64(n+1), user)
	}
	b.coupons[1].VoidedAt = at(2)
	b.campaign.TermsVersion, b.changes = 1, []audit.Change{{Change: firstcome.Change{Version: 1, Payload: "the terms"}}, {Change: firstcome.Change{Version: 2, Payload: "a void"}}}
	return b
}
