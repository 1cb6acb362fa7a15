package sqldb

import (
	"database/sql"
	"errors"
)

// A Tx is a transaction as a job sees it: the writer's, or on a server the job's own.
type Tx struct {
	Statements
	Dialect *Dialect
	Local   Local
	writes  int
}

// A Local is what transactions remember of rows besides what is in the database. On SQLite, where nobody else writes, it outlives a transaction; on a
// server each transaction has its own.
type Local interface {
	Begin()     // a transaction begins, perhaps again after it was undone
	Committed() // what it wrote is on the disk
	Undone()    // it was rolled back
	Forget()    // nothing holds any more that was read
	// Remembers tells whether something of a key is known from an earlier transaction; drop forgets it.
	Remembers(key string) bool
	Drop(key string)
}

// Statements are what a transaction runs.
type Statements interface {
	// Exec runs a statement that returns no rows, and returns how many it changed.
	Exec(query string, args ...any) (int64, error)
	// Row runs a query of at most one row; sql.ErrNoRows says that there is none.
	Row(query string, args ...any) *row
	// Query runs a query of many rows.
	Query(query string, args ...any) (*sql.Rows, error)
}

// Begin forgets what the transaction before wrote.
func (t *Tx) Begin() {
	t.writes = 0
	t.Local.Begin()
}

// Change is exec for a statement that writes.
func (t *Tx) Change(query string, args ...any) (int64, error) {
	t.writes++
	return t.Exec(query, args...)
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

// Exists tells whether a query, which counts rows, counts any.
func (t *Tx) Exists(query string, args ...any) (bool, error) {
	var n int64
	err := t.Row(query, args...).Scan(&n)
	return n > 0, err
}
