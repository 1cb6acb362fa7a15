package flow

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/firstcome/firstcome"
)

const (
	firstWait = 20 * time.Millisecond
	// defaultWait has what failed be tried again within three seconds of the end of its trouble.
	defaultWait = 2 * time.Second
	// forgetFailures is how long after its rest a campaign's failures are remembered. While the ledger is down, a campaign among
	// many may wait for minutes until it is tried again.
	forgetFailures = time.Hour
)

// Retries say when a Recorder and its Source try again what failed. The package comment says who asks
// them. Make one with NewRetries.
type Retries struct {
	longest time.Duration

	mu sync.Mutex // guards what follows
	of map[firstcome.CampaignID]*failing
	// forgot is when those were last forgotten that nobody tries any more.
	forgot time.Time
}

// A failing is a campaign that has failed each time since it was last drained.
type failing struct {
	waits  *backoff.ExponentialBackOff
	until  time.Time // it rests
	locked bool      // its row in the ledger was, at one of these times
}

// NewRetries returns Retries whose waits grow to the longest, half of it either way; 0: the default.
func NewRetries(longest time.Duration) *Retries {
	return &Retries{longest: cmp.Or(longest, defaultWait), of: map[firstcome.CampaignID]*failing{}}
}

// Failed counts a failure of a campaign. It returns how long the campaign is to rest: longer each time.
func (r *Retries) Failed(id firstcome.CampaignID, err error) (rest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.forgot) > forgetFailures { // and not each time: all of many campaigns may fail
		r.forgot = now
		maps.DeleteFunc(r.of, func(_ firstcome.CampaignID, f *failing) bool { return now.Sub(f.until) > forgetFailures })
	}
	f := r.of[id]
	if f == nil {
		f = &failing{waits: r.waits()}
		r.of[id] = f
	}
	rest = f.waits.NextBackOff()
	f.until, f.locked = now.Add(rest), f.locked || errors.Is(err, ErrRowLocked)
	return rest
}

// Drained forgets a campaign's failures, because it was drained.
func (r *Retries) Drained(id firstcome.CampaignID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, id)
}

// Locked tells whether a campaign's row in the ledger was locked since the campaign was last drained, so that the next
// try may have to wait for the lock.
func (r *Retries) Locked(id firstcome.CampaignID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.of[id]
	return f != nil && f.locked
}

// fails tells whether a campaign has failed since it was last drained.
func (r *Retries) fails(id firstcome.CampaignID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[id] != nil
}

// waits returns those of one thing that fails again and again.
func (r *Retries) waits() *backoff.ExponentialBackOff { return backOff(firstWait, r.longest) }

// backOff returns waits from the first to the longest, twice as long each time, half of it either way so that nodes
// do not keep step.
func backOff(first, longest time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: first, MaxInterval: longest, Multiplier: 2, RandomizationFactor: 0.5}
}

// pause waits once, or until ctx ends, whose error it then returns.
func pause(ctx context.Context, waits *backoff.ExponentialBackOff) error {
	return sleep(ctx, waits.NextBackOff())
}

// sleep waits for so long, or until ctx ends, whose error it then returns.
func sleep(ctx context.Context, long time.Duration) error {
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
	return ctx.Err()
}
