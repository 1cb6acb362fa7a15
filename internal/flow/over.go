package flow

import (
	"context"
	"errors"
	"slices"

	"github.com/firstcome/firstcome"
)

// A RetiredBook is a ledger that answers for campaigns that their gate has forgotten.
type RetiredBook interface {
	Retired
	LostLines
	FedBook
	Recorded
	// LogDirect notes in the audit log what was issued directly, if anything was: see Direct.
	LogDirect(ctx context.Context, order Order, id firstcome.CampaignID, decisions []firstcome.Decision) error
}

// Retired answers for retired campaigns.
type Retired interface {
	// ClaimRetired decides claims of a retired campaign. For any other it returns ErrLost.
	ClaimRetired(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)
	// StateRetired returns the counters of a retired campaign, ErrLost for any other.
	StateRetired(ctx context.Context, id firstcome.CampaignID) (GateState, error)
}

// LostLines are lines that the gate has forgotten.
type LostLines interface {
	// LineOf is that of Places, as far as the gate told.
	LineOf(ctx context.Context, id firstcome.CampaignID) (LineState, error)
	// LoseLine ends the line of a campaign that is closed and that its gate has lost. It may be repeated.
	LoseLine(ctx context.Context, id firstcome.CampaignID) error
}

// Recorded are the coupons that the ledger has.
type Recorded interface {
	Coupons
	// Holders is a Gate's.
	Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error)
	// Has tells for each coupon, of any campaign, whether the ledger has it, voided or not.
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)
}

// Over is a remote gate whose ledger answers for a campaign that the gate has
// forgotten: the gate says ErrRetired or ErrLost, and the ledger says that it is
// retired. So a campaign that is over is never recreated at its gate.
type Over struct {
	RemoteGate
	// Fed is the gate as one for lines that feeds keep. Nil: it is none, and what is about such lines is firstcome.ErrGateMismatch.
	Fed  Fed
	Book RetiredBook
	// Notice, if not nil, hears of each campaign of which the gate decides nothing until it is rebuilt.
	Notice func(firstcome.CampaignID)
	// Refusal, if not nil, returns why nothing of a campaign is decided or changed though its gate could: see LedgerRolledBackError and StaleEpochError.
	Refusal func(firstcome.CampaignID) error
	// Refuse, if not nil, hears of each StaleEpochError of the gate itself.
	Refuse func(firstcome.CampaignID, error)
}

var _ RemoteGate = (*Over)(nil)

// either returns the gate's answer about a campaign, or the ledger's if the gate has forgotten the campaign.
func either[T any](ctx context.Context, o *Over, id firstcome.CampaignID, gate, ledger func() (T, error)) (T, error) {
	answer, err := gate()
	if errors.Is(err, ErrRetired) || errors.Is(err, ErrLost) {
		if _, not := o.Book.StateRetired(ctx, id); not == nil {
			return ledger()
		}
	}
	if o.Notice != nil && NeedsRebuild(err) {
		o.Notice(id)
	}
	if o.Refuse != nil && errors.Is(err, ErrStaleEpoch) {
		o.Refuse(id, err)
	}
	return answer, err
}

// refusal is Refusal.
func (o *Over) refusal(id firstcome.CampaignID) error {
	if o.Refusal == nil {
		return nil
	}
	return o.Refusal(id)
}

// unless is either, if nothing refuses the campaign.
func unless[T any](ctx context.Context, o *Over, id firstcome.CampaignID, gate, ledger func() (T, error)) (none T, err error) {
	if err := o.refusal(id); err != nil {
		return none, err
	}
	return either(ctx, o, id, gate, ledger)
}

// unlessStale is either, but refuses a gate in a stale epoch: its answers about users are out of date.
func unlessStale[T any](ctx context.Context, o *Over, id firstcome.CampaignID, gate, ledger func() (T, error)) (none T, err error) {
	if err := o.refusal(id); errors.Is(err, ErrStaleEpoch) {
		return none, err
	}
	return either(ctx, o, id, gate, ledger)
}

// Claim is a Gate's.
func (o *Over) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return unless(ctx, o, id,
		func() ([]firstcome.Decision, error) { return o.RemoteGate.Claim(ctx, id, users) },
		func() ([]firstcome.Decision, error) { return o.Book.ClaimRetired(ctx, id, users) })
}

// Issue is a Direct's. The gate issues first and the ledger logs it then: an error may be only of the log.
func (o *Over) Issue(ctx context.Context, order Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := unless(ctx, o, id,
		func() ([]firstcome.Decision, error) { return o.RemoteGate.Issue(ctx, order, id, users) },
		func() ([]firstcome.Decision, error) { return o.Book.ClaimRetired(ctx, id, users) })
	issued := slices.ContainsFunc(decisions, func(d firstcome.Decision) bool { return d.Outcome == firstcome.Issued })
	if err != nil || !issued {
		return decisions, err
	}
	return decisions, o.Book.LogDirect(ctx, order, id, decisions)
}

// Serve is a Line's. Nobody is in line of a campaign that the gate has forgotten.
func (o *Over) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (Served, error) {
	return unless(ctx, o, id,
		func() (Served, error) { return o.RemoteGate.Serve(ctx, id, limit) },
		func() (Served, error) { return Served{}, nil })
}

// Place implements Places. Nobody is served while anything refuses the campaign, so nobody is told a place.
func (o *Over) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (place firstcome.Place, c firstcome.Coupon, err error) {
	c, err = unless(ctx, o, id,
		func() (c firstcome.Coupon, err error) {
			place, c, err = o.RemoteGate.Place(ctx, id, user)
			return c, err
		},
		func() (firstcome.Coupon, error) { return o.retiredPlace(ctx, id, user) })
	return place, c, err
}

// Leave is that of Places. Who was in line of a campaign that the gate has forgotten is not known any more.
func (o *Over) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) error {
	_, err := unlessStale(ctx, o, id,
		func() (struct{}, error) { return struct{}{}, o.RemoteGate.Leave(ctx, id, user) },
		func() (struct{}, error) { return struct{}{}, o.retiredLeave(ctx, id, user) })
	return err
}

// LineOf is that of Places. Of a campaign that is closed and that its gate has lost the ledger tells how the line ended.
func (o *Over) LineOf(ctx context.Context, id firstcome.CampaignID) (LineState, error) {
	state, err := unless(ctx, o, id,
		func() (LineState, error) { return o.RemoteGate.LineOf(ctx, id) },
		func() (LineState, error) { return o.Book.LineOf(ctx, id) })
	if errors.Is(err, ErrLost) {
		if known, not := o.Book.LineOf(ctx, id); not == nil && known.Campaign.Closed {
			return known, nil
		}
	}
	return state, err
}

// Holders is a Gate's.
func (o *Over) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	return either(ctx, o, id,
		func() (int64, error) { return o.RemoteGate.Holders(ctx, id, each) },
		func() (int64, error) { return o.Book.Holders(ctx, id, each) })
}

// Apply is a RemoteGate's. A change of a retired campaign, which is a void or a
// close, is done in the ledger alone. Closing a campaign that the gate has lost ends its line, as lost.
func (o *Over) Apply(ctx context.Context, change firstcome.Change) (refused bool, err error) {
	refused, err = unless(ctx, o, change.Campaign,
		func() (bool, error) { return o.RemoteGate.Apply(ctx, change) },
		func() (bool, error) { return false, nil })
	if errors.Is(err, ErrLost) && change.Kind == firstcome.ChangeClose {
		err = errors.Join(err, o.Book.LoseLine(ctx, change.Campaign))
	}
	return refused, err
}

// CouponOf is a RemoteGate's.
func (o *Over) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	return unlessStale(ctx, o, id,
		func() (firstcome.Coupon, error) { return o.RemoteGate.CouponOf(ctx, id, user) },
		func() (firstcome.Coupon, error) { return o.Book.CouponOf(ctx, id, user) })
}

// State is a RemoteGate's.
func (o *Over) State(ctx context.Context, id firstcome.CampaignID) (GateState, error) {
	state, err := either(ctx, o, id,
		func() (GateState, error) { return o.RemoteGate.State(ctx, id) },
		func() (GateState, error) { return o.Book.StateRetired(ctx, id) })
	refusal := o.refusal(id)
	state.Ahead, state.Behind = errors.Is(refusal, ErrLedgerRolledBack), errors.Is(refusal, ErrStaleEpoch)
	return state, err
}

// DrainedThrough is a RemoteGate's.
func (o *Over) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error) {
	return either(ctx, o, id,
		func() (int64, error) { return o.RemoteGate.DrainedThrough(ctx, id) },
		func() (int64, error) {
			state, err := o.Book.StateRetired(ctx, id)
			return state.DrainedThrough, err
		})
}

// Has is a RemoteGate's, and always sure: if the gate is not, the ledger is asked.
func (o *Over) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	has, err := either(ctx, o, id,
		func() ([]bool, error) { return o.RemoteGate.Has(ctx, id, coupons) },
		func() ([]bool, error) { return make([]bool, len(coupons)), nil })
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
