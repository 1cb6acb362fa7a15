package auth

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A Limiter limits how often each key, a user or an address, may ask. It
// remembers a bounded number of keys, and forgets first who has not asked for
// longest. Its methods may be called from many goroutines; a nil one allows all.
type Limiter struct {
	perSecond rate.Limit
	burst     int
	max       int

	mu      sync.Mutex // guards what follows
	entries map[string]*list.Element
	recent  *list.List // of *limited, who asked last in front
}

// A limited is one key's allowance.
type limited struct {
	key   string
	allow *rate.Limiter
}

// NewLimiter returns a Limiter that lets each key ask perSecond times a second on
// average and burst times at once, and remembers at most maxEntries keys.
func NewLimiter(perSecond float64, burst, maxEntries int) *Limiter {
	return &Limiter{
		perSecond: rate.Limit(perSecond), burst: max(burst, 1), max: max(maxEntries, 1),
		entries: map[string]*list.Element{}, recent: list.New(),
	}
}

// longestWait is the longest that anybody is told to wait: a Duration has no room for what
// the lowest rates would say.
const longestWait = 24 * time.Hour

// Allow tells whether key may ask now, and if not, how long to wait.
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
func (l *Limiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recent.Len()
}

// find returns the key's allowance, a new one if there is none.
func (l *Limiter) find(key string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.entries[key]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*limited).allow
	}
	if l.recent.Len() >= l.max {
		oldest := l.recent.Remove(l.recent.Back()).(*limited)
		delete(l.entries, oldest.key)
	}
	entry := &limited{key: key, allow: rate.NewLimiter(l.perSecond, l.burst)}
	l.entries[key] = l.recent.PushFront(entry)
	return entry.allow
}
