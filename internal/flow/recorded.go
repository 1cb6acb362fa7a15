package flow

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/firstcome/firstcome"
)

// A SettledWatch is a remote gate as Recorded needs it: see RemoteGate.
type SettledWatch interface {
	SettledThrough(ctx context.Context, id firstcome.CampaignID, numbers []int64) (Settled, error)
	WatchSettled(ctx context.Context, ready func(), each func(firstcome.CampaignID, Settled)) error
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)
}

// ErrUnrecorded says that a number is settled, and not as a coupon in the ledger:
// it is a dead letter, until an operator looks at it, or lost, or somebody else's.
var ErrUnrecorded = errors.New("the coupon is not in the ledger: it is a dead letter, lost, or its number is somebody else's")

const (
	// rereadEvery is how often the gate is read while somebody waits: a message that
	// is late costs nobody more than that.
	rereadEvery = 50 * time.Millisecond
	// readTime bounds one reading of the gate.
	readTime = time.Second
	// maxReads bounds the campaigns that are read at once.
	maxReads = 8
)

// Recorded lets claims wait until their coupon is in the ledger. It hears from the
// gate what recorders settle, and reads it while anybody waits. While nobody does,
// it remembers nothing and reads nothing. Make one with NewRecorded; it needs Run.
//
// That a number is settled does not say whose it is: a gate that lost its latest decisions
// gives their numbers again. So the gate is asked about those who are due, many at once.
type Recorded struct {
	gate SettledWatch
	wake chan struct{} // has room for one: somebody began to wait
	dues chan struct{} // has room for one: somebody's number is settled

	mu      sync.Mutex // guards what follows
	states  map[firstcome.CampaignID]*settling
	failing error // why the last watch or reading failed
}

// NewRecorded returns a Recorded that asks a gate.
func NewRecorded(gate SettledWatch) *Recorded {
	return &Recorded{gate: gate, wake: make(chan struct{}, 1), dues: make(chan struct{}, 1), states: map[firstcome.CampaignID]*settling{}}
}

// Wait returns nil when a coupon is in the ledger, ErrUnrecorded when its number is settled
// otherwise, at some time since Wait was called, or may be lost, and an error when ctx ends
// before it is known. Of the coupon its code does not matter.
func (r *Recorded) Wait(ctx context.Context, c firstcome.Coupon) error {
	w := r.enter(c)
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		r.leave(c.Campaign, w)
		select {
		case err := <-w.done: // it was answered just before
			return err
		default:
			return fmt.Errorf("wait until number %d of %s is recorded: %w", c.Number, c.Campaign, ctx.Err())
		}
	}
}

// Waiting returns how many calls of Wait are under way, and why the gate's last
// watch or reading failed, or nil.
func (r *Recorded) Waiting() (calls int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		calls += s.calls()
	}
	return calls, r.failing
}

func (r *Recorded) enter(c firstcome.Coupon) *waiter {
	id, w := c.Campaign, &waiter{coupon: c, done: make(chan error, 1)}
	r.mu.Lock()
	s := r.states[id]
	first := s == nil
	if first {
		s = &settling{}
		r.states[id] = s
	}
	heap.Push(&s.waiters, w)
	s.answer()
	r.moved(id, s)
	if first || s.reached() {
		r.readSoon(s)
	}
	r.mu.Unlock()
	return w
}

// readSoon has a campaign read before the clock says so. mu is held.
func (r *Recorded) readSoon(s *settling) {
	s.known = false
	tell(r.wake)
}

func tell(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

func (r *Recorded) leave(id firstcome.CampaignID, w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.left = true; w.place < 0 {
		return
	}
	s := r.states[id]
	heap.Remove(&s.waiters, w.place)
	r.moved(id, s)
}

// moved has the gate asked of those who are due, and drops a campaign for which nobody waits. mu is held.
func (r *Recorded) moved(id firstcome.CampaignID, s *settling) {
	if len(s.due) > 0 && s.asked == 0 {
		tell(r.dues)
	}
	if s.calls() == 0 && r.states[id] == s {
		delete(r.states, id)
	}
}

// hear takes over what is settled of a campaign, as a recorder told it.
func (r *Recorded) hear(id firstcome.CampaignID, news Settled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[id]
	if s == nil {
		return
	}
	s.learn(news, nil)
	r.moved(id, s)
	if s.reached() {
		r.readSoon(s)
	}
}

// Run hears and reads until ctx ends.
func (r *Recorded) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { r.follow(ctx) })
	both.Go(func() { r.poll(ctx) })
	both.Go(func() { r.askAll(ctx) })
	both.Wait()
	return nil
}

// follow keeps a watch.
func (r *Recorded) follow(ctx context.Context) {
	waits := &backoff.ExponentialBackOff{InitialInterval: rereadEvery, MaxInterval: defaultWait, Multiplier: 2, RandomizationFactor: 0.5}
	for ctx.Err() == nil {
		ready := func() {
			waits.Reset()
			r.fail(nil)
		}
		r.fail(r.gate.WatchSettled(ctx, ready, r.hear))
		select {
		case <-time.After(waits.NextBackOff()):
		case <-ctx.Done():
		}
	}
}

func (r *Recorded) fail(err error) {
	r.mu.Lock()
	r.failing = err
	r.mu.Unlock()
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
		some = true
		if len(s.waiters) > 0 && (!onlyNew || !s.known) {
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
	return some
}

func (r *Recorded) readOne(ctx context.Context, id firstcome.CampaignID) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	asked := r.waitingFor(id)
	numbers := make([]int64, len(asked))
	for n, w := range asked {
		numbers[n] = w.coupon.Number
	}
	news, err := r.gate.SettledThrough(ctx, id, numbers)
	if err != nil {
		r.fail(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[id]; s != nil {
		s.learn(news, asked)
		r.moved(id, s)
	}
}

// waitingFor returns who waits for a number of a campaign, for a reading that begins now.
func (r *Recorded) waitingFor(id firstcome.CampaignID) []*waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[id]; s != nil {
		s.known = true
		return slices.Clone(s.waiters)
	}
	return nil
}
