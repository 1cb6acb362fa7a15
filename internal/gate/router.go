package gate

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
	StateRetired(ctx context.Context, id firstcome.CampaignID) (State, error)
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
	// Holders is a Decider's.
	Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error)
	// Has tells for each coupon, of any campaign, whether the ledger has it, voided or not.
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)
}

// Router is a remote gate whose ledger answers for a campaign that the gate has
// forgotten: the gate says ErrRetired or ErrLost, and the ledger says that it is
// retired. So a campaign that is over is never recreated at its gate.
type Router struct {
	Gate
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

var _ Gate = (*Router)(nil)

// either returns the gate's answer about a campaign, or the ledger's if the gate has forgotten the campaign.
func either[T any](ctx context.Context, o *Router, id firstcome.CampaignID, gate, ledger func() (T, error)) (T, error) {
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
func (o *Router) refusal(id firstcome.CampaignID) error {
	if o.Refusal == nil {
		return nil
	}
	return o.Refusal(id)
}

// unless is either, if nothing refuses the campaign.
func unless[T any](ctx context.Context, o *Router, id firstcome.CampaignID, gate, ledger func() (T, error)) (none T, err error) {
	if err := o.refusal(id); err != nil {
		return none, err
	}
	return either(ctx, o, id, gate, ledger)
}

// unlessStale is either, but refuses a gate in a stale epoch: its answers about users are out of date.
func unlessStale[T any](ctx context.Context, o *Router, id firstcome.CampaignID, gate, ledger func() (T, error)) (none T, err error) {
	if err := o.refusal(id); errors.Is(err, ErrStaleEpoch) {
		return none, err
	}
	return either(ctx, o, id, gate, ledger)
}

// Claim is a Decider's.
func (o *Router) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return unless(ctx, o, id,
		func() ([]firstcome.Decision, error) { return o.Gate.Claim(ctx, id, users) },
		func() ([]firstcome.Decision, error) { return o.Book.ClaimRetired(ctx, id, users) })
}

// Issue is a Direct's. The gate issues first and the ledger logs it then: an error may be only of the log.
func (o *Router) Issue(ctx context.Context, order Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := unless(ctx, o, id,
		func() ([]firstcome.Decision, error) { return o.Gate.Issue(ctx, order, id, users) },
		func() ([]firstcome.Decision, error) { return o.Book.ClaimRetired(ctx, id, users) })
	issued := slices.ContainsFunc(decisions, func(d firstcome.Decision) bool { return d.Outcome == firstcome.Issued })
	if err != nil || !issued {
		return decisions, err
	}
	return decisions, o.Book.LogDirect(ctx, order, id, decisions)
}

// Serve is a Line's. Nobody is in line of a campaign that the gate has forgotten.
func (o *Router) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (Served, error) {
	return unless(ctx, o, id,
		func() (Served, error) { return o.Gate.Serve(ctx, id, limit) },
		func() (Served, error) { return Served{}, nil })
}

// Place implements Places. Nobody is served while anything refuses the campaign, so nobody is told a place.
func (o *Router) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (place firstcome.Place, c firstcome.Coupon, err error) {
	c, err = unless(ctx, o, id,
		func() (c firstcome.Coupon, err error) {
			place, c, err = o.Gate.Place(ctx, id, user)
			return c, err
		},
		func() (firstcome.Coupon, error) { return o.retiredPlace(ctx, id, user) })
	return place, c, err
}

// Leave is that of Places. Who was in line of a campaign that the gate has forgotten is not known any more.
func (o *Router) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) error {
	_, err := unlessStale(ctx, o, id,
		func() (struct{}, error) { return struct{}{}, o.Gate.Leave(ctx, id, user) },
		func() (struct{}, error) { return struct{}{}, o.retiredLeave(ctx, id, user) })
	return err
}

// LineOf is that of Places. Of a campaign that is closed and that its gate has lost the ledger tells how the line ended.
func (o *Router) LineOf(ctx context.Context, id firstcome.CampaignID) (LineState, error) {
	state, err := unless(ctx, o, id,
		func() (LineState, error) { return o.Gate.LineOf(ctx, id) },
		func() (LineState, error) { return o.Book.LineOf(ctx, id) })
	if errors.Is(err, ErrLost) {
		if known, not := o.Book.LineOf(ctx, id); not == nil && known.Campaign.Closed {
			return known, nil
		}
	}
	return state, err
}

// Holders is a Decider's.
func (o *Router) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	return either(ctx, o, id,
		func() (int64, error) { return o.Gate.Holders(ctx, id, each) },
		func() (int64, error) { return o.Book.Holders(ctx, id, each) })
}

// Apply is a Gate's. A change of a retired campaign, which is a void or a
// close, is done in the ledger alone. Closing a campaign that the gate has lost ends its line, as lost.
func (o *Router) Apply(ctx context.Context, change firstcome.Change) (refused bool, err error) {
	refused, err = unless(ctx, o, change.Campaign,
		func() (bool, error) { return o.Gate.Apply(ctx, change) },
		func() (bool, error) { return false, nil })
	if errors.Is(err, ErrLost) && change.Kind == firstcome.ChangeClose {
		err = errors.Join(err, o.Book.LoseLine(ctx, change.Campaign))
	}
	return refused, err
}

// CouponOf is a Gate's.
func (o *Router) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	return unlessStale(ctx, o, id,
		func() (firstcome.Coupon, error) { return o.Gate.CouponOf(ctx, id, user) },
		func() (firstcome.Coupon, error) { return o.Book.CouponOf(ctx, id, user) })
}

// State is a Gate's.
func (o *Router) State(ctx context.Context, id firstcome.CampaignID) (State, error) {
	state, err := either(ctx, o, id,
		func() (State, error) { return o.Gate.State(ctx, id) },
		func() (State, error) { return o.Book.StateRetired(ctx, id) })
	refusal := o.refusal(id)
	state.Ahead, state.Behind = errors.Is(refusal, ErrLedgerRolledBack), errors.Is(refusal, ErrStaleEpoch)
	return state, err
}

// DrainedThrough is a Gate's.
func (o *Router) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error) {
	return either(ctx, o, id,
		func() (int64, error) { return o.Gate.DrainedThrough(ctx, id) },
		func() (int64, error) {
			state, err := o.Book.StateRetired(ctx, id)
			return state.DrainedThrough, err
		})
}

// Has is a Gate's, and always sure: if the gate is not, the ledger is asked.
func (o *Router) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	has, err := either(ctx, o, id,
		func() ([]bool, error) { return o.Gate.Has(ctx, id, coupons) },
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
