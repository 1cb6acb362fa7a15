//go:build !check

package main

import (
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A remoteNode has the parts of a node where Redis decides, without HTTP, and with its own clock.
type remoteNode struct {
	*desk
	clock atomic.Int64
}

func newRemoteNode(t *testing.T) *remoteNode {
	t.Helper()
	r := &remoteNode{}
	r.clock.Store(time.Now().UnixNano())
	r.desk = newDesk(t, services.Redis.Database(t), filepath.Join(t.TempDir(), "firstcome.db"), func() time.Time { return time.Unix(0, r.clock.Load()) })
	r.flags.Role, r.monitor = "all", ops.New(r.log, "test", "test")
	r.monitor.WatchLedger(r.ledger)
	r.remote = newRemoteGate(r.base, links{gate: servingRedis(r.far)}, recovery.NewWatch(nil))
	r.remote.watched()
	stage.Run(t, r.remote.runs()...)
	return r
}

// claims returns the answers to users' claims.
func (r *remoteNode) claims(users ...firstcome.UserID) (outcomes []firstcome.Outcome) {
	r.t.Helper()
	decisions, err := r.remote.router.Claim(r.t.Context(), "c", users)
	stage.Must(r.t, err)
	for _, d := range decisions {
		outcomes = append(outcomes, d.Outcome)
		if d.Outcome == firstcome.Issued {
			stage.Must(r.t, r.remote.waiter.Wait(r.t.Context(), nil, d.Coupon))
		}
	}
	return outcomes
}

// TestACampaignThatIsOverLeavesRedisAndIsAnsweredForByTheLedger follows a campaign
// from its creation to a void long after its end, through the parts of a node.
func TestACampaignThatIsOverLeavesRedisAndIsAnsweredForByTheLedger(t *testing.T) {
	r := newRemoteNode(t)
	ctx := t.Context()
	want := func(what string, got []firstcome.Outcome, outcomes ...firstcome.Outcome) {
		t.Helper()
		if !slices.Equal(got, outcomes) {
			t.Errorf("%s: the claims got %v, want %v", what, got, outcomes)
		}
	}
	r.reaches("c", r.ledger.Campaigns.Create(ctx, "test", "c", stage.Terms(2)))
	want("open", r.claims("a", "b", "d"), firstcome.Issued, firstcome.Issued, firstcome.SoldOut)
	r.clock.Add(int64(time.Second))
	r.reaches("c", stage.Err(r.ledger.Campaigns.ChangeState(ctx, "test", "c", 0, firstcome.ChangeClose)))
	for _, pause := range []time.Duration{recovery.DefaultRetireAfter, time.Minute} {
		r.clock.Add(int64(pause))
		stage.Must(t, r.remote.retirer.Look(ctx))
		want("over", r.claims("a", "d"), firstcome.AlreadyIssued, firstcome.Closed)
	}
	if n := len(r.keys("c")); n != 0 {
		t.Errorf("Redis has %d keys of the campaign", n)
	}
	r.reaches("c", stage.Err(r.ledger.Campaigns.Void(ctx, "test", "c", 1, "a refund")))
	want("voided", r.claims("a", "b"), firstcome.Closed, firstcome.AlreadyIssued)
	if c, err := r.remote.router.CouponOf(ctx, "c", "b"); err != nil || c.Number != 2 || !c.Recorded {
		t.Errorf("the coupon of b is %+v, %v", c, err)
	}
	if _, err := r.remote.router.CouponOf(ctx, "c", "a"); !errors.Is(err, firstcome.ErrNoCoupon) {
		t.Errorf("the voided coupon: %v", err)
	}
	state, err := r.remote.router.State(ctx, "c")
	if err != nil || state.InForce != 1 || state.LastNumber != 2 {
		t.Errorf("the state: %+v, %v", state, err)
	}
	if _, err := r.remote.router.Claim(ctx, "nowhere", []firstcome.UserID{"a"}); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("no campaign: %v", err)
	}
	if n := len(r.keys("c")); n != 0 {
		t.Errorf("the campaign was recreated: Redis has %d keys of it", n)
	}
}

// TestAClockThatGoesBackOpensNoCampaignThatIsMarked sets the clock back before the keys are deleted. A user who was issued a coupon then would lose the
// coupon with the keys.
func TestAClockThatGoesBackOpensNoCampaignThatIsMarked(t *testing.T) {
	r := newRemoteNode(t)
	closesAt := time.Unix(0, r.clock.Load()).Add(time.Hour).UTC()
	terms := stage.Terms(2)
	terms.ClosesAt = closesAt
	r.reaches("c", r.ledger.Campaigns.Create(t.Context(), "test", "c", terms))
	r.clock.Store(closesAt.Add(recovery.DefaultRetireAfter).UnixNano())
	stage.Must(t, r.remote.retirer.Look(t.Context()))
	if c, err := r.ledger.Reads.Campaign(t.Context(), "c"); err != nil || c.RetiredAt.IsZero() {
		t.Fatalf("it is not marked: %+v, %v", c, err)
	}
	r.clock.Store(closesAt.Add(-time.Minute).UnixNano())
	if got, err := r.remote.router.Claim(t.Context(), "c", []firstcome.UserID{"a"}); err != nil || got[0].Outcome != firstcome.Closed {
		t.Errorf("a claim got %+v, %v", got, err)
	}
}
