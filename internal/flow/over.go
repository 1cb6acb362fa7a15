package flow

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
)

// A RetiredBook is a ledger that answers for campaigns that their gate has forgotten.
type RetiredBook interface {
	// ClaimRetired decides claims of a retired campaign. For any other it returns ErrLost.
	ClaimRetired(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)
	// StateRetired returns the counters of a retired campaign, ErrLost for any other.
	StateRetired(ctx context.Context, id firstcome.CampaignID) (GateState, error)
	// Holders and CouponOf are those of a gate.
	Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error)
	CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error)
	// Has tells for each coupon, of any campaign, whether the ledger has it, voided or not.
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)
}

// Over is a remote gate whose ledger answers for a campaign that the gate has
// forgotten: the gate says ErrRetired or ErrLost, and the ledger says that it is
// retired. So a campaign that is over is never made again at its gate.
type Over struct {
	RemoteGate
	Book RetiredBook
}

var _ RemoteGate = (*Over)(nil)

// answers tells whether the ledger answers for a campaign after an error of the gate.
func (o *Over) answers(ctx context.Context, id firstcome.CampaignID, err error) bool {
	if !errors.Is(err, ErrRetired) && !errors.Is(err, ErrLost) {
		return false
	}
	_, err = o.Book.StateRetired(ctx, id)
	return err == nil
}

// Claim is a Gate's.
func (o *Over) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := o.RemoteGate.Claim(ctx, id, users)
	if o.answers(ctx, id, err) {
		return o.Book.ClaimRetired(ctx, id, users)
	}
	return decisions, err
}

// Holders is a Gate's.
func (o *Over) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	version, err = o.RemoteGate.Holders(ctx, id, each)
	if o.answers(ctx, id, err) {
		return o.Book.Holders(ctx, id, each)
	}
	return version, err
}

// Apply is a RemoteGate's. A change of a retired campaign, which is a void or a
// close, is done in the ledger alone.
func (o *Over) Apply(ctx context.Context, change firstcome.Change) (refused bool, err error) {
	refused, err = o.RemoteGate.Apply(ctx, change)
	if o.answers(ctx, change.Campaign, err) {
		return false, nil
	}
	return refused, err
}

// CouponOf is a RemoteGate's.
func (o *Over) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	c, err := o.RemoteGate.CouponOf(ctx, id, user)
	if o.answers(ctx, id, err) {
		return o.Book.CouponOf(ctx, id, user)
	}
	return c, err
}

// State is a RemoteGate's.
func (o *Over) State(ctx context.Context, id firstcome.CampaignID) (GateState, error) {
	s, err := o.RemoteGate.State(ctx, id)
	if o.answers(ctx, id, err) {
		return o.Book.StateRetired(ctx, id)
	}
	return s, err
}

// Has is a RemoteGate's, and always sure: if the gate is not, the ledger is asked.
func (o *Over) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	has, err := o.RemoteGate.Has(ctx, id, coupons)
	if o.answers(ctx, id, err) {
		return o.Book.Has(ctx, id, coupons)
	}
	if err != nil {
		return nil, err
	}
	var rest []firstcome.Coupon
	for n, c := range coupons {
		if !has[n] {
			rest = append(rest, c)
		}
	}
	if len(rest) == 0 {
		return has, nil
	}
	found, err := o.Book.Has(ctx, id, rest)
	if err != nil {
		return nil, err
	}
	for n := range has {
		if !has[n] {
			has[n], found = found[0], found[1:]
		}
	}
	return has, nil
}

// DrainedThrough is a RemoteGate's.
func (o *Over) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error) {
	through, err := o.RemoteGate.DrainedThrough(ctx, id)
	if o.answers(ctx, id, err) {
		s, err := o.Book.StateRetired(ctx, id)
		return s.DrainedThrough, err
	}
	return through, err
}
