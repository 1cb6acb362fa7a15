package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/redis"
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

func (p *page) take(_ context.Context, b flow.Batch) (flow.Drained, error) {
	if p.before != nil {
		if err := p.before(b); err != nil {
			return flow.Drained{}, err
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
	return flow.Drained{Through: p.through()}, nil
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

func (p *page) waitNumber(t testing.TB, number int64) {
	t.Helper()
	p.wait(t, fmt.Sprintf("number %d", number), func() bool { return p.coupons[number].Number == number })
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
		Active: func(context.Context) ([]flow.Revision, error) { return revisions("c"), nil },
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

// revisions returns campaigns as they are made.
func revisions(ids ...firstcome.CampaignID) (all []flow.Revision) {
	for _, id := range ids {
		all = append(all, flow.Revision{Campaign: id, Version: 1, Epoch: 1})
	}
	return all
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

// drained waits until all that was issued is drained and the journal is empty.
func (s *shop) drained(through int64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	for {
		entries, err := s.do("XLEN", keysOf[2]).AsInt64()
		if err != nil {
			s.t.Fatal(err)
		}
		if state := s.state(); state.DrainedThrough == through && entries == 0 {
			return
		} else if ctx.Err() != nil {
			s.t.Fatalf("drained through %d with %d entries left, instead of through %d", state.DrainedThrough, entries, through)
		}
	}
}
