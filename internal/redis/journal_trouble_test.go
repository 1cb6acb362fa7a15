//go:build !check

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// make creates another campaign at the gate and issues a coupon of it.
func (s *shop) make(id firstcome.CampaignID) {
	s.t.Helper()
	change := firstcome.Change{Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: 100}}
	stage.Must(s.t, stage.Err(s.gate.Apply(s.t.Context(), change)))
	stage.Must(s.t, stage.Err(s.gate.Claim(s.t.Context(), id, crowd(0, 1))))
}

// told waits for an alarm and returns it.
func (s *shop) told() error {
	s.t.Helper()
	return stage.Next(s.t, "an alarm", s.alarms)
}

var errDamaged = errors.New("a damaged row")

func TestCampaignsThatCannotBeDrainedHoldUpNobody(t *testing.T) {
	for _, c := range []struct {
		name string
		ail  func(s *shop, id string)
		sink error
	}{
		{"the ledger says that another node records it", func(*shop, string) {}, firstcome.ErrGateMismatch},
		{"somebody keeps it locked in the ledger", func(*shop, string) {}, record.ErrRowLocked},
		{"the ledger fails at it", func(*shop, string) {}, errDamaged},
		{"a holder cannot be read", func(s *shop, id string) {
			s.do("HSET", redis.Keys(firstcome.CampaignID(id), "")[1], "user-0", "?")
			s.do("DEL", redis.Keys(firstcome.CampaignID(id), "")[2])
		}, nil},
		{"the gate has lost it", func(s *shop, id string) { s.do("DEL", redis.Keys(firstcome.CampaignID(id), "")[0]) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var made atomic.Bool
			s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited, func(o *redis.Options) {
				o.OnUnknown = func(context.Context, firstcome.CampaignID) error {
					if made.Load() {
						return gate.ErrGone
					}
					return firstcome.ErrBusy
				}
			}), stage.NewLedger("c")
			var bad []firstcome.CampaignID
			for n := range 8 {
				bad = append(bad, firstcome.CampaignID(fmt.Sprint("bad-", n)))
				s.make(bad[n])
				c.ail(s, string(bad[n]))
			}
			made.Store(true)
			j := s.journal(func(o *redis.ConsumerOptions) {
				o.Active = func(context.Context) ([]gate.Revision, error) { return revisions(append(bad[:8:8], "c")...), nil }
			})
			p.Before = func(b record.Batch) error {
				if b.Campaign == "c" {
					return nil
				}
				return c.sink
			}
			failed := make(chan struct{}, 1000)
			limits := record.Options{OnCall: func(r record.LedgerCall) {
				if r.Err != nil {
					failed <- struct{}{}
				}
			}}
			s.limit(&limits)
			stage.Run(t, record.NewRecorder(j, p, limits).Run)
			if c.sink == errDamaged { // the recorder reports this error
				<-failed
			} else {
				_ = s.told()
			}
			for n := range 20 {
				s.issue(n, 1)
				p.WaitFor(t, n+1)
			}
		})
	}
}

// TestWhoWaitsForALockedCampaignKeepsNobodyFromTheOthers has one worker, and a sink that waits for the locked campaign until the test releases it.
func TestWhoWaitsForALockedCampaignKeepsNobodyFromTheOthers(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.make("locked")
	var once atomic.Bool
	waits, released, took := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	alone := func(l *record.Options) { l.Workers = 1 }
	stage.DrainOnce(t, s.journal(func(o *redis.ConsumerOptions) {
		o.Active = func(context.Context) ([]gate.Revision, error) {
			return []gate.Revision{{Campaign: "c", Version: 1, Epoch: 1}, {Campaign: "locked", Version: 1, Epoch: 1}}, nil
		}
	}), func(ctx context.Context, b record.Batch) (record.Result, error) {
		if b.Campaign != "locked" {
			return p.Take(ctx, b)
		}
		if once.CompareAndSwap(false, true) {
			return record.Result{}, record.ErrRowLocked
		}
		select {
		case waits <- struct{}{}:
		case <-released:
		}
		select {
		case <-released:
			took <- len(b.Coupons)
			return record.Result{Through: 1}, nil
		case <-ctx.Done():
			return record.Result{}, ctx.Err()
		}
	}, alone)
	<-waits
	for n := range 20 {
		s.issue(n, 1)
		p.WaitFor(t, n+1)
	}
	close(released)
	if n := <-took; n != 1 {
		t.Errorf("%d coupons of the locked campaign came", n)
	}
}

func TestACampaignThatIsNotOfTheLedgerIsLeftAlone(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.make("foreign")
	stage.DrainOnce(t, s.journal(), func(ctx context.Context, b record.Batch) (record.Result, error) {
		if b.Campaign != "c" {
			t.Errorf("the sink is given coupons of %s", b.Campaign)
		}
		return p.Take(ctx, b)
	})
	for n := range 10 {
		stage.Must(t, stage.Err(s.gate.Claim(t.Context(), "foreign", crowd(n+1, 1))))
		s.issue(n, 1)
		p.WaitFor(t, n+1)
	}
	if n, err := s.do("XLEN", redis.Keys("foreign", "")[2]).AsInt64(); err != nil || n != 11 {
		t.Errorf("its journal has %d entries, %v", n, err)
	}
}

func TestACampaignThatIsNoLongerActiveIsNotTriedAgain(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 1)
	var over atomic.Bool
	looks, tries := make(chan struct{}), make(chan struct{}, 100)
	stage.DrainOnce(t, s.journal(func(o *redis.ConsumerOptions) {
		o.Active = func(ctx context.Context) ([]gate.Revision, error) {
			select {
			case looks <- struct{}{}:
			case <-ctx.Done():
			}
			if over.Load() {
				return nil, nil
			}
			return revisions("c"), nil
		}
	}), func(context.Context, record.Batch) (record.Result, error) {
		tries <- struct{}{}
		return record.Result{}, errDamaged
	})
	for range 3 {
		<-looks
		<-tries
	}
	over.Store(true)
	<-looks
	<-looks
	for len(tries) > 0 {
		<-tries
	}
	for range 50 { // much longer than the campaign rests
		<-looks
	}
	if again := len(tries); again > 1 { // one try may have been under way
		t.Errorf("it was tried %d times more", again)
	}
}

func TestACampaignThatIsNewIsDrainedBeforeTheNextSweep(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	var looks atomic.Int64
	looked := make(chan struct{}, 100)
	stage.DrainOnce(t, s.journal(func(o *redis.ConsumerOptions) {
		o.Sweep = time.Hour
		o.Active = func(context.Context) (active []gate.Revision, err error) {
			if looks.Add(1) > 1 {
				active = revisions("c")
			}
			looked <- struct{}{}
			return active, nil
		}
	}), p.Take)
	<-looked
	s.awaitListener()
	s.issue(0, 1)
	p.WaitFor(t, 1)
}

// awaitListener waits until a journal receives the messages that wake it.
func (s *shop) awaitListener() {
	s.t.Helper()
	channel := "firstcome:wake:" + strings.TrimPrefix(s.gate.Name(), "redis:") + ":-"
	stage.Await(s.t, "a journal that listens", true, func() bool {
		heard, err := s.do("PUBSUB", "NUMSUB", channel).AsIntMap()
		stage.Must(s.t, err)
		return heard[channel] > 0
	})
}

func TestTheJournalIsDrainedWhereNobodyMaySubscribe(t *testing.T) {
	url := services.Redis.Database(t)
	s, p := newShop(t, url, firstcome.Unlimited), stage.NewLedger("c")
	s.gate = open(t, services.User(t, url, append(strings.Fields(redis.Rights), "-subscribe")...))
	stage.DrainOnce(t, s.journal(), p.Take)
	_ = s.told()
	s.issue(0, 10)
	p.WaitFor(t, 10)
	s.drained(10)
}

func TestACampaignWhoseKeysAreSomebodyElsesHidesNoOthersLag(t *testing.T) {
	for _, key := range []string{redis.Keys("ill", "")[2], redis.Keys("ill", "")[0]} {
		s := newShop(t, services.Redis.Database(t), 10)
		s.issue(0, 3)
		s.do("SET", key, "somebody's")
		if lags, err := s.gate.Lag(t.Context(), revisions("c", "ill")); err != nil || len(lags) != 1 || lags[0].Numbers != 3 {
			t.Errorf("with %s of another type the lag is %v, %v", key, lags, err)
		}
	}
}
