package issue

import (
	"context"
	"sync"
	"time"
)

// deadlines hands out contexts with a time-out. Calls that begin at nearly the same time share one. In a measurement with single claims to many
// campaigns, a context and a timer for each call cost a twentieth of a claim. For claims that wait until they are recorded it was a fiftieth.
type deadlines struct {
	parent context.Context
	after  time.Duration

	mu     sync.Mutex // guards what follows
	shared context.Context
	cancel context.CancelFunc // never called: shared ends by itself or with parent
	next   time.Time          // when a new shared context is due
}

// Calls that begin within a sharing-th of the time-out share a context.
const sharing = 64

// context returns a context that ends after the time-out, or up to a 64th of it earlier.
func (d *deadlines) context() context.Context {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !now.Before(d.next) {
		d.shared, d.cancel = context.WithDeadline(d.parent, now.Add(d.after))
		d.next = now.Add(d.after / sharing)
	}
	return d.shared
}
