package flow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// ErrUnrecorded says that a number has left the journal, but not as the coupon in question:
// it is a dead letter until an operator acts, or lost, or somebody else's.
var ErrUnrecorded = errors.New("the coupon is not in the ledger: it is a dead letter, lost, or its number is somebody else's")

const (
	// rereadEvery is how often the gate is read while somebody waits: a late message
	// delays nobody longer than that.
	rereadEvery = 50 * time.Millisecond
	// readTime bounds one reading of the gate, or one question.
	readTime = time.Second
)

// A Waiter lets claims wait until their coupon is in the ledger. It hears from the gate how far a
// campaign is drained, and also reads it while anybody waits. Then it asks about the claims with
// drained numbers, many at once: such a number may be somebody else's, because a gate that lost
// its latest decisions gives their numbers again. While nobody waits it remembers and reads
// nothing. Make one with NewWaiter; it needs Run.
type Waiter struct {
	gate gate.Drains

	mu     sync.Mutex // guards what follows
	crowds map[firstcome.CampaignID]*crowd
	serve  func(firstcome.CampaignID, *crowd) // starts to serve a crowd; nil while Run is not running
}

// NewWaiter returns a Waiter at a gate.
func NewWaiter(gate gate.Drains) *Waiter {
	return &Waiter{gate: gate, crowds: map[firstcome.CampaignID]*crowd{}}
}

// Wait returns nil when a coupon is in the ledger, ErrUnrecorded when its number has left the journal
// otherwise, and an error when ctx ends before that is known. It ignores the coupon's code.
func (w *Waiter) Wait(ctx context.Context, c firstcome.Coupon) error {
	one := &waiting{coupon: c, done: make(chan error, 1)}
	w.enter(one)
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		w.leave(one)
		select {
		case err := <-one.done: // it was answered just before
			return err
		default:
			return fmt.Errorf("wait until number %d of %s is recorded: %w", c.Number, c.Campaign, ctx.Err())
		}
	}
}

// Waiting returns how many calls of Wait are under way.
func (w *Waiter) Waiting() (calls int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.crowds {
		calls += c.calls()
	}
	return calls
}

func (w *Waiter) enter(one *waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.crowds[one.coupon.Campaign]
	if c == nil {
		c = newCrowd()
		w.crowds[one.coupon.Campaign] = c
		if w.serve != nil {
			w.serve(one.coupon.Campaign, c)
		}
	}
	c.add(one)
	one.crowd = c
}

func (w *Waiter) leave(one *waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one.crowd.leave(one)
}

// hear takes a message about how far a campaign is drained.
func (w *Waiter) hear(id firstcome.CampaignID, through int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.crowds[id]; c != nil {
		c.hint(through)
	}
}

// Recorded answers those who wait for coupons that this process has just recorded. They need not hear of it from the gate.
func (w *Waiter) Recorded(id firstcome.CampaignID, coupons []firstcome.Coupon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.crowds[id]; c != nil {
		c.recorded(coupons)
	}
}

// Run hears, reads and asks until ctx ends.
func (w *Waiter) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	start := func(id firstcome.CampaignID, c *crowd) { serving.Go(func() { w.serveCrowd(ctx, id, c) }) }
	w.mu.Lock()
	w.serve = start
	for id, c := range w.crowds {
		start(id, c)
	}
	w.mu.Unlock()
	w.follow(ctx)
	w.mu.Lock()
	w.serve = nil
	w.mu.Unlock()
	serving.Wait()
	return nil
}

// follow keeps a watch until ctx ends.
func (w *Waiter) follow(ctx context.Context) {
	waits := backOff(rereadEvery, defaultWait)
	for ctx.Err() == nil {
		_ = w.gate.WatchDrained(ctx, waits.Reset, w.hear) // meanwhile read finds what it would tell
		_ = pause(ctx, waits)
	}
}

// serveCrowd reads how far a campaign is drained, and asks about the claims with drained numbers, while
// anybody waits. It reads at once, because earlier messages were not heard, and then periodically.
func (w *Waiter) serveCrowd(ctx context.Context, id firstcome.CampaignID, c *crowd) {
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	w.read(ctx, id, c)
	for w.ask(ctx, id, c) {
		select { // The tick first: select picks at random among ready cases, and a simulation has to repeat.
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

// read reads how far a crowd's campaign is drained.
func (w *Waiter) read(ctx context.Context, id firstcome.CampaignID, c *crowd) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if through, err := w.gate.DrainedThrough(ctx, id); err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.drained(through)
	}
}

// ask asks about a crowd's claims with drained numbers, and tells whether anybody is left. After an
// error they wait for the next reading.
func (w *Waiter) ask(ctx context.Context, id firstcome.CampaignID, c *crowd) (more bool) {
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
		delete(w.crowds, id)
	}
	return more
}
