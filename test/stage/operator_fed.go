package stage

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// fed returns the gate for lines that feeds keep.
func (o *Operator) fed() gate.Fed { return o.Gates[0].(gate.Fed) }

// Begin is gate.Fed's.
func (o *Operator) Begin(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed, generation, first int64) (firstcome.Line, error) {
	return o.fed().Begin(ctx, id, feed, generation, first)
}

// ServeTurn is gate.Fed's.
func (o *Operator) ServeTurn(ctx context.Context, id firstcome.CampaignID, turn gate.Turn) (gate.Turned, error) {
	turned, err := o.fed().ServeTurn(ctx, id, turn)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range turned.Coupons {
		o.campaigns[id].users[c.Number] = c.User
	}
	return turned, err
}

// PlaceOf is gate.Fed's.
func (o *Operator) PlaceOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, ticket firstcome.Ticket) (firstcome.Place, firstcome.Coupon, error) {
	return o.fed().PlaceOf(ctx, id, user, ticket)
}

// LeaveOf is gate.Fed's.
func (o *Operator) LeaveOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error {
	return o.fed().LeaveOf(ctx, id, user, through)
}
