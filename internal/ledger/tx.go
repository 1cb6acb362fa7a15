package ledger

import (
	"database/sql"
	"errors"
)

// A tx is a transaction as a job sees it: the writer's, or on a server the job's own.
type tx struct {
	statements
	dialect *dialect
	local   local
	writes  int
}

// A local is what transactions remember of rows besides what is in the database. On SQLite, where nobody else writes, it outlives a transaction; on a
// server each transaction has its own.
type local interface {
	begin()     // a transaction begins, perhaps again after it was undone
	committed() // what it wrote is on the disk
	undone()    // it was rolled back
	forget()    // nothing holds any more that was read
	// remembers tells whether something of a key is known from an earlier transaction; drop forgets it.
	remembers(key string) bool
	drop(key string)
}

// Statements are what a transaction runs.
type statements interface {
	// exec runs a statement that returns no rows, and returns how many it changed.
	exec(query string, args ...any) (int64, error)
	// row runs a query of at most one row; sql.ErrNoRows says that there is none.
	row(query string, args ...any) *row
	// query runs a query of many rows.
	query(query string, args ...any) (*sql.Rows, error)
}

// begin forgets what the transaction before wrote.
func (t *tx) begin() {
	t.writes = 0
	t.local.begin()
}

// change is exec for a statement that writes.
func (t *tx) change(query string, args ...any) (int64, error) {
	t.writes++
	return t.exec(query, args...)
}

// A row is a sql.Row or the error of its statement.
type row struct {
	row     *sql.Row
	err     error
	explain func(error) error // nil: the error says it
}

func (r *row) Scan(into ...any) error {
	if r.err != nil {
		return r.err
	}
	err := r.row.Scan(into...)
	if err != nil && r.explain != nil && !errors.Is(err, sql.ErrNoRows) {
		err = r.explain(err)
	}
	return err
}

// exists tells whether a query, which counts rows, counts any.
func (t *tx) exists(query string, args ...any) (bool, error) {
	var n int64
	err := t.row(query, args...).Scan(&n)
	return n > 0, err
}
