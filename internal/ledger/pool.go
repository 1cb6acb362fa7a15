package ledger

import (
	"context"
	"database/sql"
)

// A pool is connections that read. Its queries have ? for an argument in every dialect.
type pool struct {
	db *sql.DB
	d  *dialect
}

// QueryContext is that of sql.DB.
func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.db.QueryContext(ctx, p.d.rebind(query), args...)
}

// QueryRowContext is that of sql.DB.
func (p *pool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return p.db.QueryRowContext(ctx, p.d.rebind(query), args...)
}

// BeginTx begins a transaction that reads what was committed at one instant.
func (p *pool) BeginTx(ctx context.Context, o *sql.TxOptions) (*snapshot, error) {
	if p.d.shared {
		o.Isolation = sql.LevelRepeatableRead
	}
	tx, err := p.db.BeginTx(ctx, o)
	return &snapshot{tx, p.d}, err
}

// Close is that of sql.DB.
func (p *pool) Close() error { return p.db.Close() }

// A snapshot is a transaction of a pool.
type snapshot struct {
	tx *sql.Tx
	d  *dialect
}

// QueryContext is that of sql.Tx.
func (s *snapshot) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.tx.QueryContext(ctx, s.d.rebind(query), args...)
}

// QueryRowContext is that of sql.Tx.
func (s *snapshot) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return s.tx.QueryRowContext(ctx, s.d.rebind(query), args...)
}

// Rollback is that of sql.Tx.
func (s *snapshot) Rollback() error { return s.tx.Rollback() }
