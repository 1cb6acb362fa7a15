package issue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/point"
)

// ErrNotRecordedYet means that a claim was decided and its coupon did not reach the ledger within the time that claims wait. Asking again is safe and
// finds it.
var ErrNotRecordedYet = errors.New("decided, but not recorded in time")

// defaultAnswerWait is how long a claim waits for the ledger by default. Recording takes some 10 ms while the ledger is well, and people wait 3 s for
// a page.
const defaultAnswerWait = 3 * time.Second

// An Answerer answers claims at the time that their campaign's terms name. With firstcome.Recorded, it answers with a coupon only once the coupon is
// in the ledger.
type Answerer struct {
	// Issuer decides claims.
	Issuer *Issuer
	// Coupons looks up coupons at the gate that decides.
	Coupons gate.Coupons
	// Waiter waits until a coupon is recorded. It is nil if the gate records each coupon as it decides.
	Waiter *Waiter
	// Terms returns a campaign's terms as of a version. It is called for each claim that is decided and not yet recorded, so it should cache them.
	Terms func(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error)
	// Wait is how long a claim waits for the ledger, or up to a 64th less; 0 means defaultAnswerWait.
	Wait time.Duration

	once sync.Once
	ends *deadlines // when claims no longer wait; made by deadline
}

// Claim asks for a coupon of the campaign for the user: see Issuer.Claim. ErrNotRecordedYet and ErrUnrecorded mean that a coupon was issued and must
// not be shown yet.
func (a *Answerer) Claim(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Decision, error) {
	d, err := a.Issuer.Claim(ctx, id, user)
	if err != nil {
		return d, err
	}
	point.Reach(point.Decided)
	if !d.Outcome.HasCoupon() || d.Coupon.Recorded {
		return d, nil
	}
	if err := a.await(ctx, a.deadline(), &d.Coupon); err != nil {
		return firstcome.Decision{}, err
	}
	return d, nil
}

// Issue asks for a coupon for each of users: see Issuer.Issue. All of them together wait for recording no longer than one claim would.
func (a *Answerer) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := a.Issuer.Issue(ctx, order, id, users)
	if err != nil {
		return nil, err
	}
	end := a.deadline()
	for n := range decisions {
		if d := &decisions[n]; d.Outcome.HasCoupon() && !d.Coupon.Recorded {
			if err := a.await(ctx, end, &d.Coupon); err != nil {
				return nil, err
			}
		}
	}
	return decisions, nil
}

// CouponOf returns the coupon in force that a user holds, or firstcome.ErrNoCoupon. The other errors are those of Claim.
func (a *Answerer) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	c, err := a.Coupons.CouponOf(ctx, id, user)
	if err != nil || c.Recorded {
		return c, err
	}
	if err := a.await(ctx, a.deadline(), &c); err != nil {
		return firstcome.Coupon{}, err
	}
	return c, nil
}

// deadline returns a context that ends when a claim that begins to wait now has waited long enough.
func (a *Answerer) deadline() context.Context {
	a.once.Do(func() { a.ends = &deadlines{parent: context.Background(), after: cmp.Or(a.Wait, defaultAnswerWait)} })
	return a.ends.context()
}

// await waits until a coupon is recorded, if its campaign answers when recorded, but no longer than until end has ended. Otherwise it waits only for a
// dead letter, because only the ledger knows what an operator did with it. If the ledger does not answer, such a coupon counts as not recorded.
func (a *Answerer) await(ctx, end context.Context, c *firstcome.Coupon) error {
	terms, err := a.Terms(end, c.Campaign, c.TermsVersion)
	if err != nil {
		return fmt.Errorf("read when a claim is answered: %w", err)
	}
	if terms.Answer == firstcome.Decided && !c.Buried {
		return nil
	}
	err = a.Waiter.Wait(ctx, end.Done(), *c)
	if c.Recorded = err == nil; terms.Answer == firstcome.Decided {
		return nil
	}
	return err
}
