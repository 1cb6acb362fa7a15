//go:build !check

package redis_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

const layoutKey = "firstcome:layout"

// raise raises the campaign's layout as a newer program does, and returns how many numbers were issued by then.
func (s *shop) raise() (last int64) {
	s.t.Helper()
	s.do("SET", layoutKey, "2")
	last, err := s.do("EVAL", "redis.call('HSET', KEYS[1], 'layout', '2') return tonumber(redis.call('HGET', KEYS[1], 'last_number'))", "1", keysOf[0]).AsInt64()
	stage.Must(s.t, err)
	return last
}

// outdated reports whether an error says that this program is too old, and what to do about it.
func outdated(err error) bool {
	return errors.Is(err, firstcome.ErrGateMismatch) && strings.Contains(err.Error(), "run the newer firstcome")
}

func TestF65AnOlderProgramIsRefusedAtTheStartWithAdvice(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 5)
	for layout, good := range map[string]bool{"1": true, "2": false, "10": false, "two": false} {
		s.do("SET", layoutKey, layout)
		g, err := redis.Open(t.Context(), redis.Options{URL: s.url, Secret: secret(t)})
		if err == nil {
			g.Close()
		}
		if (err == nil) != good || err != nil && (!strings.Contains(err.Error(), "run the newer firstcome") || !strings.Contains(err.Error(), layout)) {
			t.Errorf("the layout %s: %v", layout, err)
		}
		if is, err := s.do("GET", layoutKey).ToString(); err != nil || is != layout {
			t.Errorf("the layout %s became %q, %v", layout, is, err)
		}
		want := doctor.Fail
		if good {
			want = doctor.OK
		}
		examine(t, s.url).Want(t, want, "the gate's layout")
	}
}

func TestF65ANodeThatRunsLeavesACampaignOfANewerLayoutAlone(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 100)
	s.issue(0, 10)
	g, ctx := s.gate, t.Context()
	s.raise()
	s.do("HDEL", keysOf[0], "issued") // a newer layout has no such field
	before := s.dump()
	all := calls(ctx, g)
	all["who has it forgotten"] = func() error { return g.Retire(ctx, "c") }
	for what, do := range all {
		if err := do(); !outdated(err) {
			t.Errorf("%s got %v", what, err)
		}
	}
	if lag, err := g.Lag(ctx, revisions("c")); err != nil || len(lag) > 0 {
		t.Errorf("it lags behind by %v, %v", lag, err)
	}
	stage.DrainOnce(t, s.journal(), func(_ context.Context, b record.Batch) (record.Result, error) {
		t.Errorf("a recorder has %+v", b)
		return record.Result{}, nil
	}, s.limit)
	if err := s.told(); !outdated(err) {
		t.Errorf("of the journal was told %v", err)
	}
	if diff := cmp.Diff(before, s.dump()); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}

func TestF65ANodeThatRunsMakesNoCampaignOnceALayoutItDoesNotKnowIsWritten(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 100)
	s.do("SET", layoutKey, "2")
	change := first
	change.Campaign = "another"
	if _, err := s.gate.Apply(t.Context(), change); !outdated(err) {
		t.Errorf("got %v", err)
	}
	if n, err := s.do("EXISTS", redis.Keys("another", "")[0]).AsInt64(); err != nil || n != 0 {
		t.Errorf("it was made: %d, %v", n, err)
	}
	s.want(s.gate, crowd(0, 1), "issued:1") // the program knows this layout
}

// TestF65AnOlderNodeDecidesNothingFromTheInstantAtWhichTheLayoutIsRaised raises the layout while claims are under way.
func TestF65AnOlderNodeDecidesNothingFromTheInstantAtWhichTheLayoutIsRaised(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	const claimants = 4
	issued, busy := make([]int64, claimants), make(chan struct{}, claimants)
	var raised atomic.Bool
	var all sync.WaitGroup
	for n := range claimants {
		all.Go(func() {
			for round := 0; ; round++ {
				late := raised.Load()
				decisions, err := s.gate.Claim(t.Context(), "c", crowd((round*claimants+n)*10, 10))
				if err != nil {
					if !outdated(err) {
						t.Errorf("a claim got %v", err)
					}
					return
				}
				if late {
					t.Errorf("a claim after that got %v", outcomes(decisions))
					return
				}
				issued[n] += int64(len(decisions))
				if round == 3 {
					busy <- struct{}{}
				}
			}
		})
	}
	for range claimants {
		<-busy
	}
	last := s.raise()
	raised.Store(true)
	all.Wait()
	var sum int64
	for _, n := range issued {
		sum += n
	}
	if now, err := s.do("HGET", keysOf[0], "last_number").AsInt64(); err != nil || now != last || sum != last {
		t.Errorf("there were %d numbers when the layout was raised, there are %d, and %d were answered: %v", last, now, sum, err)
	}
}

// TestF65ANewerProgramsEntriesAreLeftToItsRecorders puts such entries among others. Entries that only look like them are garbage.
func TestF65ANewerProgramsEntriesAreLeftToItsRecorders(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 3)
	newer, err := s.do("XADD", keysOf[2], "*", "format", "2", "epoch", "1", "users", "x").ToString()
	stage.Must(t, err)
	s.do("XADD", keysOf[2], "*", "format", "2", "users", "x")
	s.do("XADD", keysOf[2], "*", "format", "two", "epoch", "1", "users", "x")
	s.issue(3, 3)
	const idle = 50 * time.Millisecond
	j := s.journal(func(o *redis.ConsumerOptions) { o.Idle = idle })
	stop := s.drain(j, p.Take)
	p.WaitFor(t, 6)
	if err := s.told(); !errors.Is(err, firstcome.ErrGateMismatch) || !strings.Contains(err.Error(), "left to its recorders") {
		t.Errorf("was told %v", err)
	}
	stop()
	s.drain(j, p.Take) // it finds the entry among its own pending ones
	s.issue(6, 3)
	p.WaitFor(t, 9)
	s.takeOver(newer, idle)
	s.drained(9)
	p.Wait(t, "2 dead letters", func() bool { return len(p.Letters()) == 2 })
}

// TestF65WhatIsBehindANewerProgramsEntriesIsNotLeftToo has a recorder that reads one entry at a time. It restarts with entries of a newer program
// before those that it left unfinished.
func TestF65WhatIsBehindANewerProgramsEntriesIsNotLeftToo(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	for range 3 {
		s.do("XADD", keysOf[2], "*", "format", "2", "epoch", "1", "users", "x")
	}
	s.issue(0, 1)
	j := s.journal(func(o *redis.ConsumerOptions) { o.Coupons = 1 })
	ctx, stop := context.WithCancel(t.Context())
	p.Before = func(record.Batch) error {
		stop()
		return errors.New("the ledger is gone")
	}
	stage.Must(t, record.NewRecorder(j, p, record.Options{}).Run(ctx))
	p.Before = nil
	s.drain(j, p.Take)
	p.WaitFor(t, 1)
}

// takeOver lets a newer recorder take over an entry that another recorder has had for longer than idle, and finish it.
func (s *shop) takeOver(entry string, idle time.Duration) {
	s.t.Helper()
	stage.Await(s.t, "the entry at a newer recorder", true, func() bool {
		answer, err := s.do("XAUTOCLAIM", keysOf[2], "recorders", "newer", strconv.FormatInt(idle.Milliseconds(), 10), "0-0", "JUSTID").ToArray()
		stage.Must(s.t, err)
		ids, err := answer[1].AsStrSlice()
		stage.Must(s.t, err)
		return slices.Contains(ids, entry)
	})
	s.do("XACK", keysOf[2], "recorders", entry)
	s.do("XDEL", keysOf[2], entry)
}

func TestF65AMessageOfAnotherFormIsPassedOver(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 5)
	heard := make(chan int64, 10)
	watch(t, s.gate, func(_ firstcome.CampaignID, through int64) { heard <- through })
	_, instance, _ := strings.Cut(s.gate.Name(), ":")
	for _, message := range []string{"=2 c - 5", "=c - 5", "c - 5 1", ""} {
		if n, err := s.do("PUBLISH", "firstcome:drained:"+instance+":-", message).AsInt64(); err != nil || n != 1 {
			t.Errorf("%d hear it, %v", n, err)
		}
	}
	s.do("XTRIM", keysOf[2], "MAXLEN", "0")
	s.settle(4, 0)
	if got := <-heard; got != 4 {
		t.Errorf("heard that it is drained through %d", got)
	}
}
