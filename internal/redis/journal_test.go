package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
)

// A page is a ledger of one campaign in memory: an idempotent sink.
type page struct {
	mu      sync.Mutex // guards what follows
	coupons map[int64]firstcome.Coupon
	garbage map[string]flow.Garbage
	breach  error
	grown   chan struct{} // closed and made anew when something came
	// before, if set, is called with each batch; its error is the sink's.
	before func(flow.Batch) error
}

func newPage() *page {
	return &page{coupons: map[int64]firstcome.Coupon{}, garbage: map[string]flow.Garbage{}, grown: make(chan struct{})}
}

func (p *page) take(_ context.Context, b flow.Batch) (flow.Settled, error) {
	if p.before != nil {
		if err := p.before(b); err != nil {
			return flow.Settled{}, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, c := range b.Coupons {
		if n > 0 && c.Number <= b.Coupons[n-1].Number {
			p.breach = fmt.Errorf("number %d comes behind %d", c.Number, b.Coupons[n-1].Number)
		}
		known, ok := p.coupons[c.Number]
		if ok && known != c {
			p.breach = fmt.Errorf("number %d is %+v and %+v", c.Number, known, c)
		}
		p.coupons[c.Number] = c
	}
	for _, g := range b.Garbage {
		p.garbage[g.Source] = g
	}
	close(p.grown)
	p.grown = make(chan struct{})
	return flow.Settled{Through: p.through()}, nil
}

// through returns the number up to which the page has all. mu is held.
func (p *page) through() int64 {
	n := int64(len(p.coupons))
	for p.coupons[n].Number != n || n > 0 && !p.whole(n) {
		n--
	}
	return n
}

func (p *page) whole(n int64) bool {
	for k := int64(1); k <= n; k++ {
		if _, ok := p.coupons[k]; !ok {
			return false
		}
	}
	return true
}

// wait returns when the page is as it shall be.
func (p *page) wait(t testing.TB, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		p.mu.Lock()
		ok, grown, err := is(), p.grown, p.breach
		p.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			t.Fatalf("the page never had %s: it has %d coupons and %d garbage", what, len(p.coupons), len(p.garbage))
		}
	}
}

func (p *page) waitFor(t testing.TB, coupons int) {
	t.Helper()
	p.wait(t, fmt.Sprintf("%d coupons", coupons), func() bool { return len(p.coupons) == coupons })
}

// A shop is a gate with one campaign, c.
type shop struct {
	t      testing.TB
	url    string
	gate   *redis.Gate
	client rueidis.Client
	alarms chan error
}

func newShop(t testing.TB, url string, quantity int64, edit ...func(*redis.Options)) *shop {
	t.Helper()
	s := &shop{t: t, url: url, gate: open(t, url, edit...), client: connect(t, url), alarms: make(chan error, 100)}
	s.apply(firstcome.Change{Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: quantity}})
	return s
}

// connect returns a client beside the gate's.
func connect(t testing.TB, url string) rueidis.Client {
	t.Helper()
	o, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.DisableCache, o.ForceSingleClient = true, true
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (s *shop) apply(c firstcome.Change) (refused bool) {
	s.t.Helper()
	c.Campaign = "c"
	refused, err := s.gate.Apply(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	return refused
}

// issue claims for count new users and returns what was decided.
func (s *shop) issue(from, count int) []firstcome.Decision {
	s.t.Helper()
	decisions, err := s.gate.Claim(s.t.Context(), "c", crowd(from, count))
	if err != nil {
		s.t.Fatal(err)
	}
	return decisions
}

func crowd(from, count int) (users []firstcome.UserID) {
	for n := range count {
		users = append(users, firstcome.UserID("user-"+strconv.Itoa(from+n)))
	}
	return users
}

// do sends a command to Redis.
func (s *shop) do(words ...string) rueidis.RedisResult {
	s.t.Helper()
	answer := s.client.Do(s.t.Context(), s.client.B().Arbitrary(words...).Build())
	if err := answer.Error(); err != nil && !rueidis.IsRedisNil(err) {
		s.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return answer
}

func (s *shop) state() flow.GateState {
	s.t.Helper()
	state, err := s.gate.State(s.t.Context(), "c")
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// journal returns the journal with the times of the tests.
func (s *shop) journal(edit ...func(*redis.JournalOptions)) *redis.Journal {
	o := redis.JournalOptions{
		Active: func(context.Context) ([]firstcome.CampaignID, error) { return []firstcome.CampaignID{"c"}, nil },
		Sweep:  10 * time.Millisecond, Idle: 50 * time.Millisecond,
		OnAlarm: func(_ firstcome.CampaignID, err error) {
			select {
			case s.alarms <- err:
			default:
			}
		},
	}
	for _, e := range edit {
		e(&o)
	}
	return s.gate.Journal(o)
}

// drain drains a journal until the returned function or the end of the test.
func (s *shop) drain(j *redis.Journal, to flow.Sink) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := j.Drain(ctx, to); err == nil && ctx.Err() == nil {
				s.t.Error("the drain ended by itself")
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	s.t.Cleanup(stop)
	return stop
}

// settled waits until all that was issued is settled and the journal is empty.
func (s *shop) settled(through int64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	for {
		entries, err := s.do("XLEN", "firstcome:{c}:journal").AsInt64()
		if err != nil {
			s.t.Fatal(err)
		}
		if state := s.state(); state.Settled == through && entries == 0 {
			return
		} else if ctx.Err() != nil {
			s.t.Fatalf("settled through %d with %d entries left, instead of through %d", state.Settled, entries, through)
		}
	}
}

func TestWhatIsIssuedReachesTheSinkAndIsSettled(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
	first := s.issue(0, 700)
	s.drain(s.journal(), p.take)
	p.waitFor(t, 700)
	s.issue(700, 5_000) // wider than what Lua's stack takes at once, and than a batch
	p.waitFor(t, 5_700)
	s.settled(5_700)
	if diff := cmp.Diff(first[41].Coupon, p.coupons[42]); diff != "" {
		t.Errorf("the coupon is another in the journal (-gate +journal):\n%s", diff)
	}
	if again := s.issue(41, 1)[0]; again.Outcome != firstcome.AlreadyIssued || !again.Coupon.Recorded {
		t.Errorf("once settled the gate says %+v", again)
	}
}

func TestASinkThatFailsIsGivenTheSameAgain(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
	failures := 0
	p.before = func(flow.Batch) error {
		if failures++; failures <= 3 {
			return errors.New("the ledger is down")
		}
		return nil
	}
	s.issue(0, 10)
	s.drain(s.journal(func(o *redis.JournalOptions) { o.Idle = time.Hour }), p.take)
	p.waitFor(t, 10)
	s.settled(10)
}

func TestF42TwoRecordersOfTheSameEntriesRecordEachCouponOnce(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
	for n := range 40 {
		s.issue(n*10, 10)
	}
	// The first recorder has entries and hangs, without a sign of life: another takes them over.
	hung, let := make(chan struct{}), make(chan struct{})
	slow := newPage()
	slow.before = func(flow.Batch) error {
		close(hung)
		<-let
		return errors.New("too late")
	}
	frozen := s.journal(func(o *redis.JournalOptions) { o.Idle = time.Hour })
	s.drain(frozen, slow.take)
	<-hung
	s.drain(s.journal(), p.take)
	s.drain(s.journal(), p.take)
	p.waitFor(t, 400)
	s.settled(400)
	slow.before = nil
	close(let)
	s.settled(400)
}

func TestARecorderThatIsAtWorkKeepsItsEntries(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
	s.issue(0, 10)
	at, let := make(chan struct{}), make(chan struct{})
	p.before = func(flow.Batch) error {
		close(at)
		<-let
		return nil
	}
	const idle = 300 * time.Millisecond // so that the machine may stop for 200
	s.drain(s.journal(func(o *redis.JournalOptions) { o.Idle = idle }), p.take)
	<-at
	other := newPage()
	s.drain(s.journal(func(o *redis.JournalOptions) { o.Idle = idle }), other.take)
	for resets, before := 0, int64(0); resets < 5; {
		idleNow := s.pendingIdle()
		if idleNow < before {
			resets++
		}
		before = idleNow
	}
	close(let)
	p.waitFor(t, 10)
	s.settled(10)
	if len(other.coupons) > 0 {
		t.Error("another recorder took over what was at work")
	}
}

// pendingIdle returns for how many milliseconds the first pending entry has been
// with its recorder without a sign of life.
func (s *shop) pendingIdle() int64 {
	s.t.Helper()
	entries, err := s.do("XPENDING", "firstcome:{c}:journal", "recorders", "-", "+", "1").ToArray()
	if err != nil || len(entries) == 0 {
		s.t.Fatalf("nothing is pending: %v", err)
	}
	entry, err := entries[0].ToArray()
	if err != nil || len(entry) != 4 {
		s.t.Fatalf("an entry is pending as %v: %v", entry, err)
	}
	idle, err := entry[2].AsInt64()
	if err != nil {
		s.t.Fatal(err)
	}
	return idle
}

func TestF43AGroupThatIsGoneIsMadeAgainFromTheBeginning(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
	s.issue(0, 10)
	s.do("XGROUP", "DESTROY", "firstcome:{c}:journal", "recorders")
	s.issue(10, 10)
	s.drain(s.journal(), p.take)
	p.waitFor(t, 20)
	s.settled(20)
	if err := <-s.alarms; !strings.Contains(err.Error(), "group was gone") {
		t.Errorf("the alarm says %v", err)
	}
}

func TestF43WhatIsGoneOfAJournalIsMadeAgainFromTheHolders(t *testing.T) {
	for name, harm := range map[string]func(*shop){
		"the stream is deleted": func(s *shop) { s.do("DEL", "firstcome:{c}:journal") },
		"it is trimmed":         func(s *shop) { s.do("XTRIM", "firstcome:{c}:journal", "MAXLEN", "1") },
		"entries are deleted while they are pending": func(s *shop) {
			s.do("XREADGROUP", "GROUP", "recorders", "somebody", "COUNT", "2", "STREAMS", "firstcome:{c}:journal", ">")
			s.do("XTRIM", "firstcome:{c}:journal", "MAXLEN", "3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
			for n := range 5 {
				s.issue(n*10, 10)
			}
			harm(s)
			s.drain(s.journal(), p.take)
			p.waitFor(t, 50)
			s.settled(50)
			if err := <-s.alarms; !strings.Contains(err.Error(), "from the gate's holders") {
				t.Errorf("the alarm says %v", err)
			}
		})
	}
}

func TestF44GarbageIsADeadLetterAndTheRestFlows(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
	s.issue(0, 3)
	s.do("XADD", "firstcome:{c}:journal", "*", "format", "9", "users", "x")
	s.do("XADD", "firstcome:{c}:journal", "*", "\xff", "\x00")
	s.issue(3, 3)
	s.drain(s.journal(), p.take)
	p.waitFor(t, 6)
	s.settled(6)
	if len(p.garbage) != 2 {
		t.Fatalf("got %d garbage", len(p.garbage))
	}
	for source, g := range p.garbage {
		if !strings.HasPrefix(source, s.gate.Name()+"/c/") || g.Cause == "" || g.Payload == "" {
			t.Errorf("the garbage %q is %+v", source, g)
		}
	}
}

// TestF45AnyOrderOfTheEntriesGivesTheSameLedger gives the entries of a journal as
// failures would: any of them again, in any order, to several recorders.
func TestF45AnyOrderOfTheEntriesGivesTheSameLedger(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
		batches := rapid.SliceOfN(rapid.IntRange(1, 30), 1, 12).Draw(r, "batches")
		issued := 0
		for _, n := range batches {
			s.issue(issued, n)
			issued += n
		}
		entries, err := s.do("XRANGE", "firstcome:{c}:journal", "-", "+").AsXRange()
		if err != nil {
			r.Fatal(err)
		}
		order := rapid.SliceOfN(rapid.IntRange(0, len(entries)-1), 0, 20).Draw(r, "again")
		for _, n := range order {
			e := entries[n].FieldValues
			s.do("XADD", "firstcome:{c}:journal", "*", "format", e["format"], "epoch", e["epoch"], "at", e["at"],
				"terms", e["terms"], "first", e["first"], "users", e["users"])
		}
		random := rand.New(rand.NewPCG(1, uint64(issued)))
		p.before = func(flow.Batch) error {
			if random.IntN(4) == 0 {
				return errors.New("lost")
			}
			return nil
		}
		stop := s.drain(s.journal(func(o *redis.JournalOptions) { o.Coupons = 7 }), p.take)
		p.waitFor(t, issued)
		s.settled(int64(issued))
		stop()
		if len(p.garbage) > 0 {
			r.Fatalf("%d garbage", len(p.garbage))
		}
	})
}

func TestTheLagIsTheNumbersThatAreNotSettled(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), newPage()
	s.issue(0, 10)
	let := make(chan struct{})
	p.before = func(flow.Batch) error {
		<-let
		return nil
	}
	j := s.journal()
	s.drain(j, p.take)
	var lags []flow.Lag
	for len(lags) == 0 {
		var err error
		if lags, err = j.Lag(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if lags[0].Numbers != 10 || lags[0].Campaign != "c" || lags[0].Oldest < 0 || lags[0].Oldest > time.Minute {
		t.Errorf("the lag is %+v", lags)
	}
	close(let)
	s.settled(10)
	if lags, err := j.Lag(t.Context()); err != nil || len(lags) > 0 {
		t.Errorf("the lag is %+v, %v", lags, err)
	}
}

func TestManyCampaignsAreDrainedSideBySide(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	var ids []firstcome.CampaignID
	pages := map[firstcome.CampaignID]*page{}
	for n := range 20 {
		id := firstcome.CampaignID(fmt.Sprintf("many-%d", n))
		ids, pages[id] = append(ids, id), newPage()
		change := firstcome.Change{Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: 100}}
		if _, err := s.gate.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if _, err := s.gate.Claim(t.Context(), id, crowd(0, 50)); err != nil {
			t.Fatal(err)
		}
	}
	// One campaign whose ledger hangs keeps one worker, and the others nobody.
	let := make(chan struct{})
	pages[ids[0]].before = func(flow.Batch) error {
		<-let
		return nil
	}
	j := s.journal(func(o *redis.JournalOptions) {
		o.Active = func(context.Context) ([]firstcome.CampaignID, error) { return slices.Clone(ids), nil }
	})
	s.drain(j, func(ctx context.Context, b flow.Batch) (flow.Settled, error) { return pages[b.Campaign].take(ctx, b) })
	for _, id := range ids[1:] {
		pages[id].waitFor(t, 50)
	}
	close(let)
	pages[ids[0]].waitFor(t, 50)
}
