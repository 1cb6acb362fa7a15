//go:build linux && !check

package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// takeovers are the ways in which a replica takes over.
var takeovers = map[string]func(t *testing.T) *takeover{
	"by hand":   byHand,
	"Sentinel":  bySentinel,
	"a Cluster": byCluster,
}

// A takeover is a Redis that is one of a pair.
type takeover struct {
	gate string // URL
	// of returns the pair that decides a campaign, and promote has its replica take over.
	of      func(campaign string) *services.Pair
	lag     func(p *services.Pair) // has the replica hear nothing more; nil: that is up to the servers
	promote func(p *services.Pair)
	*fleet
}

// byHand promotes a replica that lags, and kills its primary. The nodes reach who is the primary by one name.
func byHand(t *testing.T) *takeover {
	p := services.RedisPair(t)
	proxy, at := through(t, p.Primary, p.Primary.URL())
	o := &takeover{gate: at, of: func(string) *services.Pair { return p }}
	o.lag = func(p *services.Pair) { stage.Must(t, p.Lag(t.Context())) }
	o.promote = func(*services.Pair) {
		stage.Must(t, p.Promote(t.Context()))
		stage.Must(t, p.Replica.Kill())
		proxy.SetUpstream(p.Primary.Address())
	}
	return o
}

func bySentinel(t *testing.T) *takeover {
	p, at := services.SentinelPair(t)
	return &takeover{gate: at, of: func(string) *services.Pair { return p }, promote: byThemselves(t)}
}

func byCluster(t *testing.T) *takeover {
	cluster, keys := services.PairedRedisCluster(t, 3), map[string]string{}
	return &takeover{gate: cluster.URL(), promote: byThemselves(t), of: func(campaign string) *services.Pair {
		if keys[campaign] == "" {
			var err error
			keys[campaign], err = cluster.Find(t.Context(), "firstcome:{"+campaign+":*}:campaign")
			stage.Must(t, err)
		}
		p, err := cluster.Pair(t.Context(), keys[campaign])
		stage.Must(t, err)
		return p
	}}
}

// byThemselves kills a primary, and waits until the servers have promoted its replica.
func byThemselves(t *testing.T) func(*services.Pair) {
	return func(p *services.Pair) { stage.Must(t, p.TakeOver(t.Context())) }
}

// again returns what happens to a pair behind a promotion before it is a pair again.
func again(ctx context.Context, p *services.Pair, turn int) error {
	if turn%3 == 2 { // promoted, then restarted
		if err := p.Primary.Kill(); err != nil {
			return err
		}
		if err := p.Primary.Restart(ctx); err != nil {
			return err
		}
	}
	return p.Rejoin(ctx)
}

// TestF02WhereAReplicaTakesOverUnderLoadEveryPromiseHolds has the replica of the Redis that decides take over while claims of two campaigns are
// answered, of one when they are recorded, of the other when they are decided, and while a node has claims of one that were decided and not answered.
// In turn the crowd claims after the promotion, the old primary takes over again at once, and the promoted server is killed and started again. Then all stock
// is given away.
func TestF02WhereAReplicaTakesOverUnderLoadEveryPromiseHolds(t *testing.T) {
	for name, start := range takeovers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := start(t)
			o.fleet = newFleet(t, services.MariaDB.Database(t), o.gate, withPoints(t))
			crowds := []*crowd{o.gather("spring", firstcome.Recorded), o.gather("summer", firstcome.Decided)}
			for turn := range 3 {
				c, other := crowds[turn%2], crowds[(turn+1)%2]
				stop, stopOther := o.claimUntil(c, 6), o.claimUntil(other, 6)
				defer stop()
				defer stopOther()
				for _, one := range crowds {
					if turn != 1 { // otherwise with the first claim behind the promotion
						one.awaitAnswers(t, 50)
					}
				}
				p := o.of(c.campaign)
				stage.Must(t, p.Settle(t.Context()))
				if o.lag != nil && turn != 1 {
					o.lag(p)
					c.awaitAnswers(t, 20)
				}
				stopOther() // so a claim of c is decided
				o.during(point.Decided, func() { o.promote(p) })
				o.goesOn(c, p, turn)
				stop()
			}
			o.giveAway(crowds, firstcome.Recorded, firstcome.Decided)
		})
	}
}

// TestF35NobodyIsToldAnothersNumberThoughASwitchOverIsTakenBack has the Redis that decides follow a replica that lagged, and lead again, while claims
// are answered when they are decided. Its process lives on, and no node looks before the next claim comes.
func TestF35NobodyIsToldAnothersNumberThoughASwitchOverIsTakenBack(t *testing.T) {
	t.Parallel()
	p := services.RedisPair(t)
	f := newFleet(t, services.PostgreSQL.Database(t), p.Primary.URL())
	c := f.gather("drop", firstcome.Decided)
	stop := f.claimUntil(c, 6)
	defer stop()
	c.awaitAnswers(t, 50)
	stage.Must(t, p.Lag(t.Context()))
	c.awaitAnswers(t, 200)
	stage.Must(t, p.Promote(t.Context()))
	stage.Must(t, p.Follow(t.Context()))
	stage.Must(t, p.Promote(t.Context()))
	c.awaitAnswers(t, 200)
	stop()
	f.giveAway([]*crowd{c}, firstcome.Decided)
}

// goesOn waits for the next coupon behind a promotion, unless another promotion follows at once, and has the pair be one again.
func (o *takeover) goesOn(c *crowd, p *services.Pair, turn int) {
	o.t.Helper()
	promoted := time.Now()
	if turn%3 == 0 {
		c.awaitAnswers(o.t, 1)
		o.t.Logf("%v after the promotion there is the next coupon of %s", time.Since(promoted), c.campaign)
	}
	stage.Must(o.t, again(o.t.Context(), p, turn))
}

const plenty = 10_000_000

// gather makes a campaign and who wants its coupons.
func (f *fleet) gather(id string, answer firstcome.AnswerWhen) *crowd {
	f.t.Helper()
	f.create(id, plenty, answer)
	return newCrowd(id)
}

// giveAway lowers the quantity of each crowd's campaign to a little more than is in force, has the crowds go on until it is sold out, and holds
// everything against the promises.
func (f *fleet) giveAway(crowds []*crowd, answers ...firstcome.AnswerWhen) {
	f.t.Helper()
	for _, c := range crowds {
		f.drained(c.campaign)
		quantity := *f.node(0).counted(c.campaign).InForce + 50
		waitFor(f.t, "a lower quantity", func() bool {
			now := f.node(0).campaign(c.campaign)
			_, _ = f.node(0).calls.UpdateCampaign(f.t.Context(), c.campaign, now.Version, map[string]any{"quantity": quantity})
			return *now.Quantity == quantity
		})
		stop := f.claimUntil(c, 6)
		defer stop()
		waitFor(f.t, "the last coupon", func() bool { return remaining(f.t, f.node(0), c.campaign) == 0 })
		stop()
		f.drained(c.campaign)
		if now := *f.node(0).counted(c.campaign).InForce; now != quantity {
			f.t.Errorf("%d coupons of %s are in force, want %d", now, c.campaign, quantity)
		}
	}
	f.audit()
	for n, c := range crowds {
		c.forget(f.node(0), answers[n])
		c.wereTrue(f.node(0))
	}
}

// forget takes the answers out of a crowd's whose coupons are lost, as those of a campaign may be that answers what is decided: with a number that
// the ledger says is lost, and not as recorded. No number may have been answered to two users, a lost one neither.
func (c *crowd) forget(p *process, answer firstcome.AnswerWhen) {
	p.t.Helper()
	at, err := p.calls.Operator().LedgerState(p.t.Context(), c.campaign)
	stage.Must(p.t, err)
	users, lost := map[int64]firstcome.UserID{}, map[int64]bool{}
	c.claims = slices.DeleteFunc(c.claims, func(claim audit.Claim) bool {
		if !claim.Outcome.HasCoupon() {
			return false
		}
		if other, ok := users[claim.Number]; ok && other != claim.User {
			p.t.Errorf("P3: number %d was answered to %q and to %q", claim.Number, other, claim.User)
		}
		users[claim.Number] = claim.User
		may := answer == firstcome.Decided && !claim.Recorded && slices.ContainsFunc(at.Lost, func(r client.Range) bool {
			return r.First <= claim.Number && claim.Number < r.First+r.Count
		})
		if may {
			lost[claim.Number] = true
		}
		return may
	})
	p.t.Logf("%s is in epoch %d: lost are %v, %d of them were answered", c.campaign, at.Epoch, at.Lost, len(lost))
}
