package ledger

import (
	"context"
	"database/sql"
)

// An asked is a sql.DB or a sql.Tx, as far as both are read.
type asked interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A reader asks what it is made of. Its queries have ? for an argument in every dialect.
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

// A pool is connections that read.
type pool struct{ reader[*sql.DB] }

// BeginTx begins a transaction that reads what was committed at one instant.
func (p *pool) BeginTx(ctx context.Context, o *sql.TxOptions) (*snapshot, error) {
	if p.d.shared {
		o.Isolation = sql.LevelRepeatableRead
	}
	tx, err := p.db.BeginTx(ctx, o)
	return &snapshot{reader[*sql.Tx]{tx, p.d}}, err
}

// Close is that of sql.DB.
func (p *pool) Close() error { return p.db.Close() }

// A snapshot is a transaction of a pool.
type snapshot struct{ reader[*sql.Tx] }

// Rollback is that of sql.Tx.
func (s *snapshot) Rollback() error { return s.db.Rollback() }
