package api

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A Ledger is what the API reads of one: see ledger.Ledger. Changes of a campaign go through Config.Operator.
type Ledger interface {
	Campaigns
	Coupons
	Facts
	Records
}

// Campaigns are a ledger's.
type Campaigns interface {
	Decides(c *ledger.Status) error
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
	Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]ledger.Status, error)
	Unclosed(ctx context.Context, limit int) (all []ledger.Shown, more int64, err error)
	Lost(ctx context.Context, id firstcome.CampaignID) ([]ledger.Range, error)
}

// Coupons are a ledger's.
type Coupons interface {
	Coupons(ctx context.Context, id firstcome.CampaignID, p ledger.Page, each func(firstcome.Coupon) error) error
	Export(ctx context.Context, id firstcome.CampaignID, p ledger.Page, each func(c firstcome.Coupon, reason string) error) error
	Find(ctx context.Context, id firstcome.CampaignID, c ledger.Choice) (found []firstcome.Coupon, next int64, err error)
	Wallet(ctx context.Context, user firstcome.UserID, after firstcome.CampaignID, limit int) ([]firstcome.Coupon, error)
}

// Facts are a ledger's.
type Facts interface {
	Facts(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
	NewFacts(id firstcome.CampaignID) (news <-chan struct{}, forget func())
}

// Records say what was done, and what is left to do.
type Records interface {
	Changes(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(c firstcome.Change, refused bool) error) error
	DeadLetters(ctx context.Context, p ledger.Letters) ([]ledger.DeadLetter, error)
	LetterCauses(ctx context.Context, id firstcome.CampaignID) ([]ledger.LetterCause, error)
	AuditLog(ctx context.Context, f ledger.LogFilter) ([]ledger.LogEntry, error)
	Keys(ctx context.Context) ([]firstcome.Key, error)
}

// Claims answers claims and repeated questions for a coupon: see flow.Answerer.
type Claims interface {
	Claim(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Decision, error)
	CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error)
}
