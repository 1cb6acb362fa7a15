package gate

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
)

// A FedBook is a ledger that knows what a gate may forget of lines that feeds keep.
type FedBook interface {
	// Begin is that of Fed. The ledger hears of a generation before anybody has a ticket of it.
	Begin(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed, generation, first int64) (firstcome.Line, error)
	// KeepLeaver notes that a user left, with all tickets of a generation up to this one. flow.ErrRebuilding says that the gate is made anew, and
	// may not know it.
	KeepLeaver(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error
}

// errNoFed says that a gate is none for lines that feeds keep.
var errNoFed = fmt.Errorf("%w: this gate serves no line that a topic keeps", firstcome.ErrGateMismatch)

// fed calls the gate as one for lines that feeds keep, if it is one.
func fed[T any](r *Router, call func(Fed) (T, error)) (none T, err error) {
	if r.Fed == nil {
		return none, errNoFed
	}
	return call(r.Fed)
}

// Begin is that of Fed: in the ledger, then at the gate. The ledger's answer is where it begins at both. The ledger may be in a later
// generation, because it ended one that had not begun at the gate, when the campaign got another feed: then the gate goes on with that.
func (r *Router) Begin(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed, generation, first int64) (firstcome.Line, error) {
	return route(ctx, r, id, whole,
		func() (firstcome.Line, error) {
			return fed(r, func(gate Fed) (firstcome.Line, error) {
				line, err := r.Book.Begin(ctx, id, feed, generation, first)
				if err == nil && !line.Begun {
					line, err = r.Book.Begin(ctx, id, feed, line.Generation, first)
				}
				if err != nil || !line.Begun {
					return line, err
				}
				return gate.Begin(ctx, id, feed, line.Generation, line.First)
			})
		},
		func() (firstcome.Line, error) { return firstcome.Line{}, ErrRetired })
}

// ServeTurn is that of Fed. Nobody is in line of a campaign that the gate has forgotten.
func (r *Router) ServeTurn(ctx context.Context, id firstcome.CampaignID, turn Turn) (Turned, error) {
	return route(ctx, r, id, whole,
		func() (Turned, error) {
			return fed(r, func(gate Fed) (Turned, error) { return gate.ServeTurn(ctx, id, turn) })
		},
		func() (Turned, error) { return Turned{}, nil })
}

// PlaceOf is that of Fed.
func (r *Router) PlaceOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, ticket firstcome.Ticket) (place firstcome.Place, c firstcome.Coupon, err error) {
	c, err = route(ctx, r, id, whole,
		func() (c firstcome.Coupon, err error) {
			return fed(r, func(gate Fed) (c firstcome.Coupon, err error) {
				place, c, err = gate.PlaceOf(ctx, id, user, ticket)
				return c, err
			})
		},
		func() (firstcome.Coupon, error) { return r.retiredPlace(ctx, id, user) })
	return place, c, err
}

// LeaveOf is that of Fed: at the gate, then in the ledger.
func (r *Router) LeaveOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error {
	_, err := route(ctx, r, id, known,
		func() (struct{}, error) {
			return fed(r, func(gate Fed) (none struct{}, err error) {
				if err = gate.LeaveOf(ctx, id, user, through); err == nil {
					err = r.Book.KeepLeaver(ctx, id, user, through)
				}
				return none, err
			})
		},
		func() (struct{}, error) { return struct{}{}, r.retiredLeave(ctx, id, user) })
	return err
}
