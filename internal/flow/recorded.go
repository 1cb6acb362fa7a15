package flow

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/firstcome/firstcome"
)

// A SettledWatch is a remote gate as Recorded needs it: see RemoteGate.
type SettledWatch interface {
	SettledThrough(ctx context.Context, id firstcome.CampaignID) (Settled, error)
	WatchSettled(ctx context.Context, ready func(), each func(firstcome.CampaignID, Settled)) error
}

// ErrUnrecorded says that a number is settled, and not as a coupon in the ledger:
// it is a dead letter, until an operator looks at it, or lost.
var ErrUnrecorded = errors.New("the coupon is not in the ledger: it is a dead letter or lost")

const (
	// rereadEvery is how often the gate is read while somebody waits: a message that
	// is late costs nobody more than that.
	rereadEvery = 50 * time.Millisecond
	// readTime bounds one reading of the gate.
	readTime = time.Second
	// maxReads bounds the campaigns that are read at once.
	maxReads = 8
)

// Recorded lets claims wait until their number is in the ledger. It hears from the
// gate what recorders settle, and reads it while anybody waits. While nobody does,
// it remembers nothing and reads nothing. Make one with NewRecorded; it needs Run.
type Recorded struct {
	gate SettledWatch
	wake chan struct{} // has room for one: somebody began to wait

	mu       sync.Mutex // guards what follows
	states   map[firstcome.CampaignID]*settling
	watching bool   // what is settled now will be heard
	watch    uint64 // counts the watches begun, so that what one of them taught ends with it
	failing  error  // why the last watch or reading failed
}

// settling is what is known of a campaign for which somebody waits.
//
// A message tells what one call of a recorder settled, so it says that a number is
// recorded only to whoever has heard all messages before it. What a reading says
// is complete. So messages count only behind a reading that was sent while the
// watch was on already, and what is heard during a reading is added to what it says.
type settling struct {
	waiters waiters
	through int64
	not     map[int64]bool // unrecorded ones up to through
	known   bool           // it was read at least once
	synced  bool
	heard   []Settled // since the reading under way was sent
	reading bool
}

// A waiter is one call of Wait.
type waiter struct {
	number int64
	place  int        // in the heap; -1: answered
	done   chan error // has room for the one answer
}

// waiters are a heap by number.
type waiters []*waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(a, b int) bool { return w[a].number < w[b].number }
func (w waiters) Swap(a, b int) {
	w[a], w[b] = w[b], w[a]
	w[a].place, w[b].place = a, b
}

// Push adds a waiter: see heap.Interface.
func (w *waiters) Push(x any) {
	one := x.(*waiter)
	one.place = len(*w)
	*w = append(*w, one)
}

// Pop takes the last one away: see heap.Interface.
func (w *waiters) Pop() any {
	all := *w
	last := all[len(all)-1]
	all[len(all)-1] = nil
	*w, last.place = all[:len(all)-1], -1
	return last
}

// NewRecorded returns a Recorded that asks a gate.
func NewRecorded(gate SettledWatch) *Recorded {
	return &Recorded{gate: gate, wake: make(chan struct{}, 1), states: map[firstcome.CampaignID]*settling{}}
}

// Wait returns nil when the number of a campaign is in the ledger, ErrUnrecorded
// when it is settled otherwise, and an error when ctx ends before it is known.
func (r *Recorded) Wait(ctx context.Context, id firstcome.CampaignID, number int64) error {
	w := r.enter(id, number)
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		r.leave(id, w)
		select {
		case err := <-w.done: // it was answered just before
			return err
		default:
			return fmt.Errorf("wait until number %d of %s is recorded: %w", number, id, ctx.Err())
		}
	}
}

// Waiting returns how many calls of Wait are under way, and why the gate's last
// watch or reading failed, or nil.
func (r *Recorded) Waiting() (calls int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		calls += len(s.waiters)
	}
	return calls, r.failing
}

func (r *Recorded) enter(id firstcome.CampaignID, number int64) *waiter {
	w := &waiter{number: number, done: make(chan error, 1)}
	r.mu.Lock()
	s := r.states[id]
	first := s == nil
	if first {
		s = &settling{}
		r.states[id] = s
	}
	heap.Push(&s.waiters, w)
	s.answer()
	r.forget(id, s)
	r.mu.Unlock()
	if first {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return w
}

func (r *Recorded) leave(id firstcome.CampaignID, w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.place < 0 {
		return
	}
	s := r.states[id]
	heap.Remove(&s.waiters, w.place)
	r.forget(id, s)
}

// forget drops a campaign for which nobody waits.
func (r *Recorded) forget(id firstcome.CampaignID, s *settling) {
	if len(s.waiters) == 0 && r.states[id] == s {
		delete(r.states, id)
	}
}

// answer answers who waits for numbers that are settled.
func (s *settling) answer() {
	for len(s.waiters) > 0 && s.waiters[0].number <= s.through {
		w := heap.Pop(&s.waiters).(*waiter)
		if s.not[w.number] {
			w.done <- ErrUnrecorded
		} else {
			w.done <- nil
		}
	}
}

// add takes over what is settled.
func (s *settling) add(news Settled) {
	s.through = max(s.through, news.Through)
	for _, number := range news.Unrecorded {
		s.not[number] = true
	}
}

// hear takes over a message.
func (r *Recorded) hear(id firstcome.CampaignID, news Settled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[id]
	if s == nil || !r.watching {
		return
	}
	if s.reading {
		s.heard = append(s.heard, news)
	}
	if s.synced {
		s.add(news)
		s.answer()
		r.forget(id, s)
	}
}

// Run hears and reads until ctx ends.
func (r *Recorded) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { r.follow(ctx) })
	both.Go(func() { r.poll(ctx) })
	both.Wait()
	return nil
}

// follow keeps a watch.
func (r *Recorded) follow(ctx context.Context) {
	waits := &backoff.ExponentialBackOff{InitialInterval: rereadEvery, MaxInterval: defaultWait, Multiplier: 2, RandomizationFactor: 0.5}
	for ctx.Err() == nil {
		ready := func() {
			waits.Reset()
			r.turn(true, nil)
		}
		err := r.gate.WatchSettled(ctx, ready, r.hear)
		r.turn(false, err)
		select {
		case <-time.After(waits.NextBackOff()):
		case <-ctx.Done():
		}
	}
}

// turn notes that a watch began or ended: nothing that was learned before is
// complete any more.
func (r *Recorded) turn(watching bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watching, r.failing = watching, err
	r.watch++
	for _, s := range r.states {
		s.synced, s.heard = false, nil
	}
}

// poll reads the gate while anybody waits.
func (r *Recorded) poll(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		tick := time.NewTicker(rereadEvery)
		for again := r.read(ctx, false); again && ctx.Err() == nil; {
			select {
			case <-r.wake:
				r.read(ctx, true)
			case <-tick.C:
				again = r.read(ctx, false)
			case <-ctx.Done():
			}
		}
		tick.Stop()
	}
}

// read reads once every campaign for which somebody waits, or those only that were
// not read yet, and tells whether there was any.
func (r *Recorded) read(ctx context.Context, onlyNew bool) (some bool) {
	r.mu.Lock()
	ids := make([]firstcome.CampaignID, 0, len(r.states))
	for id, s := range r.states {
		if !onlyNew || !s.known {
			ids = append(ids, id)
		}
	}
	r.mu.Unlock()
	var all sync.WaitGroup
	free := make(chan struct{}, maxReads)
	for _, id := range ids {
		free <- struct{}{}
		all.Go(func() {
			r.readOne(ctx, id)
			<-free
		})
	}
	all.Wait()
	return len(ids) > 0
}

func (r *Recorded) readOne(ctx context.Context, id firstcome.CampaignID) {
	r.mu.Lock()
	s, watch, watching := r.states[id], r.watch, r.watching
	if s == nil {
		r.mu.Unlock()
		return
	}
	s.reading, s.heard = true, nil
	r.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, readTime)
	news, err := r.gate.SettledThrough(ctx, id)
	cancel()

	r.mu.Lock()
	defer r.mu.Unlock()
	s.reading = false
	if err != nil {
		r.failing = err
		return
	}
	if r.watching == watching && r.watch == watch {
		s.synced = watching
		r.failing = nil
	} else {
		s.heard = nil
	}
	s.known, s.not = true, map[int64]bool{}
	for _, n := range append([]Settled{news}, s.heard...) {
		s.add(n)
	}
	s.answer()
	r.forget(id, s)
}
