package record

import (
	"cmp"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/wait"
)

const (
	// defaultWait is the default of the longest rest. With it, a campaign is tried again within three seconds after its trouble has ended.
	defaultWait = 2 * time.Second
	// forgetFailures is how long after its rest a campaign's failures are kept. While the ledger is down, a campaign among many may wait for minutes
	// until it is tried again.
	forgetFailures = time.Hour
)

// retries decides when a Recorder tries a campaign again that failed. The package comment says where it is used. Make one with newRetries.
type retries struct {
	longest time.Duration

	mu sync.Mutex // guards what follows
	of map[firstcome.CampaignID]*failure
	// forgot is when failures were last forgotten.
	forgot time.Time
}

// A failure is the state of a campaign that has failed at every try since it was last drained.
type failure struct {
	waits  *wait.Backoff
	until  time.Time // when its rest ends
	locked bool      // its row in the ledger was locked at one of these tries
}

// newRetries returns retries whose waits grow to the longest, plus or minus half of it; 0 means defaultWait.
func newRetries(longest time.Duration) *retries {
	return &retries{longest: cmp.Or(longest, defaultWait), of: map[firstcome.CampaignID]*failure{}}
}

// failed counts a failure of a campaign. It returns how long the campaign must rest, which grows each time.
func (r *retries) failed(id firstcome.CampaignID, err error) (rest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.forgot) > forgetFailures { // not at each call: all of many campaigns may fail
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

// succeeded forgets a campaign's failures, because it was drained.
func (r *retries) succeeded(id firstcome.CampaignID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, id)
}

// shelf returns the shelf on which a campaign waits for its next try. If the campaign's row was locked at any try since it was last drained, the next
// try may have to wait for the lock.
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

// waits returns the waits between the tries of one thing.
func (r *retries) waits() *wait.Backoff { return wait.NewBackoff(wait.First, r.longest) }
