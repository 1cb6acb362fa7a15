package ledger

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
	db A
	d  *dialect
}

// QueryContext is that of sql.DB and of sql.Tx.
func (r *reader[A]) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return r.db.QueryContext(ctx, r.d.rebind(query), args...)
}

// QueryRowContext is that of sql.DB and of sql.Tx.
func (r *reader[A]) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return r.db.QueryRowContext(ctx, r.d.rebind(query), args...)
}

// A pool holds the connections of one kind of reads.
type pool struct{ reader[*sql.DB] }

// atOnce calls read with a snapshot of what was committed at one instant.
func (p *pool) atOnce(ctx context.Context, read func(*snapshot) error) error {
	o := &sql.TxOptions{ReadOnly: true}
	if p.d.shared {
		o.Isolation = sql.LevelRepeatableRead
	}
	tx, err := p.db.BeginTx(ctx, o)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	return read(&snapshot{tx, p.d})
}

// Close is that of sql.DB.
func (p *pool) Close() error { return p.db.Close() }

// A snapshot is a read-only transaction of a pool.
type snapshot = reader[*sql.Tx]

// wrap adds to an error what was attempted. Nil stays nil.
func wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

// A scan is the Scan method of sql.Rows.
type scan func(into ...any) error

// eachRow calls do with the scan of every row of a query's answer, until do returns an error.
func eachRow(rows *sql.Rows, err error, do func(scan) error) error {
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

// allRows returns what read returns for each row of a query's answer.
func allRows[V any](rows *sql.Rows, err error, read func(scan) (V, error)) (all []V, _ error) {
	err = eachRow(rows, err, func(take scan) error {
		v, err := read(take)
		if err == nil {
			all = append(all, v)
		}
		return err
	})
	return all, err
}

// one reads a row of one column.
func one[V any](take scan) (v V, err error) {
	err = take(&v)
	return v, err
}
