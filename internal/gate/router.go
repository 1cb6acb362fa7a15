package gate

import (
	"context"
	"errors"
	"slices"

	"github.com/firstcome/firstcome"
)

// A Router is a gate whose ledger answers for campaigns that the gate has deleted: then the gate returns ErrRetired or ErrGone, and the ledger has
// the campaign as retired. So a campaign that has ended is never recreated at its gate. While recovery refuses a campaign, the Router stops calls:
// see may.
type Router struct {
	Gate
	Retired Retired
	Ledger  Ledger
	Watch   Watch // if nil, no campaign is refused, and gates that have lost data are not reported
}

// Retired answers for retired campaigns. sqlgate.Gate implements it.
type Retired interface {
	Coupons
	// ClaimRetired decides claims of a retired campaign. It returns ErrGone for any other campaign.
	ClaimRetired(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)
	// StateRetired returns the counters of a retired campaign. It returns ErrGone for any other campaign.
	StateRetired(ctx context.Context, id firstcome.CampaignID) (State, error)
	// Holders works as in Decider.
	Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error)
	// LineOf works as in Places, with what the gate has reported to the ledger.
	LineOf(ctx context.Context, id firstcome.CampaignID) (LineState, error)
}

// Ledger has calls that only the ledger can answer or log. ledger.Recorder implements it.
type Ledger interface {
	// Has reports for each coupon, of any campaign, whether the ledger has it, voided or not.
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)
	// LoseLine ends, as lost, the line of a closed campaign whose gate has lost it. It may be repeated.
	LoseLine(ctx context.Context, id firstcome.CampaignID) error
	// LogDirect notes coupons that were issued directly in the audit log, if there are any: see Decider.
	LogDirect(ctx context.Context, order Order, id firstcome.CampaignID, decisions []firstcome.Decision) error
}

// A Watch keeps what this node knows about the gate of each campaign. recovery.Watch implements it.
type Watch interface {
	// Refusal returns why nothing of a campaign may be decided or changed, although its gate could: a LedgerRolledBackError, a StaleEpochError, or
	// nil.
	Refusal(id firstcome.CampaignID) error
	// Suspect notes why a gate did nothing for a campaign, if recovery may help: ErrUnverified, ErrGone or a StaleEpochError. It never blocks.
	Suspect(id firstcome.CampaignID, why error)
}

var _ Gate = (*Router)(nil)

// A may is the kind of a call: which refusals by recovery stop it.
type may int

const (
	// read is never stopped: counters, and which coupons are recorded.
	read may = iota
	// known is stopped by a gate in a stale epoch, whose data about users is out of date.
	known
	// blocksAll is stopped by any refusal: nothing is decided, served or changed, and no user is told a place.
	blocksAll
)

// stops reports whether a refusal by recovery stops a call.
func (m may) stops(refusal error) bool {
	return m == blocksAll && refusal != nil || m == known && errors.Is(refusal, ErrStaleEpoch)
}

// route returns the gate's answer about a campaign, or the ledger's if the gate has deleted the campaign and the ledger has retired it. lost, if given, makes
// the answer where the gate has lost a campaign that is not retired. Only route decides from a gate's error who
// answers. It caches nothing: each call asks the Watch.
func route[T any](ctx context.Context, r *Router, id firstcome.CampaignID, m may, gate, ledger func() (T, error), lost ...func(error) (T, error)) (none T, err error) {
	if err := r.refusal(id); m.stops(err) {
		return none, err
	}
	answer, err := gate()
	isLost := errors.Is(err, ErrGone)
	if isLost || errors.Is(err, ErrRetired) {
		if _, not := r.Retired.StateRetired(ctx, id); not == nil {
			return ledger()
		}
	}
	if r.Watch != nil && (NeedsRebuild(err) || errors.Is(err, ErrStaleEpoch)) {
		r.Watch.Suspect(id, err)
	}
	if isLost && len(lost) > 0 {
		return lost[0](err)
	}
	return answer, err
}

// refusal returns why recovery refuses a campaign, or nil.
func (r *Router) refusal(id firstcome.CampaignID) error {
	if r.Watch == nil {
		return nil
	}
	return r.Watch.Refusal(id)
}

// Claim implements Decider.
func (r *Router) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return route(ctx, r, id, blocksAll,
		func() ([]firstcome.Decision, error) { return r.Gate.Claim(ctx, id, users) },
		func() ([]firstcome.Decision, error) { return r.Retired.ClaimRetired(ctx, id, users) })
}

// Issue implements Decider. The gate issues, and then the ledger logs: an error may mean only that the log failed.
func (r *Router) Issue(ctx context.Context, order Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := route(ctx, r, id, blocksAll,
		func() ([]firstcome.Decision, error) { return r.Gate.Issue(ctx, order, id, users) },
		func() ([]firstcome.Decision, error) { return r.Retired.ClaimRetired(ctx, id, users) })
	issued := slices.ContainsFunc(decisions, func(d firstcome.Decision) bool { return d.Outcome == firstcome.Issued })
	if err != nil || !issued {
		return decisions, err
	}
	return decisions, r.Ledger.LogDirect(ctx, order, id, decisions)
}

// Holders implements Decider.
func (r *Router) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	return route(ctx, r, id, read,
		func() (int64, error) { return r.Gate.Holders(ctx, id, each) },
		func() (int64, error) { return r.Retired.Holders(ctx, id, each) })
}

// Serve implements Line. The line of a retired campaign is empty.
func (r *Router) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (Served, error) {
	return route(ctx, r, id, blocksAll,
		func() (Served, error) { return r.Gate.Serve(ctx, id, limit) },
		func() (Served, error) { return Served{}, nil })
}

// Place implements Places.
func (r *Router) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (place firstcome.Place, c firstcome.Coupon, err error) {
	c, err = route(ctx, r, id, blocksAll,
		func() (c firstcome.Coupon, err error) {
			place, c, err = r.Gate.Place(ctx, id, user)
			return c, err
		},
		func() (firstcome.Coupon, error) { return r.retiredPlace(ctx, id, user) })
	return place, c, err
}

// retiredPlace returns the coupon of a user of a retired campaign.
func (r *Router) retiredPlace(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	c, err := r.Retired.CouponOf(ctx, id, user)
	if errors.Is(err, firstcome.ErrNoCoupon) {
		err = firstcome.ErrNoTicket
	}
	return c, err
}

// Leave implements Places. The ledger does not know who was in line of a retired campaign.
func (r *Router) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, error) {
	return route(ctx, r, id, known,
		func() (firstcome.Place, error) { return r.Gate.Leave(ctx, id, user) },
		func() (firstcome.Place, error) { return firstcome.Place{}, r.retiredLeave(ctx, id, user) })
}

// retiredLeave returns why a user cannot leave the line of a retired campaign.
func (r *Router) retiredLeave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) error {
	_, err := r.retiredPlace(ctx, id, user)
	if err == nil {
		err = firstcome.ErrServed
	}
	return err
}

// Stays implements Places. The ledger does not know who was in line of a retired campaign.
func (r *Router) Stays(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) ([]Stay, error) {
	return route(ctx, r, id, blocksAll,
		func() ([]Stay, error) { return r.Gate.Stays(ctx, id, user) },
		func() ([]Stay, error) { return nil, nil })
}

// LineOf implements Places. If the gate lost a closed campaign, the ledger reports how its line ended.
func (r *Router) LineOf(ctx context.Context, id firstcome.CampaignID) (LineState, error) {
	return route(ctx, r, id, blocksAll,
		func() (LineState, error) { return r.Gate.LineOf(ctx, id) },
		func() (LineState, error) { return r.Retired.LineOf(ctx, id) },
		func(lost error) (LineState, error) {
			if state, err := r.Retired.LineOf(ctx, id); err == nil && state.Campaign.Closed {
				return state, nil
			}
			return LineState{}, lost
		})
}

// CouponOf implements Coupons.
func (r *Router) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	return route(ctx, r, id, known,
		func() (firstcome.Coupon, error) { return r.Gate.CouponOf(ctx, id, user) },
		func() (firstcome.Coupon, error) { return r.Retired.CouponOf(ctx, id, user) })
}

// Apply implements Applier. A change of a retired campaign, which can only be a void or a close, is made in the ledger alone. Closing a campaign that
// the gate has lost ends its line as lost.
func (r *Router) Apply(ctx context.Context, change firstcome.Change) (refused bool, err error) {
	return route(ctx, r, change.Campaign, blocksAll,
		func() (bool, error) { return r.Gate.Apply(ctx, change) },
		func() (bool, error) { return false, nil },
		func(lost error) (bool, error) {
			if change.Kind == firstcome.ChangeClose {
				lost = errors.Join(lost, r.Ledger.LoseLine(ctx, change.Campaign))
			}
			return false, lost
		})
}

// Decides implements Epochs. No epoch of a retired campaign decides.
func (r *Router) Decides(ctx context.Context, id firstcome.CampaignID, epoch int64) error {
	_, err := route(ctx, r, id, blocksAll,
		func() (struct{}, error) { return struct{}{}, r.Gate.Decides(ctx, id, epoch) },
		func() (struct{}, error) { return struct{}{}, ErrRetired })
	return err
}

// State implements Counters. It also sets LedgerRolledBack and StaleEpoch.
func (r *Router) State(ctx context.Context, id firstcome.CampaignID) (State, error) {
	state, err := route(ctx, r, id, read,
		func() (State, error) { return r.Gate.State(ctx, id) },
		func() (State, error) { return r.Retired.StateRetired(ctx, id) })
	refusal := r.refusal(id)
	state.LedgerRolledBack, state.StaleEpoch = errors.Is(refusal, ErrLedgerRolledBack), errors.Is(refusal, ErrStaleEpoch)
	return state, err
}

// DrainedThrough implements Drains.
func (r *Router) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error) {
	return route(ctx, r, id, read,
		func() (int64, error) { return r.Gate.DrainedThrough(ctx, id) },
		func() (int64, error) {
			state, err := r.Retired.StateRetired(ctx, id)
			return state.DrainedThrough, err
		})
}

// Has implements Drains. It is always certain, because it asks the ledger about the coupons for which the gate reports false.
func (r *Router) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	has, err := route(ctx, r, id, read,
		func() ([]bool, error) { return r.Gate.Has(ctx, id, coupons) },
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
	found, err := r.Ledger.Has(ctx, id, rest)
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
