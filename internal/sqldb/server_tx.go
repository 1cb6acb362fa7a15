package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

const (
	connectTimeout = 5 * time.Second
	// lockTimeout is how long a transaction waits for another transaction's locks before it runs again. It equals
	// an Issuer's default time for a batch.
	lockTimeout = 5 * time.Second
	// transactionTimeout bounds a transaction with all its repeats, unless the caller sets a shorter time. It is
	// twice an Issuer's default time for a batch.
	transactionTimeout = 10 * time.Second
	// maxBackoff bounds the pause before a transaction runs again. A batch of 512 takes about 10 ms, so the
	// conflicting transaction has ended by then.
	maxBackoff = 64 * time.Millisecond
	// reconnects is how often a transaction runs again because its connection was lost: once for a connection
	// that was idle too long, and once in reserve. More would delay the error of a server that is down.
	reconnects = 2
)

// A serverTx is one transaction on a database server.
type serverTx struct {
	ctx     context.Context
	tx      *sql.Tx
	dialect *Dialect
}

// classifyConnection returns the verdict on an error that is not a message of the server.
func classifyConnection(err error) verdict {
	var network net.Error
	switch {
	case err == nil:
		return NotOurs
	case errors.As(err, &network), errors.Is(err, ErrUnknown), errors.Is(err, errDriver), errors.Is(err, errStandby),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone), errors.Is(err, driver.ErrBadConn),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unreachable
	}
	return NotOurs
}

// errDriver marks an error of a statement that did not come from the server, so that it is not mistaken for a job's
// own error.
var errDriver = errors.New("the connection to the ledger failed")

func (s *serverTx) Exec(query string, args ...any) (int64, error) {
	r, err := s.tx.ExecContext(s.ctx, s.dialect.Rebind(query), args...)
	if err != nil {
		return 0, s.dialect.explain(query, err)
	}
	return r.RowsAffected()
}

func (s *serverTx) Row(query string, args ...any) *row {
	return &row{
		row:     s.tx.QueryRowContext(s.ctx, s.dialect.Rebind(query), args...),
		explain: func(err error) error { return s.dialect.explain(query, err) },
	}
}

func (s *serverTx) Query(query string, args ...any) (*sql.Rows, error) {
	rows, err := s.tx.QueryContext(s.ctx, s.dialect.Rebind(query), args...)
	return rows, s.dialect.explain(query, err)
}

// explain adds to an error of a query which right the user lacks, if the error is about a right.
func (d *Dialect) explain(query string, err error) error {
	switch {
	case err == nil || !d.Shared:
		return err
	case d.Classify(err) == NotOurs:
		return fmt.Errorf("%w: %w", errDriver, err)
	case !d.denied(err):
		return err
	}
	verb, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	if strings.Contains(query, d.ForUpdate) {
		verb += " and UPDATE"
	}
	return fmt.Errorf("the ledger's database user lacks the right to %s: grant SELECT, INSERT and UPDATE on all tables of the ledger: %w", verb, err)
}

// transact runs a job in a transaction of its own. It runs the job again as long as the server reports that it rolled
// the transaction back because of another transaction. repeatable is true if a job that runs again after its commit
// finds its work done. Then transact also runs it again if the outcome of the commit is unknown.
func (d *DB) transact(ctx context.Context, repeatable bool, do func(*Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	started := time.Now()
	t, err := d.attempts(ctx, repeatable, do)
	ours := d.Dialect.Classify(err) != NotOurs
	if d.OnCommit != nil && (ours || err == nil && t.writes > 0) {
		d.OnCommit(1, time.Since(started), err)
	}
	if err == nil {
		t.Local.Committed()
	} else if ours {
		err = fmt.Errorf("write to the ledger: %w", err)
	}
	return err
}

// attempts runs a job until it is committed or finally fails, or ctx ends.
func (d *DB) attempts(ctx context.Context, repeatable bool, do func(*Tx) error) (*Tx, error) {
	lost, refusals := 0, 0
	for backoff := time.Millisecond; ; backoff = min(2*backoff, maxBackoff) {
		t, err := d.attempt(ctx, do)
		if err == nil || ctx.Err() != nil {
			return t, err
		}
		unknown := errors.Is(err, ErrUnknown)
		switch d.Dialect.Classify(err) {
		case again:
		case Refused:
			// Another node may have written a row after the job read and before it wrote. The second run reads that row.
			if refusals++; refusals > 1 {
				return t, err
			}
		case unreachable:
			if lost++; lost > reconnects || unknown && !repeatable {
				return t, err
			}
		default:
			return t, err
		}
		wait := time.NewTimer(rand.N(backoff))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return t, err
		}
	}
}

// ErrUnknown means that COMMIT was sent and not answered.
var ErrUnknown = errors.New("whether it was committed is unknown")

// readCommitted returns the options of every transaction that writes.
func readCommitted() *sql.TxOptions { return &sql.TxOptions{Isolation: sql.LevelReadCommitted} }

// attempt runs a job in one transaction. It sets the isolation level, so that the server's default does not change
// what the job reads.
func (d *DB) attempt(ctx context.Context, do func(*Tx) error) (*Tx, error) {
	began, err := d.Write.BeginTx(ctx, readCommitted())
	if err != nil {
		return nil, d.Dialect.explain("BEGIN", err)
	}
	t := &Tx{Statements: &serverTx{ctx, began, d.Dialect}, Dialect: d.Dialect, Local: d.Local()}
	if err = do(t); err == nil {
		err = t.Local.Flush(t)
	}
	if err != nil {
		_ = began.Rollback()
		return t, err
	}
	err = began.Commit()
	switch d.Dialect.Classify(err) {
	case NotOurs, unreachable:
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
	}
	return t, err
}
