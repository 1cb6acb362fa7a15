package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A job is what one caller has the writer do: all or nothing of it is committed. It may be
// run more than once and must do the same each time.
type job struct {
	ctx    context.Context
	claims *claims         // to be decided, in one transaction with other callers' claims
	do     func(*tx) error // anything else, in a transaction of its own
	err    error
	done   chan struct{}
}

const (
	// maxJobs bounds the calls that share a transaction: 1,000 batches of
	// one claim are some 25 ms at the 23 µs a claim of BenchmarkIssue.
	maxJobs = 1024
	// maxStocks bounds the campaigns whose rows are kept in memory: about 3 MB.
	maxStocks = 10_000
	// gatherFor bounds how long a transaction waits for jobs that it expects.
	gatherFor = time.Millisecond
	// aloneFor is how long the claims of a campaign share no transaction after the schema refused
	// some of them: to find out whose claims it refuses costs the others' some ten transactions.
	aloneFor = time.Second
)

// update runs do in a transaction of its own and returns when that is on the disk. If ctx
// ends first, it may yet be committed.
func (l *Ledger) update(ctx context.Context, do func(*tx) error) error {
	if l.dialect.shared {
		return l.transact(ctx, false, do)
	}
	return l.await(&job{ctx: ctx, do: do, done: make(chan struct{})})
}

// repeat is update for what, run again after it was committed, finds what it
// did: on a server it is run again where the outcome is not known.
func (l *Ledger) repeat(ctx context.Context, do func(*tx) error) error {
	if l.dialect.shared {
		return l.transact(ctx, true, do)
	}
	return l.update(ctx, do)
}

// await hands a job to the writer and returns when it is done.
func (l *Ledger) await(j *job) error {
	select {
	case l.jobs <- j:
	case <-l.done:
		return errors.New("the ledger is closed")
	case <-j.ctx.Done():
		return fmt.Errorf("the ledger is busy: %w", j.ctx.Err())
	}
	select {
	case <-j.done:
		return j.err
	case <-l.done:
		// Run may have answered it just before it returned.
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

// Run writes, until ctx ends; then it finishes what waits and returns.
func (l *Ledger) Run(ctx context.Context) error {
	defer close(l.done)
	if l.dialect.shared {
		return l.watchFacts(ctx)
	}
	w := &writer{ledger: l, tx: newTx(l.dialect), late: time.NewTimer(gatherFor), alone: map[firstcome.CampaignID]time.Time{}}
	w.late.Stop()
	defer w.disconnect()
	stop := w.startCheckpoints()
	defer stop()
	for j := w.next(ctx); j != nil; j = w.next(ctx) {
		if j.claims == nil {
			w.change(j)
		} else {
			w.claim(w.gather(j))
		}
	}
	return nil
}

// A writer is the state of Run.
type writer struct {
	ledger *Ledger
	tx     *tx
	conn   *connection // nil: there is none
	left   *job        // came while claims gathered, and shares no transaction
	jobs   []*job      // gathered
	claims []*claims   // of a transaction
	before int         // jobs that gathered before
	late   *time.Timer // ends the wait for as many
	// alone says until when a campaign's claims share no transaction.
	alone map[firstcome.CampaignID]time.Time

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
	case j := <-w.ledger.jobs:
		return j
	case <-ctx.Done():
		return w.waiting()
	}
}

// waiting returns the next job, or nil if none is there.
func (w *writer) waiting() *job {
	select {
	case j := <-w.ledger.jobs:
		return j
	default:
		return nil
	}
}

// gather takes all claims that wait, up to a job of another kind: claims behind a change
// are decided behind it. While most callers that the previous transaction answered have not come again, it
// waits for them: otherwise crowds at many campaigns would be split into many small transactions, each
// with a sync and with the pages that all of them write. A claim that comes alone never waits; one that
// comes when a crowd has gone waits once.
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
			case j = <-w.ledger.jobs:
			case <-w.late.C:
				expected = 0
				continue
			}
		}
		if j == nil {
			break
		}
		if j.claims == nil {
			w.left = j
			break
		}
		w.jobs = append(w.jobs, j)
	}
	w.before = len(w.jobs)
	return w.jobs
}

// claim decides claims, and answers them: together, but for those of campaigns of which some were refused.
func (w *writer) claim(jobs []*job) {
	var alone []*job
	if len(w.alone) > 0 {
		now := time.Now() // one for all, so that the claims of a campaign stay in order
		jobs = slices.DeleteFunc(jobs, func(j *job) bool {
			is := now.Before(w.alone[j.claims.id])
			if is {
				alone = append(alone, j)
			} else {
				delete(w.alone, j.claims.id)
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

// together decides claims in one transaction, and answers them. If that is refused, it is unknown which claim
// caused it. Then each half has a transaction, the first before the second so that a campaign's claims keep
// their order, until the refused claims are alone.
func (w *writer) together(jobs []*job) {
	w.claims = w.claims[:0]
	for _, j := range jobs {
		if j.err = nobodyWaits(j.ctx); j.err == nil {
			w.claims = append(w.claims, j.claims)
		}
	}
	if len(w.claims) == 0 {
		answer(jobs, nil)
		return
	}
	first := w.claims[0].id
	_, remembered := w.tx.stocks[first]
	err := w.transaction(len(w.claims), func(t *tx) error { return w.ledger.decideAll(t, w.claims) })
	if err == nil || w.unknown(err) {
		answer(jobs, err)
		return
	}
	delete(w.tx.stocks, first)
	switch half := len(jobs) / 2; {
	case half > 0:
		w.together(jobs[:half])
		w.together(jobs[half:])
	case remembered: // perhaps not as it is: now it is read
		w.together(jobs)
	default:
		w.alone[first] = time.Now().Add(aloneFor)
		answer(jobs, err)
	}
}

// change runs any other job in a transaction of its own, so that its refusal is its own. What the schema refuses
// runs twice: then a recording looks why.
func (w *writer) change(j *job) {
	err := nobodyWaits(j.ctx)
	if err == nil {
		err = w.transaction(1, j.do)
	}
	if w.ledger.dialect.classify(err) == refused {
		err = w.transaction(1, j.do)
	}
	answer([]*job{j}, err)
}

// answer tells the callers what became of the transaction.
func answer(jobs []*job, err error) {
	for _, j := range jobs {
		j.err = cmp.Or(j.err, err)
		if j.err == nil && j.claims != nil {
			j.err = j.claims.err
		}
		close(j.done)
	}
}

func nobodyWaits(ctx context.Context) error {
	return wrap(ctx.Err(), "nobody waits for the ledger any more")
}
