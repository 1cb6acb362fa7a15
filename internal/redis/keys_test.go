//go:build !check

package redis_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// of makes a gate decide for a ledger that gives all its campaigns one uid.
func of(ledger, uid string) func(*redis.Options) {
	return func(o *redis.Options) {
		o.Ledger = func() string { return ledger }
		o.CampaignUID = func(context.Context, firstcome.CampaignID) (string, error) { return ledger + "." + uid, nil }
	}
}

// calls are all calls of a node about the campaign c, except the one that forgets it. c has coupons in force, and no change except its first.
func calls(ctx context.Context, g *node) map[string]func() error {
	return map[string]func() error{
		"a claim":                func() error { _, err := g.Claim(ctx, "c", crowd(0, 20)); return err },
		"the change of a making": func() error { _, err := g.Apply(ctx, first); return err },
		"a pause": func() error {
			_, err := g.Apply(ctx, firstcome.Change{Campaign: "c", Version: 2, Kind: firstcome.ChangePause})
			return err
		},
		"a void": func() error {
			_, err := g.Apply(ctx, firstcome.Change{Campaign: "c", Version: 2, Kind: firstcome.ChangeVoid, Number: 1, User: "user-0"})
			return err
		},
		"who looks for a coupon":        func() error { _, err := g.CouponOf(ctx, "c", "user-0"); return err },
		"who looks for nobody's coupon": func() error { _, err := g.CouponOf(ctx, "c", "nobody"); return err },
		"who reads the holders":         func() error { _, err := g.Holders(ctx, "c", func(firstcome.UserID) {}); return err },
		"who reads the state":           func() error { _, err := g.State(ctx, "c"); return err },
		"who reads what is drained":     func() error { _, err := g.DrainedThrough(ctx, "c"); return err },
		"who asks whose a number is": func() error {
			_, err := g.Has(ctx, "c", []firstcome.Coupon{{Number: 1, User: "user-0"}})
			return err
		},
	}
}

// TestF32TwoLedgersAtOneRedisEachIssueTheirOwn has two ledgers, and a later copy of the first with another secret. Each has a campaign with the same
// id and gets more claims than coupons, all at once. Their recorders run side by side. Retiring one campaign leaves the others alone.
func TestF32TwoLedgersAtOneRedisEachIssueTheirOwn(t *testing.T) {
	url := services.Redis.Database(t)
	type ledger struct {
		*shop
		*stage.Ledger
		uid      string
		quantity int
		issued   int
	}
	ledgers := []*ledger{{uid: "1", quantity: 10}, {uid: "1", quantity: 25}, {uid: "2", quantity: 40}}
	for n, name := range []string{"one", "other", "one"} {
		l := ledgers[n]
		edits := []func(*redis.Options){of(name, l.uid)}
		if l.uid == "2" {
			edits = append(edits, anotherSecret(t))
		}
		l.shop, l.Ledger = newShop(t, url, int64(l.quantity), edits...), stage.NewLedger("c")
		l.drain(l.journal(), l.Take)
	}
	var claiming sync.WaitGroup
	for _, l := range ledgers {
		claiming.Go(func() {
			for n := range 10 {
				decisions, err := l.gate.Claim(t.Context(), "c", crowd(n*5, 10))
				if err != nil {
					t.Error(err)
				}
				for _, d := range decisions {
					if d.Outcome == firstcome.Issued {
						l.issued++
					}
				}
			}
		})
	}
	claiming.Wait()
	for n, l := range ledgers {
		l.WaitFor(t, l.quantity)
		l.drained(int64(l.quantity))
		if s := l.state(); l.issued != l.quantity || s.InForce != int64(l.quantity) {
			t.Errorf("ledger %d issued %d of %d, and has %+v", n, l.issued, l.quantity, s)
		}
	}
	stage.Must(t, ledgers[0].gate.Retire(t.Context(), "c"))
	if _, err := ledgers[0].gate.State(t.Context(), "c"); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("what was retired: %v", err)
	}
	for _, l := range ledgers[1:] {
		l.want(l.gate, crowd(0, 1), "already_issued:1")
	}
}

// TestANodeWhoseLedgerIsReplacedRetiresTheKeysOfTheLedgerAsItIs lets another node continue to decide for the earlier ledger.
func TestANodeWhoseLedgerIsReplacedRetiresTheKeysOfTheLedgerAsItIs(t *testing.T) {
	s, name, _ := replaceable(t)
	s.issue(0, 1)
	name("one.2")
	stage.Must(t, s.gate.Retire(t.Context(), "c"))
	if n, err := s.do("EXISTS", redis.Keys("c", "one.1")[0]).AsInt64(); err != nil || n != 1 {
		t.Errorf("the campaign of the ledger as it was has %d keys, %v", n, err)
	}
}

// replaceable returns a shop whose ledger gives its campaigns the UID that name returns, and counts how often the gate asks for it.
func replaceable(t *testing.T) (s *shop, name func(string), asked func() int) {
	var mu sync.Mutex
	uid, count := "one.1", 0
	s = newShop(t, services.Redis.Database(t), 100, func(o *redis.Options) {
		o.CampaignUID = func(context.Context, firstcome.CampaignID) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			count++
			return uid, nil
		}
	})
	name = func(to string) {
		mu.Lock()
		defer mu.Unlock()
		uid = to
	}
	asked = func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
	return s, name, asked
}

func TestANodeWhoseLedgerIsReplacedAsksItAgain(t *testing.T) {
	s, name, asked := replaceable(t)
	s.issue(0, 1)
	s.issue(1, 1)
	if asked() != 1 {
		t.Errorf("the ledger was asked %d times", asked())
	}
	name("one.2")
	s.do(append([]string{"DEL", "firstcome:created:-"}, redis.Keys("c", "one.1")...)...)
	if _, err := s.gate.Claim(t.Context(), "c", crowd(0, 1)); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("the first claim got %v", err)
	}
	s.apply(first)
	s.want(s.gate, crowd(0, 1), "issued:1")
	if n, err := s.do("EXISTS", redis.Keys("c", "one.2")[0]).AsInt64(); err != nil || n != 1 {
		t.Errorf("the campaign of the ledger as it is now has %d keys, %v", n, err)
	}
}

// TestANodeLearnsOfAReplacedLedgerFromItsRevision keeps the old keys.
func TestANodeLearnsOfAReplacedLedgerFromItsRevision(t *testing.T) {
	s, name, _ := replaceable(t)
	s.issue(0, 1)
	name("one.2")
	stage.Must(t, stage.Err(s.gate.Lag(t.Context(), []gate.Revision{{Campaign: "c", Version: 1, Epoch: 1, CampaignUID: "one.2"}})))
	if _, err := s.gate.State(t.Context(), "c"); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("it still uses the keys of before: %v", err)
	}
}

func TestWhatACopyOfTheLedgerSettlesIsNotHeard(t *testing.T) {
	url := services.Redis.Database(t)
	s, copied := newShop(t, url, 100, of("one", "1")), newShop(t, url, 100, of("one", "2"), anotherSecret(t))
	s.issue(0, 10)
	copied.issue(0, 10)
	heard := make(chan int64, 10)
	watch(t, s.gate, func(_ firstcome.CampaignID, through int64) { heard <- through })
	for _, uid := range []string{"one.1", "one.2"} {
		s.do("XTRIM", redis.Keys("c", uid)[2], "MAXLEN", "0")
	}
	stage.Must(t, stage.Err(copied.gate.Settle(t.Context(), "c", "one.2", record.Result{Through: 9})))
	stage.Must(t, stage.Err(s.gate.Settle(t.Context(), "c", "one.1", record.Result{Through: 5})))
	if through := <-heard; through != 5 {
		t.Errorf("heard %d", through)
	}
}
