//go:build !check

package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF22ARecorderThatStopsIsDoneWithItsBatchAndTakesNothingNew has one recorder, with a batch of one coupon.
func TestF22ARecorderThatStopsIsDoneWithItsBatchAndTakesNothingNew(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	for n := range 10 {
		s.issue(n, 1)
	}
	drain, stop := context.WithCancel(t.Context())
	p.Before = func(record.Batch) error { stop(); return nil }
	j := s.journal(func(o *redis.ConsumerOptions) { o.Coupons = 1 })
	err := record.NewRecorder(j, p, record.Options{Workers: 1}).Run(drain)
	if state := s.state(); err != nil || state.DrainedThrough != 1 || len(p.Coupons("c")) != 1 {
		t.Errorf("%d coupons are recorded, drained through %d, %v", len(p.Coupons("c")), state.DrainedThrough, err)
	}
}

func TestF42TwoRecordersOfTheSameEntriesRecordEachCouponOnce(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	for n := range 40 {
		s.issue(n*10, 10)
	}
	// The first recorder has entries and hangs without sending heartbeats, so another takes the entries over.
	hung, let := make(chan struct{}), make(chan struct{})
	slow := stage.NewLedger("c")
	slow.Before = func(record.Batch) error {
		close(hung)
		<-let
		return errors.New("too late")
	}
	frozen := s.journal(func(o *redis.ConsumerOptions) { o.Idle = time.Hour })
	s.drain(frozen, slow.Take)
	<-hung
	s.drain(s.journal(), p.Take)
	s.drain(s.journal(), p.Take)
	p.WaitFor(t, 400)
	s.drained(400)
	slow.Before = nil
	close(let)
	s.drained(400)
}

func TestARecorderThatIsAtWorkKeepsItsEntries(t *testing.T) {
	for idle := 1500 * time.Millisecond; !keptAtWork(t, idle); idle *= 2 {
		if idle > time.Minute {
			t.Fatal("another recorder took over what was at work, each time")
		}
	}
}

// keptAtWork makes a sink hang for longer than Idle, and reports whether the recorder kept its entries. If the machine stalls for two thirds of Idle,
// another recorder takes them over, and the try proves nothing.
func keptAtWork(t *testing.T, idle time.Duration) bool {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 10) // the second batch is read together with the first, and waits
	s.issue(10, 10)
	at, let := make(chan struct{}, 2), make(chan struct{})
	p.Before = func(record.Batch) error {
		at <- struct{}{}
		<-let
		return nil
	}
	s.drain(s.journal(func(o *redis.ConsumerOptions) { o.Idle, o.Coupons = idle, 10 }), p.Take)
	<-at
	other := stage.NewLedger("c")
	s.drain(s.journal(func(o *redis.ConsumerOptions) { o.Idle = idle }), other.Take)
	for resets, before := 0, int64(0); resets < 4 && len(other.Coupons("c")) == 0; { // this takes longer than Idle
		idleNow := s.pendingIdle()
		if idleNow < before {
			resets++
		}
		before = idleNow
	}
	close(let)
	p.WaitFor(t, 20)
	s.drained(20)
	return len(other.Coupons("c")) == 0
}

// pendingIdle returns how many milliseconds ago the recorder of the last pending entry sent a heartbeat.
func (s *shop) pendingIdle() int64 {
	s.t.Helper()
	entries, err := s.do("XPENDING", keysOf[2], "recorders", "-", "+", "10").ToArray()
	if err != nil || len(entries) == 0 {
		s.t.Fatalf("nothing is pending: %v", err)
	}
	entry, err := entries[len(entries)-1].ToArray()
	if err != nil || len(entry) != 4 {
		s.t.Fatalf("an entry is pending as %v: %v", entry, err)
	}
	idle, err := entry[2].AsInt64()
	stage.Must(s.t, err)
	return idle
}

func TestF43AGroupThatIsGoneIsMadeAgainFromTheBeginning(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 10)
	s.do("XGROUP", "DESTROY", keysOf[2], "recorders")
	s.issue(10, 10)
	s.drain(s.journal(), p.Take)
	p.WaitFor(t, 20)
	s.drained(20)
	if err := <-s.alarms; !strings.Contains(err.Error(), "group was gone") {
		t.Errorf("the alarm says %v", err)
	}
}

// TestACampaignThatIsBeingMadeIsNoAlarm makes recorders look for a campaign that is in the ledger and not yet at the gate.
func TestACampaignThatIsBeingMadeIsNoAlarm(t *testing.T) {
	const uid = "m"
	unmade := func(o *redis.Options) {
		o.CampaignUID = func(context.Context, firstcome.CampaignID) (string, error) { return uid, nil }
		o.OnUnknown = func(context.Context, firstcome.CampaignID) error { return firstcome.ErrBusy }
	}
	s, p := newShop(t, services.Redis.Database(t), 9, unmade), stage.NewLedger("new")
	looks := make(chan struct{})
	journal := s.journal(func(o *redis.ConsumerOptions) {
		o.Active = func(ctx context.Context) ([]gate.Revision, error) {
			select {
			case looks <- struct{}{}:
			case <-ctx.Done():
			}
			return []gate.Revision{{Campaign: "new", Version: 1, Epoch: 1, CampaignUID: uid}}, nil
		}
	})
	stop := stage.Run(t, record.NewRecorder(journal, p, record.Options{}).Run)
	for range 10 {
		stage.Next(t, "a look", looks)
	}
	stop()
	if n, err := s.do("EXISTS", redis.Keys("new", uid)[2]).AsInt64(); err != nil || n > 0 {
		t.Errorf("recorders made the journal: %v", err)
	}
	close(s.alarms)
	for err := range s.alarms {
		t.Errorf("an alarm: %v", err)
	}
}

// TestF43ADeadLetterWhoseEntryIsGoneHasItsFlagBeforeItIsDrained lets a recorder die after the ledger has answered. Then somebody deletes its entries.
func TestF43ADeadLetterWhoseEntryIsGoneHasItsFlagBeforeItIsDrained(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	var coupons []firstcome.Coupon
	for _, d := range s.issue(0, 100) {
		coupons = append(coupons, d.Coupon)
	}
	p.Refuses = func(c firstcome.Coupon) bool { return c.Number == 33 }
	given := &stage.Journal{}
	given.Add(record.Batch{Campaign: "c", Coupons: coupons})
	die := stage.Run(t, record.NewRecorder(given, p, record.Options{}).Run)
	stage.Await(t, "what is recorded or buried", 100, func() int { return len(p.Coupons("c")) + len(p.Letters()) })
	die()
	s.do("XTRIM", keysOf[2], "MAXLEN", "0")
	journal := s.journal(func(o *redis.ConsumerOptions) {
		o.Active = func(context.Context) ([]gate.Revision, error) {
			return []gate.Revision{{Campaign: "c", Version: 1, Epoch: 1, CampaignUID: "-", Drained: 100}}, nil
		}
	})
	stage.Run(t, record.NewRecorder(journal, p, record.Options{}).Run)
	s.drained(100)
	for _, d := range s.issue(0, 100) {
		if c := d.Coupon; c.Buried != (c.Number == 33) || c.Recorded == c.Buried {
			t.Errorf("number %d: %+v", c.Number, c)
		}
	}
}

// TestF43EntriesThatWereReadBeforeAHoleCouldNotBeFilledAreReadAgain locks the ledger's row when a recorder fills the hole.
func TestF43EntriesThatWereReadBeforeAHoleCouldNotBeFilledAreReadAgain(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 10)
	s.do("XGROUP", "DESTROY", keysOf[2], "recorders")
	var tried atomic.Bool
	p.Before = func(record.Batch) error {
		if tried.CompareAndSwap(false, true) {
			return record.ErrRowLocked
		}
		return nil
	}
	stage.DrainOnce(t, s.journal(func(o *redis.ConsumerOptions) { o.Idle = time.Hour }), p.Take, s.limit)
	p.WaitFor(t, 10)
	s.drained(10)
}

func TestF43WhatIsGoneOfAJournalIsMadeAgainFromTheHolders(t *testing.T) {
	for name, harm := range map[string]func(*shop){
		"the stream is deleted": func(s *shop) { s.do("DEL", keysOf[2]) },
		"it is trimmed":         func(s *shop) { s.do("XTRIM", keysOf[2], "MAXLEN", "1") },
		"entries are deleted while they are pending": func(s *shop) {
			s.do("XREADGROUP", "GROUP", "recorders", "somebody", "COUNT", "2", "STREAMS", keysOf[2], ">")
			s.do("XTRIM", keysOf[2], "MAXLEN", "3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
			for n := range 5 {
				s.issue(n*10, 10)
			}
			harm(s)
			s.drain(s.journal(), p.Take)
			p.WaitFor(t, 50)
			s.drained(50)
			if err := <-s.alarms; !strings.Contains(err.Error(), "from the gate's holders") {
				t.Errorf("the alarm says %v", err)
			}
		})
	}
}

// TestF43NothingIsMadeAgainFromTheHoldersOfAGateThatIsUnverified deletes the journal of a gate whose last decision was another run's, or that a
// rebuild froze.
func TestF43NothingIsMadeAgainFromTheHoldersOfAGateThatIsUnverified(t *testing.T) {
	for field, value := range map[string]string{"run": "another", "frozen": "1"} {
		t.Run(field, func(t *testing.T) {
			s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
			s.issue(0, 10)
			s.do("DEL", keysOf[2])
			was, err := s.do("HGET", keysOf[0], "run").ToString()
			stage.Must(t, err)
			s.do("HSET", keysOf[0], field, value)
			s.drain(s.journal(), p.Take)
			if err := s.told(); !errors.Is(err, gate.ErrUnverified) {
				t.Errorf("the alarm says %v", err)
			}
			if given := p.Coupons("c"); len(given) > 0 {
				t.Errorf("the ledger is given %v", given)
			}
			s.do("HDEL", keysOf[0], "frozen")
			s.do("HSET", keysOf[0], "run", was)
			p.WaitFor(t, 10)
			s.drained(10)
		})
	}
}

// Redis 6.2 hands out deleted entries without saying that they are deleted.
func TestF43EntriesThatAreGoneWithADeadRecorderHoldUpNothing(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	stream := keysOf[2]
	for n := range 4 {
		s.issue(n, 1)
	}
	s.do("XREADGROUP", "GROUP", "recorders", "dead", "COUNT", "3", "STREAMS", stream, ">")
	entries, err := s.do("XRANGE", stream, "-", "+").AsXRange()
	stage.Must(t, err)
	s.do("XDEL", stream, entries[0].ID, entries[2].ID)
	stage.DrainOnce(t, s.journal(func(o *redis.ConsumerOptions) { o.Idle = time.Millisecond }), p.Take, s.limit)
	p.WaitFor(t, 4)
	s.issue(4, 1)
	p.WaitFor(t, 5)
	s.drained(5)
	stage.Await(t, "an end of what is pending", 0, func() int64 {
		left, err := s.do("XPENDING", stream, "recorders").ToArray()
		stage.Must(t, err)
		pending, err := left[0].AsInt64()
		stage.Must(t, err)
		return pending
	})
}

func TestF43AHoleInAJournalThatIsNeverEmptyIsFilledFromTheHolders(t *testing.T) {
	for idle := 500 * time.Millisecond; !neverEmpty(t, idle); idle *= 2 {
		if idle > time.Minute {
			t.Fatal("the journal was empty each time")
		}
	}
}

// neverEmpty lets another recorder keep one entry forever, so that the journal is never empty, and issues numbers after a hole. It reports whether
// the other recorder still had its entry at the end: a test that stalls for longer than Idle loses the entry, and proves nothing.
func neverEmpty(t *testing.T, idle time.Duration) bool {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	stream := keysOf[2]
	kept, err := s.do("XADD", stream, "*", "format", "0").ToString()
	stage.Must(t, err)
	s.do("XREADGROUP", "GROUP", "recorders", "somebody", "COUNT", "1", "STREAMS", stream, ">")
	s.issue(0, 1)
	hole, err := s.do("XREVRANGE", stream, "+", "-", "COUNT", "1").AsXRange()
	stage.Must(t, err)
	s.do("XDEL", stream, hole[0].ID)
	s.drain(s.journal(func(o *redis.ConsumerOptions) { o.Idle = idle }), p.Take)
	for n, filled := 1, false; !filled; n++ {
		s.do("XCLAIM", stream, "recorders", "somebody", "0", kept, "JUSTID")
		s.issue(n, 1)
		p.WaitNumber(t, int64(n+1))
		_, filled = p.Coupons("c")[1]
	}
	alarm := <-s.alarms
	left, err := s.do("XRANGE", stream, kept, kept).AsXRange()
	stage.Must(t, err)
	if len(left) == 0 {
		return false
	}
	if !strings.Contains(alarm.Error(), "numbers are missing") {
		t.Errorf("the alarm says %v", alarm)
	}
	return true
}

// TestARelayTakesEntriesAndTellsTheGateNothing uses a campaign with coupons that a recorder has recorded before.
func TestARelayTakesEntriesAndTellsTheGateNothing(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 3)
	stop := s.drain(s.journal(), p.Take)
	s.drained(3)
	stop()
	s.issue(3, 3)
	var given []int
	stop = stage.Drain(t, s.journal(func(o *redis.ConsumerOptions) { o.Relay = true }), func(_ context.Context, b record.Batch) (record.Result, error) {
		given = append(given, len(b.Coupons))
		return record.Result{}, nil
	}, func(l *record.Options) { l.OnAlarm = s.alarms.Raise })
	stage.Await(t, "entries", 0, func() int64 {
		entries, err := s.do("XLEN", keysOf[2]).AsInt64()
		stage.Must(t, err)
		return entries
	})
	stop()
	stage.Same(t, "coupons of what the topic was given", []int{3}, given)
	if through := s.state().DrainedThrough; through != 3 {
		t.Errorf("the gate was told that all up to %d is drained", through)
	}
	close(s.alarms)
	for err := range s.alarms {
		t.Error(err)
	}
}

// TestF45AnyOrderOfTheEntriesGivesTheSameLedger gives the entries of a journal to several recorders as failures would: in any order, and any of them
// repeatedly.
func TestF45AnyOrderOfTheEntriesGivesTheSameLedger(t *testing.T) {
	seed.Check(t, func(r *rapid.T) {
		s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
		batches := rapid.SliceOfN(rapid.IntRange(1, 30), 1, 12).Draw(r, "batches")
		issued := 0
		for _, n := range batches {
			s.issue(issued, n)
			issued += n
		}
		entries, err := s.do("XRANGE", keysOf[2], "-", "+").AsXRange()
		if err != nil {
			r.Fatal(err)
		}
		order := rapid.SliceOfN(rapid.IntRange(0, len(entries)-1), 0, 20).Draw(r, "again")
		for _, n := range order {
			e := entries[n].FieldValues
			s.do("XADD", keysOf[2], "*", "format", e["format"], "epoch", e["epoch"], "at", e["at"],
				"terms", e["terms"], "first", e["first"], "users", e["users"])
		}
		random := seed.Rand(t, issued)
		p.Before = func(record.Batch) error {
			if random.IntN(4) == 0 {
				return errors.New("lost")
			}
			return nil
		}
		stop := s.drain(s.journal(func(o *redis.ConsumerOptions) { o.Coupons = 7 }), p.Take)
		p.WaitFor(t, issued)
		s.drained(int64(issued))
		stop()
		if len(p.Letters()) > 0 {
			r.Fatalf("%d garbage", len(p.Letters()))
		}
	})
}

// TestAnEntryOfACenturyToComeIsNotAnOldOne has a journal whose server's clock was far ahead once.
func TestAnEntryOfACenturyToComeIsNotAnOldOne(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.do("XADD", keysOf[2], "9223372036854775807-0", "format", "9", "users", "x")
	s.issue(0, 1)
	if lags, err := s.gate.Lag(t.Context(), revisions("c")); err != nil || len(lags) != 1 || lags[0].Oldest != 0 {
		t.Errorf("the lag is %+v, %v", lags, err)
	}
}

func TestTheLagIsTheNumbersThatAreNotSettled(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 10)
	let := make(chan struct{})
	p.Before = func(record.Batch) error {
		<-let
		return nil
	}
	s.drain(s.journal(), p.Take)
	var lags []record.Lag
	for len(lags) == 0 {
		var err error
		lags, err = s.gate.Lag(t.Context(), revisions("c"))
		stage.Must(t, err)
	}
	if lags[0].Numbers != 10 || lags[0].Campaign != "c" || lags[0].Oldest < 0 || lags[0].Oldest > time.Minute {
		t.Errorf("the lag is %+v", lags)
	}
	close(let)
	s.drained(10)
	if lags, err := s.gate.Lag(t.Context(), revisions("c")); err != nil || len(lags) > 0 {
		t.Errorf("the lag is %+v, %v", lags, err)
	}
}

// TestF49ARecorderTakesNoMoreOfABacklogThanABatchNeeds has a backlog of single coupons, followed by large batches. A recorder that read as many
// entries of the second kind as of the first would hold hundreds of thousands of coupons.
func TestF49ARecorderTakesNoMoreOfABacklogThanABatchNeeds(t *testing.T) {
	const singles, crowds, each, page = 250, 300, 100, 100
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	for n := range singles {
		s.issue(n, 1)
	}
	for n := range crowds {
		s.issue(singles+n*each, each)
	}
	var most, batches int
	p.Before = func(b record.Batch) error {
		batches++
		summary, err := s.do("XPENDING", keysOf[2], "recorders").ToArray()
		if err != nil {
			return err
		}
		taken, err := summary[0].AsInt64()
		if b.Coupons[0].Number > singles { // before that, the recorder does not know how large the next entries are
			most = max(most, int(taken))
		}
		return err
	}
	s.drain(s.journal(func(o *redis.ConsumerOptions) { o.Coupons = 2000 }), p.Take)
	p.WaitFor(t, singles+crowds*each)
	s.drained(singles + crowds*each)
	if most == 0 || most > page {
		t.Errorf("a recorder has taken %d entries of %d coupons each at once", most, each)
	}
	if least := (singles + crowds*each) / 2000; batches < least || batches > 4*least {
		t.Errorf("%d coupons were recorded in %d batches", singles+crowds*each, batches)
	}
}
