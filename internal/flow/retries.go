package flow

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
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

// Retries say when a Recorder tries again what failed. The package comment says who asks
// them. Make some with newRetries.
type retries struct {
	longest time.Duration

	mu sync.Mutex // guards what follows
	of map[firstcome.CampaignID]*failure
	// forgot is when those were last forgotten that nobody tries any more.
	forgot time.Time
}

// A failure is a campaign's that has failed each time since it was last drained.
type failure struct {
	waits  *waits
	until  time.Time // it rests
	locked bool      // its row in the ledger was, at one of these times
}

// newRetries returns some whose waits grow to the longest, half of it either way; 0: the default.
func newRetries(longest time.Duration) *retries {
	return &retries{longest: cmp.Or(longest, defaultWait), of: map[firstcome.CampaignID]*failure{}}
}

// failed counts a failure of a campaign. It returns how long the campaign is to rest: longer each time.
func (r *retries) failed(id firstcome.CampaignID, err error) (rest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.forgot) > forgetFailures { // and not each time: all of many campaigns may fail
		r.forgot = now
		maps.DeleteFunc(r.of, func(_ firstcome.CampaignID, f *failure) bool { return now.Sub(f.until) > forgetFailures })
	}
	f := r.of[id]
	if f == nil {
		f = &failure{waits: r.waits()}
		r.of[id] = f
	}
	rest = f.waits.NextBackOff()
	f.until, f.locked = now.Add(rest), f.locked || errors.Is(err, ErrRowLocked)
	return rest
}

// drained forgets a campaign's failures, because it was drained.
func (r *retries) drained(id firstcome.CampaignID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, id)
}

// shelf returns where a campaign waits for the next try. One whose row in the ledger was locked since it was last drained may have to wait
// for the lock.
func (r *retries) shelf(id firstcome.CampaignID) shelf {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch f := r.of[id]; {
	case f == nil:
		return free
	case f.locked:
		return locked
	}
	return failing
}

// waits returns those of one thing that fails again and again.
func (r *retries) waits() *waits { return backOff(firstWait, r.longest) }

// waits are those of one thing that fails again and again, each around twice the one before.
type waits struct{ backoff.ExponentialBackOff }

// backOff returns waits from the first to the longest.
func backOff(first, longest time.Duration) *waits {
	return &waits{backoff.ExponentialBackOff{InitialInterval: first, MaxInterval: longest, Multiplier: 2}}
}

// NextBackOff is backoff.BackOff's.
func (w *waits) NextBackOff() time.Duration { return around(w.ExponentialBackOff.NextBackOff()) }

// around returns a time, half of it more or less, so that nodes do not keep step. The instant seeds the choice, so a
// simulation that repeats its instants repeats its waits.
func around(long time.Duration) time.Duration {
	now := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	return long/2 + time.Duration(now.Int64N(int64(long)+1))
}

// pause waits once, or until ctx ends, whose error it then returns.
func pause(ctx context.Context, w *waits) error {
	return sleep(ctx, w.NextBackOff())
}

// sleep waits for so long, or until ctx ends, whose error it then returns.
func sleep(ctx context.Context, long time.Duration) error {
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
	return ctx.Err()
}
