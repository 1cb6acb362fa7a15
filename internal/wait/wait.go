// Package wait has the waits between tries, and the signal that ends one.
package wait

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// First is the wait after the first failure of something that is tried again soon.
const First = 20 * time.Millisecond

// A Backoff is the waits between the tries of one thing. Each is about twice as long as the last. Make one with NewBackoff. It may be used by one
// goroutine at a time.
type Backoff struct{ backoff.ExponentialBackOff }

// NewBackoff returns waits that grow from first to longest, each longer or shorter by up to a half.
func NewBackoff(first, longest time.Duration) *Backoff {
	return &Backoff{backoff.ExponentialBackOff{InitialInterval: first, MaxInterval: longest, Multiplier: 2}}
}

// NextBackOff implements backoff.BackOff.
func (b *Backoff) NextBackOff() time.Duration { return Jitter(b.ExponentialBackOff.NextBackOff()) }

// Pause waits for the next back-off, or until ctx ends, and then returns ctx's error.
func (b *Backoff) Pause(ctx context.Context) error { return Sleep(ctx, b.NextBackOff()) }

// Jitter returns a random duration within half of d around it, so that nodes do not keep step. The current time seeds the choice, so a simulation
// that repeats its times repeats its waits.
func Jitter(d time.Duration) time.Duration {
	now := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	return d/2 + time.Duration(now.Int64N(int64(d)+1))
}

// Sleep waits for d, or until ctx ends, and then returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Wake sends to signal, unless a signal is in it already. It does not wait. signal must have room for one.
func Wake(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
