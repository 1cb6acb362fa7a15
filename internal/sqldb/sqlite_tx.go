package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

// unknown reports whether it is unknown, after an error, if the transaction was committed.
func (w *writer) unknown(err error) bool { return w.db.Dialect.Classify(err) == unreachable }

// transaction runs do, which does the work of the given number of jobs, and commits all of it or nothing.
func (w *writer) transaction(jobs int, do func(*Tx) error) error {
	started := time.Now()
	err := w.Begin()
	if err == nil {
		err = do(w.tx)
	}
	if err == nil {
		err = w.tx.Local.Flush(w.tx)
	}
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		w.tx.Local.Undone()
		if w.conn != nil { // SQLite may already have rolled back by itself
			_, _ = w.conn.Exec(`ROLLBACK`)
		}
	}
	unknown := w.unknown(err)
	if unknown {
		// The connection may be in any state, so the next transaction gets a new one.
		w.disconnect()
		err = fmt.Errorf("write to the ledger: %w", err)
	}
	if w.db.OnCommit != nil && (unknown || err == nil && w.tx.writes > 0) {
		w.db.OnCommit(jobs, time.Since(started), err)
	}
	if err == nil {
		w.tx.Local.Committed()
	}
	w.written(unknown)
	return err
}

func (w *writer) Begin() error {
	w.tx.writes = 0
	err := w.db.files.last()
	if err != nil || w.conn == nil { // a new connection would make a new file under the name
		err = w.db.files.look()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errDriver, err)
	}
	if w.conn == nil {
		conn, err := w.db.Write.Conn(context.Background())
		if err != nil {
			return fmt.Errorf("%w: %w", errDriver, err)
		}
		w.conn = &connection{conn: conn, prepared: map[string]*sql.Stmt{}}
		w.tx.Statements = w.conn
	}
	_, err = w.conn.Exec(`BEGIN IMMEDIATE`)
	return err
}

func (w *writer) commit() error {
	_, err := w.conn.Exec(`COMMIT`)
	if err == nil {
		err = w.db.files.look() // it is on the disk, but perhaps not where the next start looks for it
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// disconnect closes the connection, and forgets all rows that were read through it.
func (w *writer) disconnect() {
	w.tx.Local.Forget()
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// A connection is the writer's connection with its prepared statements. Statements take no context: every statement is
// short, and the outcome of a cancelled statement would be unknown.
type connection struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

func (c *connection) prepare(query string) (*sql.Stmt, error) {
	if s, ok := c.prepared[query]; ok {
		return s, nil
	}
	s, err := c.conn.PrepareContext(context.Background(), query)
	if err == nil {
		c.prepared[query] = s
	}
	return s, err
}

func (c *connection) Exec(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	r, err := s.Exec(args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (c *connection) Row(query string, args ...any) *row {
	s, err := c.prepare(query)
	if err != nil {
		return &row{err: err}
	}
	return &row{row: s.QueryRow(args...)}
}

func (c *connection) Query(query string, args ...any) (*sql.Rows, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.Query(args...)
}

// Close closes the connection permanently. A connection that is only returned to the pool would keep its state.
func (c *connection) Close() {
	for _, s := range c.prepared {
		_ = s.Close()
	}
	_ = c.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.conn.Close()
}
