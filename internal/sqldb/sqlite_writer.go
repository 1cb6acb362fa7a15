package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A call is what one caller waits for: the writer commits all of its work or nothing. The work may be done more than once and must be
// the same each time.
type call struct {
	ctx  context.Context
	do   func(*Tx) error // runs in a transaction of its own. Nil if the call has a job
	err  error
	done chan struct{}
	// These fields are set if the call has a Job:
	kind    interface{ decide(*Tx) error } // its Kind
	key     string
	join    func()       // adds the job to those that kind decides next
	outcome func() error // see Job.Outcome
}

const (
	// maxJobs bounds the jobs that share a transaction: 1,000 batches of
	// one claim are some 25 ms at the 23 µs a claim of BenchmarkIssue.
	maxJobs = 1024
	// gatherFor bounds how long a transaction waits for calls that it expects.
	gatherFor = time.Millisecond
	// After the schema has refused a claim of a campaign, that campaign's claims have transactions of their
	// own for this long. Finding the refused claims costs other campaigns' claims some ten transactions.
	aloneFor = time.Second
)

// Update runs do in a transaction of its own and returns when the commit is on the disk. If ctx ends first,
// the transaction may still be committed.
func (d *DB) Update(ctx context.Context, do func(*Tx) error) error {
	if d.Dialect.Shared {
		return d.transact(ctx, false, do)
	}
	return d.await(&call{ctx: ctx, do: do, done: make(chan struct{})})
}

// Repeat is like Update, for a do that may run again after its commit and then finds its work done. On a server do runs
// again if the outcome of a commit is unknown.
func (d *DB) Repeat(ctx context.Context, do func(*Tx) error) error {
	if d.Dialect.Shared {
		return d.transact(ctx, true, do)
	}
	return d.Update(ctx, do)
}

// await hands a call to the writer and returns when it is answered.
func (d *DB) await(c *call) error {
	select {
	case d.calls <- c:
	case <-d.done:
		return errors.New("the ledger is closed")
	case <-c.ctx.Done():
		return fmt.Errorf("the ledger is busy: %w", c.ctx.Err())
	}
	select {
	case <-c.done:
		return c.err
	case <-d.done:
		// Run may have answered the call just before it returned.
		select {
		case <-c.done:
			return c.err
		default:
			return errors.New("the ledger is closed")
		}
	case <-c.ctx.Done():
		return fmt.Errorf("the ledger is slow: %w", c.ctx.Err())
	}
}

// Run writes to SQLite until ctx ends. Then it answers the waiting calls and returns.
func (d *DB) Run(ctx context.Context) error {
	defer close(d.done)
	w := &writer{db: d, tx: &Tx{Dialect: d.Dialect, Local: d.Local()}, late: time.NewTimer(gatherFor), alone: map[string]time.Time{}}
	w.late.Stop()
	defer w.disconnect()
	stop := w.startCheckpoints()
	defer stop()
	for c := w.next(ctx); c != nil; c = w.next(ctx) {
		if c.kind == nil {
			w.Change(c)
		} else {
			w.share(w.gather(c))
		}
	}
	return nil
}

// A writer is the state of DB.Run.
type writer struct {
	db     *DB
	tx     *Tx
	conn   *connection // nil if there is none
	left   *call       // arrived while jobs were gathered, and shares no transaction
	calls  []*call     // gathered
	within []*call     // that the transaction has yet to decide
	before int         // how many calls the previous transaction gathered
	late   *time.Timer // ends the wait for that many
	// alone is the time until which the jobs of a key share no transaction.
	alone map[string]time.Time

	checkpoints checkpointer
	log         log
}

// next returns the next call, or nil when ctx has ended and none is left.
func (w *writer) next(ctx context.Context) *call {
	if c := w.left; c != nil {
		w.left = nil
		return c
	}
	select {
	case c := <-w.db.calls:
		return c
	case <-ctx.Done():
		return w.waiting()
	}
}

// waiting returns the next call, or nil if none waits.
func (w *writer) waiting() *call {
	select {
	case c := <-w.db.calls:
		return c
	default:
		return nil
	}
}

// gather takes all waiting jobs, up to a call without a job: jobs that arrive after a change are decided after
// it. It waits for as many jobs as the previous transaction answered, less a tenth, because those callers are
// likely to come again. Otherwise crowds at many campaigns would be split into many small transactions, each
// with a sync and with the pages that all of them write. A job that arrives alone never waits; the first job
// after a crowd has gone waits once.
func (w *writer) gather(first *call) []*call {
	w.calls = append(w.calls[:0], first)
	expected := w.before - w.before/10
	if len(w.calls) < expected {
		w.late.Reset(gatherFor)
		defer w.late.Stop()
	}
	for len(w.calls) < maxJobs && w.left == nil {
		c := w.waiting()
		if c == nil && len(w.calls) < expected {
			select {
			case c = <-w.db.calls:
			case <-w.late.C:
				expected = 0
				continue
			}
		}
		if c == nil {
			break
		}
		if c.kind == nil {
			w.left = c
			break
		}
		w.calls = append(w.calls, c)
	}
	w.before = len(w.calls)
	return w.calls
}

// share decides jobs together, and answers their calls. The jobs of a key that had a refused job lately are decided
// one by one.
func (w *writer) share(calls []*call) {
	var alone []*call
	if len(w.alone) > 0 {
		now := time.Now() // one instant for all, so that the jobs of a key stay in order
		calls = slices.DeleteFunc(calls, func(c *call) bool {
			is := now.Before(w.alone[c.key])
			if is {
				alone = append(alone, c)
			} else {
				delete(w.alone, c.key)
			}
			return is
		})
	}
	w.together(calls)
	for n := range alone {
		w.together(alone[n : n+1])
	}
	clear(w.calls)
}

// together decides jobs in one transaction, and answers their calls. If the schema refuses the transaction, it is
// unknown which job is to blame. Then together runs the first half and after it the second half, so that the
// jobs of a key keep their order. It halves on until the refused jobs are alone.
func (w *writer) together(calls []*call) {
	w.within = w.within[:0]
	for _, c := range calls {
		if c.err = nobodyWaits(c.ctx); c.err == nil {
			w.within = append(w.within, c)
		}
	}
	if len(w.within) == 0 {
		answer(calls, nil)
		return
	}
	first := w.within[0].key
	remembered := w.tx.Local.Remembers(first)
	err := w.transaction(len(w.within), w.decide)
	if err == nil || w.unknown(err) {
		answer(calls, err)
		return
	}
	w.tx.Local.Drop(first)
	switch half := len(calls) / 2; {
	case half > 0:
		w.together(calls[:half])
		w.together(calls[half:])
	case remembered: // the row in memory may be stale: now it is read
		w.together(calls)
	default:
		w.alone[first] = time.Now().Add(aloneFor)
		answer(calls, err)
	}
}

// decide decides the jobs within a transaction, one kind after the other.
func (w *writer) decide(t *Tx) error {
	for len(w.within) > 0 {
		kind := w.within[0].kind
		w.within = slices.DeleteFunc(w.within, func(c *call) bool {
			is := c.kind == kind
			if is {
				c.join()
			}
			return is
		})
		if err := kind.decide(t); err != nil {
			return err
		}
	}
	return nil
}

// Change runs a call that has no job in a transaction of its own, so that a refusal concerns no other call. A
// call that the schema refuses runs a second time: then a recording looks for the reason.
func (w *writer) Change(c *call) {
	err := nobodyWaits(c.ctx)
	if err == nil {
		err = w.transaction(1, c.do)
	}
	if w.db.Dialect.Classify(err) == Refused {
		err = w.transaction(1, c.do)
	}
	answer([]*call{c}, err)
}

// answer sends the transaction's outcome to the callers.
func answer(calls []*call, err error) {
	for _, c := range calls {
		c.err = cmp.Or(c.err, err)
		if c.err == nil && c.kind != nil {
			c.err = c.outcome()
		}
		close(c.done)
	}
}

func nobodyWaits(ctx context.Context) error {
	return Wrap(ctx.Err(), "nobody waits for the ledger any more")
}
