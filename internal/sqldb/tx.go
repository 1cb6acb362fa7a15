package sqldb

import (
	"database/sql"
	"errors"
)

// A Tx is the transaction in which a job runs. On SQLite it is the writer's, on a server it is the job's own.
type Tx struct {
	Statements
	Dialect *Dialect
	Local   Local
	writes  int
}

// A Local holds the rows that transactions remember. On SQLite no other process writes, so a Local outlives its
// transaction. On a server each transaction has its own Local.
type Local interface {
	Begin()     // a transaction begins, perhaps again after a rollback
	Committed() // the transaction's writes are on the disk
	Undone()    // the transaction was rolled back
	Forget()    // all remembered rows are out of date
	// Remembers reports whether a row of a key is remembered from an earlier transaction. Drop removes it.
	Remembers(key string) bool
	Drop(key string)
}

// Statements are what a transaction runs.
type Statements interface {
	// Exec runs a statement that returns no rows, and returns the number of rows that it changed.
	Exec(query string, args ...any) (int64, error)
	// Row runs a query that returns at most one row. Scan returns sql.ErrNoRows if there is none.
	Row(query string, args ...any) *row
	// Query runs a query that returns any number of rows.
	Query(query string, args ...any) (*sql.Rows, error)
}

// Begin prepares for a new transaction.
func (t *Tx) Begin() {
	t.writes = 0
	t.Local.Begin()
}

// Change runs Exec for a statement that writes, and counts it.
func (t *Tx) Change(query string, args ...any) (int64, error) {
	t.writes++
	return t.Exec(query, args...)
}

// A row is a sql.Row or the error of its statement.
type row struct {
	row     *sql.Row
	err     error
	explain func(error) error // adds advice to an error of the query. Nil if there is none to add
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

// Exists reports whether a query that counts rows returns more than 0.
func (t *Tx) Exists(query string, args ...any) (bool, error) {
	var n int64
	err := t.Row(query, args...).Scan(&n)
	return n > 0, err
}
