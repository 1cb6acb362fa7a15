package sqlgate

import (
	"context"
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// ClaimRetired decides claims of a retired campaign as its gate did. It returns the coupons of holders, and issues
// no coupon. For any other campaign it returns gate.ErrGone.
func (g *Gate) ClaimRetired(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	var decisions []firstcome.Decision
	err := g.db.Repeat(ctx, func(t *sqldb.Tx) (err error) {
		decisions, err = g.decideRetired(t, id, users)
		return err
	})
	if err != nil { // the writer may still be at decisions
		return nil, sqldb.Wrap(err, "decide %d claims of %s", len(users), id)
	}
	return decisions, nil
}

// decideRetired is the transaction of ClaimRetired.
func (g *Gate) decideRetired(t *sqldb.Tx, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	s, err := g.store.Row(t, id)
	if err != nil {
		return nil, err
	}
	if s.RetiredAt.IsZero() {
		return nil, campaign.ErrNotRetired
	}
	holders, err := campaign.Holders(t, []campaign.Claimants{{Campaign: id, Users: users}})
	if err != nil {
		return nil, err
	}
	now := g.store.DecidesAt(*s)
	decisions := make([]firstcome.Decision, len(users))
	for n, user := range users {
		coupon := holders[id][user]
		outcome := firstcome.Decide(s.Campaign, now, s.InForce, coupon != nil, false)
		decisions[n] = firstcome.Decision{
			Outcome: outcome, At: now, Version: s.Version, TermsVersion: s.TermsVersion, InForce: s.InForce,
			Since: s.Since(outcome), OpenedAt: s.OpenedAt, Lease: leaseOf(t, s, now, outcome),
		}
		if coupon != nil {
			decisions[n].Coupon = *coupon
		}
	}
	return decisions, nil
}

// StateRetired returns the counters of a retired campaign, as its gate reported them. For any other campaign it
// returns gate.ErrGone.
func (g *Gate) StateRetired(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	s, err := g.store.Status(ctx, id)
	switch {
	case errors.Is(err, firstcome.ErrNoCampaign):
		return gate.State{}, err
	case err != nil:
		return gate.State{}, fmt.Errorf("read the retired campaign %s: %w", id, err)
	case s.RetiredAt.IsZero():
		return gate.State{}, campaign.ErrNotRetired
	}
	return gate.State{
		Now: s.Now, Version: s.Version, Epoch: s.Epoch, InForce: s.InForce, Issued: s.Issued, DrainedThrough: s.DrainedThrough, Instants: s.Instants,
		LastNumber: max(s.LastNumber, s.DrainedThrough), // the last number may be lost
	}, nil
}
