package issue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/wait"
)

// ErrUnrecorded means that a number has left the journal, but not as the coupon in question. The coupon is a dead letter until an operator acts, it
// is lost, or the number belongs to another user.
var ErrUnrecorded = errors.New("the coupon is not in the ledger: it is a dead letter, lost, or its number is another user's")

const (
	// rereadEvery is how often the gate is read while callers wait: a late message delays a caller by no more than that.
	rereadEvery = 50 * time.Millisecond
	// longestReread is the longest pause between two tries to subscribe to the gate.
	longestReread = 2 * time.Second
	// readTime is the time-out of one reading of the gate, or one question to it.
	readTime = time.Second
)

// A Waiter lets claims wait until their coupons are in the ledger. It subscribes to the gate's messages about how far campaigns are drained, and also
// polls the gate while callers wait. For claims with drained numbers it asks whose the numbers are, many in one call, because a gate that lost its
// latest decisions issues their numbers again. Without callers it keeps and reads nothing. Make one with NewWaiter; it needs Run.
type Waiter struct {
	gate gate.Progress

	mu      sync.Mutex // guards what follows
	callers map[firstcome.CampaignID]*callers
	serve   func(firstcome.CampaignID, *callers) // starts to serve a campaign's callers; nil while Run is not running
}

// NewWaiter returns a Waiter at a gate.
func NewWaiter(gate gate.Progress) *Waiter {
	return &Waiter{gate: gate, callers: map[firstcome.CampaignID]*callers{}}
}

// Wait returns nil when a coupon is in the ledger, ErrUnrecorded when its number has left the journal otherwise, ErrNotRecordedYet when end is closed
// before either is known, and another error when ctx ends before. It ignores the coupon's code. A nil channel never ends the wait.
func (w *Waiter) Wait(ctx context.Context, end <-chan struct{}, c firstcome.Coupon) error {
	one := &waiting{coupon: c, done: make(chan error, 1)}
	w.enter(one)
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
	case <-end:
	}
	w.mu.Lock()
	one.callers.leave(one)
	w.mu.Unlock()
	select {
	case err := <-one.done: // the answer came just before
		return err
	default:
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait until number %d of %s is recorded: %w", c.Number, c.Campaign, err)
	}
	return ErrNotRecordedYet
}

// Waiting returns how many calls of Wait are under way.
func (w *Waiter) Waiting() (calls int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.callers {
		calls += c.calls()
	}
	return calls
}

func (w *Waiter) enter(one *waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.callers[one.coupon.Campaign]
	if c == nil {
		c = &callers{signal: make(chan struct{}, 1)}
		w.callers[one.coupon.Campaign] = c
		if w.serve != nil {
			w.serve(one.coupon.Campaign, c)
		}
	}
	c.add(one)
	one.callers = c
}

// hint takes a message about how far a campaign is drained.
func (w *Waiter) hint(id firstcome.CampaignID, through int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.callers[id]; c != nil {
		c.hint(through)
	}
}

// Recorded answers callers who wait for coupons that this process has just recorded. They need not wait for the gate's message.
func (w *Waiter) Recorded(id firstcome.CampaignID, coupons []firstcome.Coupon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.callers[id]; c != nil {
		c.recorded(coupons)
	}
}

// Run subscribes to the gate's messages, again after each failure, and reads and asks until ctx ends.
func (w *Waiter) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	start := func(id firstcome.CampaignID, c *callers) { serving.Go(func() { w.serveCallers(ctx, id, c) }) }
	w.mu.Lock()
	w.serve = start
	for id, c := range w.callers {
		start(id, c)
	}
	w.mu.Unlock()
	for waits := wait.NewBackoff(rereadEvery, longestReread); ctx.Err() == nil; {
		_ = w.gate.WatchDrained(ctx, waits.Reset, w.hint) // until it is back, read finds what the messages would report
		_ = waits.Pause(ctx)
	}
	w.mu.Lock()
	w.serve = nil
	w.mu.Unlock()
	serving.Wait()
	return nil
}

// serveCallers polls how far a campaign is drained, and asks about the claims with drained numbers, while callers wait. It reads at once, because it
// has missed earlier messages, and then periodically.
func (w *Waiter) serveCallers(ctx context.Context, id firstcome.CampaignID, c *callers) {
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	w.read(ctx, id, c)
	for w.ask(ctx, id, c) {
		select { // The tick first: select picks at random among ready cases, and a simulation must be repeatable.
		case <-tick.C:
			w.read(ctx, id, c)
			continue
		default:
		}
		select {
		case <-c.signal:
		case <-tick.C:
			w.read(ctx, id, c)
		case <-ctx.Done():
			return
		}
	}
}

// read reads how far callers' campaign is drained.
func (w *Waiter) read(ctx context.Context, id firstcome.CampaignID, c *callers) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if through, err := w.gate.DrainedThrough(ctx, id); err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.drained(through)
	}
}

// ask asks about callers' claims with drained numbers, and reports whether callers are left. After an error the claims wait for the next reading.
func (w *Waiter) ask(ctx context.Context, id firstcome.CampaignID, c *callers) (more bool) {
	w.mu.Lock()
	due := c.ask()
	w.mu.Unlock()
	var has []bool
	var err error
	if len(due) > 0 {
		coupons := make([]firstcome.Coupon, len(due))
		for n, one := range due {
			coupons[n] = one.coupon
		}
		ctx, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()
		has, err = w.gate.Has(ctx, id, coupons)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.told(due, has, err)
	if more = c.calls() > 0; !more {
		delete(w.callers, id)
	}
	return more
}
