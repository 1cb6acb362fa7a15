package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A job is work of one caller for the writer, which commits all of it or nothing. A job may run more than
// once and must do the same each time.
type job struct {
	ctx  context.Context
	work Shared          // runs in one transaction with other callers' work. If nil, do runs instead
	do   func(*Tx) error // runs in a transaction of its own
	err  error
	done chan struct{}
}

// A Shared is work that one transaction may do for several callers.
type Shared interface {
	Key() string    // the subject, such as a campaign: work with the same key keeps its order
	Outcome() error // why nothing was done for this caller although the transaction is committed, or nil
}

const (
	// maxJobs bounds the calls that share a transaction: 1,000 batches of
	// one claim are some 25 ms at the 23 µs a claim of BenchmarkIssue.
	maxJobs = 1024
	// gatherFor bounds how long a transaction waits for jobs that it expects.
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
	return d.await(&job{ctx: ctx, do: do, done: make(chan struct{})})
}

// Share passes work to the writer, which may do it in one transaction with other callers' work. Share returns when the
// commit is on the disk.
func (d *DB) Share(ctx context.Context, work Shared) error {
	return d.await(&job{ctx: ctx, work: work, done: make(chan struct{})})
}

// Repeat is like Update, for a do that may run again after its commit and then finds its work done. On a server do runs
// again if the outcome of a commit is unknown.
func (d *DB) Repeat(ctx context.Context, do func(*Tx) error) error {
	if d.Dialect.Shared {
		return d.transact(ctx, true, do)
	}
	return d.Update(ctx, do)
}

// await hands a job to the writer and returns when the job is done.
func (d *DB) await(j *job) error {
	select {
	case d.jobs <- j:
	case <-d.done:
		return errors.New("the ledger is closed")
	case <-j.ctx.Done():
		return fmt.Errorf("the ledger is busy: %w", j.ctx.Err())
	}
	select {
	case <-j.done:
		return j.err
	case <-d.done:
		// run may have answered the job just before it returned.
		select {
		case <-j.done:
			return j.err
		default:
			return errors.New("the ledger is closed")
		}
	case <-j.ctx.Done():
		return fmt.Errorf("the ledger is slow: %w", j.ctx.Err())
	}
}

// Run writes until ctx ends. Then it finishes the waiting jobs and returns.
func (d *DB) Run(ctx context.Context) error {
	defer close(d.done)
	if d.Dialect.Shared {
		return d.Watch(ctx)
	}
	w := &writer{db: d, tx: &Tx{Dialect: d.Dialect, Local: d.Local()}, late: time.NewTimer(gatherFor), alone: map[string]time.Time{}}
	w.late.Stop()
	defer w.disconnect()
	stop := w.startCheckpoints()
	defer stop()
	for j := w.next(ctx); j != nil; j = w.next(ctx) {
		if j.work == nil {
			w.Change(j)
		} else {
			w.claim(w.gather(j))
		}
	}
	return nil
}

// A writer is the state of DB.Run.
type writer struct {
	db     *DB
	tx     *Tx
	conn   *connection // nil if there is none
	left   *job        // arrived while claims were gathered, and shares no transaction
	jobs   []*job      // gathered
	works  []Shared    // of a transaction
	before int         // how many jobs the previous transaction gathered
	late   *time.Timer // ends the wait for that many
	// alone is the time until which a campaign's claims share no transaction.
	alone map[string]time.Time

	checkpoints checkpointer
	log         log
}

// next returns the next job, or nil when ctx has ended and none is left.
func (w *writer) next(ctx context.Context) *job {
	if j := w.left; j != nil {
		w.left = nil
		return j
	}
	select {
	case j := <-w.db.jobs:
		return j
	case <-ctx.Done():
		return w.waiting()
	}
}

// waiting returns the next job, or nil if none waits.
func (w *writer) waiting() *job {
	select {
	case j := <-w.db.jobs:
		return j
	default:
		return nil
	}
}

// gather takes all waiting claims, up to a job of another kind: claims that arrive after a change are decided
// after it. It waits for as many claims as the previous transaction answered, less a tenth, because those
// callers are likely to come again. Otherwise crowds at many campaigns would be split into many small
// transactions, each with a sync and with the pages that all of them write. A claim that arrives alone never
// waits; the first claim after a crowd has gone waits once.
func (w *writer) gather(first *job) []*job {
	w.jobs = append(w.jobs[:0], first)
	expected := w.before - w.before/10
	if len(w.jobs) < expected {
		w.late.Reset(gatherFor)
		defer w.late.Stop()
	}
	for len(w.jobs) < maxJobs && w.left == nil {
		j := w.waiting()
		if j == nil && len(w.jobs) < expected {
			select {
			case j = <-w.db.jobs:
			case <-w.late.C:
				expected = 0
				continue
			}
		}
		if j == nil {
			break
		}
		if j.work == nil {
			w.left = j
			break
		}
		w.jobs = append(w.jobs, j)
	}
	w.before = len(w.jobs)
	return w.jobs
}

// claim decides claims together, and answers them. The claims of a campaign that had a refused claim lately
// are decided one by one.
func (w *writer) claim(jobs []*job) {
	var alone []*job
	if len(w.alone) > 0 {
		now := time.Now() // one instant for all, so that the claims of a campaign stay in order
		jobs = slices.DeleteFunc(jobs, func(j *job) bool {
			is := now.Before(w.alone[j.work.Key()])
			if is {
				alone = append(alone, j)
			} else {
				delete(w.alone, j.work.Key())
			}
			return is
		})
	}
	w.together(jobs)
	for n := range alone {
		w.together(alone[n : n+1])
	}
	clear(w.jobs)
}

// together decides claims in one transaction, and answers them. If the schema refuses the transaction, it is
// unknown which claim is to blame. Then together runs the first half and after it the second half, so that a
// campaign's claims keep their order. It halves on until the refused claims are alone.
func (w *writer) together(jobs []*job) {
	w.works = w.works[:0]
	for _, j := range jobs {
		if j.err = nobodyWaits(j.ctx); j.err == nil {
			w.works = append(w.works, j.work)
		}
	}
	if len(w.works) == 0 {
		answer(jobs, nil)
		return
	}
	first := w.works[0].Key()
	remembered := w.tx.Local.Remembers(first)
	err := w.transaction(len(w.works), func(t *Tx) error { return w.db.Together(t, w.works) })
	if err == nil || w.unknown(err) {
		answer(jobs, err)
		return
	}
	w.tx.Local.Drop(first)
	switch half := len(jobs) / 2; {
	case half > 0:
		w.together(jobs[:half])
		w.together(jobs[half:])
	case remembered: // the row in memory may be stale: now it is read
		w.together(jobs)
	default:
		w.alone[first] = time.Now().Add(aloneFor)
		answer(jobs, err)
	}
}

// Change runs a job that is not a claim in a transaction of its own, so that a refusal concerns no other job. A
// job that the schema refuses runs a second time: then a recording looks for the reason.
func (w *writer) Change(j *job) {
	err := nobodyWaits(j.ctx)
	if err == nil {
		err = w.transaction(1, j.do)
	}
	if w.db.Dialect.Classify(err) == Refused {
		err = w.transaction(1, j.do)
	}
	answer([]*job{j}, err)
}

// answer sends the transaction's outcome to the callers.
func answer(jobs []*job, err error) {
	for _, j := range jobs {
		j.err = cmp.Or(j.err, err)
		if j.err == nil && j.work != nil {
			j.err = j.work.Outcome()
		}
		close(j.done)
	}
}

func nobodyWaits(ctx context.Context) error {
	return Wrap(ctx.Err(), "nobody waits for the ledger any more")
}
