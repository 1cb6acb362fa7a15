package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// A job is one caller's writes: all or none of them are committed. It may be run
// more than once and must do the same each time.
type job struct {
	ctx  context.Context
	do   func(*tx) error
	err  error
	done chan struct{}
}

const (
	// maxJobs bounds what one transaction takes from all campaigns: 1,000 batches of
	// one claim are some 25 ms at the 23 µs a claim of BenchmarkIssue.
	maxJobs = 1024
	// maxStocks bounds the campaigns whose rows are kept in memory: about 3 MB.
	maxStocks = 10_000
	// gatherFor bounds how long a transaction waits for jobs that it expects.
	gatherFor = time.Millisecond
	// carefulFor is the number of transactions in which users are looked up before
	// coupons are inserted, after an insert without a look was refused: repeated
	// claims come in crowds.
	carefulFor = 64
)

// update runs a job in a transaction and returns when it is on the disk: on SQLite
// the writer's, else one of its own. If ctx ends first, the job may yet be committed.
func (l *Ledger) update(ctx context.Context, do func(*tx) error) error {
	if l.dialect.shared {
		return l.transact(ctx, false, do)
	}
	j := &job{ctx: ctx, do: do, done: make(chan struct{})}
	select {
	case l.jobs <- j: // mostly there is room, and no need to look at more
	default:
		select {
		case l.jobs <- j:
		case <-l.done:
			return errors.New("the ledger is closed")
		case <-ctx.Done():
			return fmt.Errorf("the ledger is busy: %w", ctx.Err())
		}
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
	case <-ctx.Done():
		return fmt.Errorf("the ledger is slow: %w", ctx.Err())
	}
}

// repeat is update for a job that, run again after it was committed, finds what it
// did: on a server it is run again where the outcome is not known.
func (l *Ledger) repeat(ctx context.Context, do func(*tx) error) error {
	if l.dialect.shared {
		return l.transact(ctx, true, do)
	}
	return l.update(ctx, do)
}

// Run writes, until ctx ends; then it finishes what waits and returns.
func (l *Ledger) Run(ctx context.Context) error {
	defer close(l.done)
	if l.dialect.shared {
		return l.watchFacts(ctx)
	}
	w := &writer{ledger: l, tx: newTx(l.dialect), late: time.NewTimer(gatherFor)}
	w.late.Stop()
	defer w.disconnect()
	stop := w.startCheckpoints()
	defer stop()
	for {
		select {
		case j := <-l.jobs:
			w.group(j)
		case <-ctx.Done():
			for {
				select {
				case j := <-l.jobs:
					w.group(j)
				default:
					return nil
				}
			}
		}
	}
}

// A writer is the state of Run.
type writer struct {
	ledger  *Ledger
	tx      *tx
	jobs    []*job
	before  int         // jobs of the transaction before
	late    *time.Timer // ends the wait for as many
	careful int         // transactions left in which users are looked up first

	checkpoints checkpointer
	log         log
}

// group takes the first job and those that gather, and answers them.
func (w *writer) group(first *job) {
	w.jobs = append(w.jobs[:0], first)
	w.gather()
	started := time.Now()
	err := w.commit()
	if w.ledger.onCommit != nil && (w.tx.writes > 0 || err != nil) {
		w.ledger.onCommit(len(w.jobs), time.Since(started), err)
	}
	if err == nil {
		w.ledger.announce(w.tx.touched)
	}
	for _, j := range w.jobs {
		if err != nil {
			j.err = err
		}
		close(j.done)
	}
	clear(w.jobs)
	w.written(err != nil)
}

// gather takes all jobs that wait. While most of those whom the transaction before answered have
// not come again, it waits for them: crowds at many campaigns would else be split into many small
// transactions, each with a sync and with the pages that all of them write. Who comes alone never
// waits; who comes when a crowd has gone does so once.
func (w *writer) gather() {
	defer func() { w.before = len(w.jobs) }()
	expected := w.before - w.before/10
	if len(w.jobs) < expected {
		w.late.Reset(gatherFor)
		defer w.late.Stop()
	}
	for len(w.jobs) < maxJobs {
		if len(w.jobs) < expected {
			select {
			case j := <-w.ledger.jobs:
				w.jobs = append(w.jobs, j)
			case <-w.late.C:
				expected = 0
			}
			continue
		}
		select {
		case j := <-w.ledger.jobs:
			w.jobs = append(w.jobs, j)
		default:
			return
		}
	}
}

// errAgain says that a job was refused after it wrote, and that the jobs have
// to be run again with savepoints.
var errAgain = errors.New("run again with savepoints")

// commit runs the jobs in one transaction. An error is every job's; the outcome
// is then unknown.
func (w *writer) commit() error {
	err := w.attempt(false)
	if errors.Is(err, errAgain) {
		w.careful = carefulFor
		err = w.attempt(true)
	}
	if w.careful > 0 {
		w.careful--
	}
	if err != nil {
		// The connection may be in any state: the next transaction gets a new one.
		w.disconnect()
		return fmt.Errorf("write to the ledger: %w", err)
	}
	return nil
}

// attempt runs the jobs once, with a savepoint each or without.
func (w *writer) attempt(savepoints bool) error {
	if err := w.begin(savepoints); err != nil {
		return err
	}
	for _, j := range w.jobs {
		if err := w.run(j, savepoints); err != nil {
			w.rollback()
			return err
		}
	}
	err := w.tx.flush()
	if err != nil && !isMachine(err) {
		err = errAgain
	}
	if err == nil {
		_, err = w.tx.exec(`COMMIT`)
	}
	if err != nil {
		w.rollback()
	}
	return err
}

func (w *writer) begin(savepoints bool) error {
	if w.tx.conn == nil {
		conn, err := w.ledger.write.Conn(context.Background())
		if err != nil {
			return err
		}
		w.tx.conn = conn
	}
	if len(w.tx.stocks) > maxStocks {
		clear(w.tx.stocks)
	}
	w.tx.lookFirst = savepoints || w.careful > 0
	w.tx.savepoints = savepoints
	w.tx.writes = 0
	clear(w.tx.touched)
	_, err := w.tx.exec(`BEGIN IMMEDIATE`)
	return err
}

// run runs one job. A refusal that left nothing behind is the job's own error;
// the error returned ends the attempt.
func (w *writer) run(j *job, savepoint bool) error {
	j.err = nil
	if err := j.ctx.Err(); err != nil {
		j.err = fmt.Errorf("nobody waits for the ledger any more: %w", err)
		return nil
	}
	before := w.tx.writes
	if savepoint {
		if _, err := w.tx.exec(`SAVEPOINT job`); err != nil {
			return err
		}
	}
	err := j.do(w.tx)
	if savepoint && err == nil {
		err = w.tx.flush()
	}
	switch {
	case isMachine(err):
		return err
	case savepoint:
		j.err = err
		return w.endSavepoint(err == nil)
	case err != nil && w.tx.writes > before:
		return errAgain
	}
	j.err = err
	return nil
}

func (w *writer) endSavepoint(keep bool) error {
	if !keep {
		w.tx.reset()
		if _, err := w.tx.exec(`ROLLBACK TO job`); err != nil {
			return err
		}
	}
	_, err := w.tx.exec(`RELEASE job`)
	return err
}

// rollback ends a transaction that SQLite may have rolled back by itself.
func (w *writer) rollback() {
	w.tx.reset()
	_, _ = w.tx.exec(`ROLLBACK`)
}

// disconnect closes the connection; one that is only given back would keep its state.
func (w *writer) disconnect() {
	for query, s := range w.tx.stmts {
		_ = s.Close()
		delete(w.tx.stmts, query)
	}
	if w.tx.conn != nil {
		_ = w.tx.conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = w.tx.conn.Close()
		w.tx.conn = nil
	}
}
