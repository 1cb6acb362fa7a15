package auth

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// A Limiter limits the rate of each key, which is a user or an address. It remembers a bounded number of keys, and forgets those that were unused for
// longest. Its methods may be called from many goroutines; a nil Limiter allows everything.
type Limiter struct {
	perSecond rate.Limit
	burst     int
	keys      *lru.Cache[string, *rate.Limiter]
}

// NewLimiter returns a Limiter that lets each key ask perSecond times a second on
// average and burst times at once, and remembers at most maxEntries keys.
func NewLimiter(perSecond float64, burst, maxEntries int) *Limiter {
	keys, err := lru.New[string, *rate.Limiter](max(maxEntries, 1))
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Limiter{perSecond: rate.Limit(perSecond), burst: max(burst, 1), keys: keys}
}

// longestWait is the longest wait that a caller is told. A Duration cannot hold the waits of the lowest rates.
const longestWait = 24 * time.Hour

// Allow reports whether key may make a request now, and if not, how long it must wait.
func (l *Limiter) Allow(key string) (wait time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	allow := l.find(key)
	now := time.Now()
	if allow.AllowN(now, 1) {
		return 0, true
	}
	missing := 1 - allow.TokensAt(now)
	return time.Duration(min(missing/float64(l.perSecond), longestWait.Seconds()) * float64(time.Second)), false
}

// Len returns how many keys are remembered.
func (l *Limiter) Len() int { return l.keys.Len() }

// find returns the key's limiter. It makes one if there is none.
func (l *Limiter) find(key string) *rate.Limiter {
	if known, ok := l.keys.Get(key); ok {
		return known
	}
	fresh := rate.NewLimiter(l.perSecond, l.burst)
	if known, ok, _ := l.keys.PeekOrAdd(key, fresh); ok { // another goroutine has added it
		return known
	}
	return fresh
}
