package sqldb

import (
	"context"
	"database/sql"
	"fmt"
)

// An asked has the methods for queries of sql.DB and sql.Tx.
type asked interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A reader runs queries on a sql.DB or a sql.Tx. Queries have a ? for each argument, in every dialect.
type reader[A asked] struct {
	DB A
	d  *Dialect
}

// QueryContext calls QueryContext of the sql.DB or sql.Tx.
func (r *reader[A]) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return r.DB.QueryContext(ctx, r.d.Rebind(query), args...)
}

// QueryRowContext calls QueryRowContext of the sql.DB or sql.Tx.
func (r *reader[A]) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return r.DB.QueryRowContext(ctx, r.d.Rebind(query), args...)
}

// A Pool holds the connections of one kind of reads. It reads nothing while SQLite's file is not where it was.
type Pool struct {
	reader[*sql.DB]
	files *openFiles
}

// QueryContext calls QueryContext of the sql.DB.
func (p *Pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := p.files.last(); err != nil {
		return nil, err
	}
	return p.reader.QueryContext(ctx, query, args...)
}

// QueryRowContext calls QueryRowContext of the sql.DB.
func (p *Pool) QueryRowContext(ctx context.Context, query string, args ...any) *row {
	if err := p.files.last(); err != nil {
		return &row{err: err}
	}
	return &row{row: p.reader.QueryRowContext(ctx, query, args...)}
}

// AtOnce calls read with a snapshot of the committed data.
func (p *Pool) AtOnce(ctx context.Context, read func(*Snapshot) error) error {
	o := &sql.TxOptions{ReadOnly: true}
	if p.d.Shared {
		o.Isolation = sql.LevelRepeatableRead
	}
	err := p.files.last()
	var tx *sql.Tx
	if err == nil {
		tx, err = p.DB.BeginTx(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	return read(&Snapshot{tx, p.d})
}

// Close closes the pool's connections.
func (p *Pool) Close() error { return p.DB.Close() }

// A Snapshot is a read-only transaction of a pool.
type Snapshot = reader[*sql.Tx]

// Wrap adds a description of the attempted action to an error. It returns nil for nil.
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

// AllRows calls read for each row of a query's answer, and returns the results.
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
