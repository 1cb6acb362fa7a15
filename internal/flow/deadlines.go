package flow

import (
	"context"
	"sync"
	"time"
)

// deadlines hands out contexts for calls that may take so long. Calls that begin at nearly the
// same time share one: in a trial with single claims to many campaigns, a context and a timer
// for each took a twentieth of a claim's cost.
type deadlines struct {
	parent context.Context
	after  time.Duration

	mu     sync.Mutex // guards what follows
	shared context.Context
	cancel context.CancelFunc // never needed: shared ends by itself or with parent
	next   time.Time          // after it, a new one is made
}

// sharing is the part of their time within which calls that begin share a context.
const sharing = 64

func newDeadlines(parent context.Context, after time.Duration) *deadlines {
	return &deadlines{parent: parent, after: after}
}

// context returns a context that ends when the time has passed, or up to a 64th of it early.
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
