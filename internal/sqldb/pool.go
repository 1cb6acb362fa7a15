package sqldb

import (
	"context"
	"database/sql"
	"fmt"
)

// An asked is what a sql.DB and a sql.Tx have in common for reading.
type asked interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A reader runs queries on what it wraps. Queries have a ? for each argument, in every dialect.
type reader[A asked] struct {
	DB A
	d  *Dialect
}

// QueryContext is that of sql.DB and of sql.Tx.
func (r *reader[A]) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return r.DB.QueryContext(ctx, r.d.Rebind(query), args...)
}

// QueryRowContext is that of sql.DB and of sql.Tx.
func (r *reader[A]) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return r.DB.QueryRowContext(ctx, r.d.Rebind(query), args...)
}

// A Pool holds the connections of one kind of reads.
type Pool struct{ reader[*sql.DB] }

// AtOnce calls read with a snapshot of what was committed at one instant.
func (p *Pool) AtOnce(ctx context.Context, read func(*Snapshot) error) error {
	o := &sql.TxOptions{ReadOnly: true}
	if p.d.Shared {
		o.Isolation = sql.LevelRepeatableRead
	}
	tx, err := p.DB.BeginTx(ctx, o)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	return read(&Snapshot{tx, p.d})
}

// Close is that of sql.DB.
func (p *Pool) Close() error { return p.DB.Close() }

// A Snapshot is a read-only transaction of a pool.
type Snapshot = reader[*sql.Tx]

// Wrap adds to an error what was attempted. Nil stays nil.
func Wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

// A Scan is the Scan method of sql.Rows.
type Scan func(into ...any) error

// EachRow calls do with the scan of every row of a query's answer, until do returns an error.
func EachRow(rows *sql.Rows, err error, do func(Scan) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	take := rows.Scan
	for rows.Next() {
		if err := do(take); err != nil {
			return err
		}
	}
	return rows.Err()
}

// AllRows returns what read returns for each row of a query's answer.
func AllRows[V any](rows *sql.Rows, err error, read func(Scan) (V, error)) (all []V, _ error) {
	err = EachRow(rows, err, func(take Scan) error {
		v, err := read(take)
		if err == nil {
			all = append(all, v)
		}
		return err
	})
	return all, err
}

// One reads a row of one column.
func One[V any](take Scan) (v V, err error) {
	err = take(&v)
	return v, err
}
