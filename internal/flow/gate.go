// Package flow moves claims one way: from the callers through the Issuer, which
// gathers them into batches, to a Gate, which decides them.
//
// # The queue of a campaign
//
// A queue is idle until a claim arrives; then it drains: it takes what waits, in
// arrival order, as one batch to the gate, and while that batch is there the
// next claims gather. It is idle again when nothing waits. So there is one batch
// in flight per campaign, no timer, and no goroutine for an idle campaign.
//
// # What a node may answer by itself
//
// A gate's decision carries a lease: how long the node may repeat it. A refusal
// is repeated to whoever surely holds no coupon, which the holders filter tells;
// a coupon is repeated to its user. A change of the campaign ends every lease
// before it begins (Issuer.Change), so nobody is refused stock that came back.
package flow

import (
	"context"

	"github.com/firstcome/firstcome"
)

// A Gate decides claims: atomically, for good, in the order given. It may be
// called from many goroutines.
type Gate interface {
	// Claim decides one claim by each of users, in order, and returns a decision
	// for each. If it issues, the coupons are in the gate's journal or ledger when
	// it returns. firstcome.ErrNoCampaign, ErrGateMismatch and ErrBusy say that
	// nothing was decided; any other error means that the outcome of every claim is
	// unknown. Claiming again is safe.
	Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)

	// Holders calls each with every user who holds a coupon in force of the
	// campaign at one instant, and returns the campaign's version at that instant.
	Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error)
}
