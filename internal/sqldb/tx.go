package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
)

// A Tx is the transaction in which a call's work is done. On SQLite it is the writer's, on a server it is the call's own.
type Tx struct {
	Statements
	Dialect *Dialect
	Local   Local
	writes  int
}

// A Local holds the rows that transactions remember. On SQLite no other process writes, so a Local outlives its
// transaction. On a server each transaction has its own Local.
type Local interface {
	Flush(t *Tx) error // writes the rows that the transaction changed in memory, as its last statements
	Committed()        // the transaction's writes are on the disk
	Undone()           // the transaction was rolled back
	Forget()           // all remembered rows are out of date
	// Remembers reports whether a row of a key is remembered from an earlier transaction. Drop removes it.
	Remembers(key string) bool
	Drop(key string)
}

// A Job is one caller's work that can share a transaction with other jobs, of its own kind and of others. J is its own type.
type Job[J any] interface {
	Key() string // the subject, such as a campaign: jobs of one kind with the same key keep their order
	// Decide decides jobs of this kind in a transaction, in their order. The receiver is the first of them. A job may be decided more
	// than once, after a rollback. If its call's earlier transaction was committed after all, it finds its work done.
	Decide(t *Tx, jobs []J) error
	Outcome() error // why nothing was done for this caller although the transaction is committed, or nil
}

// A Kind is all jobs of a type. Its zero value may be used, with one DB.
type Kind[J Job[J]] struct {
	jobs []J // that the writer's transaction decides next
}

// Do does a job and returns when the commit is on the disk. On SQLite the job shares a transaction with other callers' jobs. On a server
// it has its own, which runs again if the outcome of a commit is unknown.
func (k *Kind[J]) Do(ctx context.Context, d *DB, j J) error {
	if d.Dialect.Shared {
		return d.Repeat(ctx, func(t *Tx) error { return cmp.Or(j.Decide(t, []J{j}), j.Outcome()) })
	}
	return d.await(&call{
		ctx: ctx, done: make(chan struct{}),
		kind: k, key: j.Key(), join: func() { k.jobs = append(k.jobs, j) }, outcome: j.Outcome,
	})
}

// decide decides the jobs that have joined.
func (k *Kind[J]) decide(t *Tx) error {
	jobs := k.jobs
	k.jobs = jobs[:0]
	defer clear(jobs)
	return jobs[0].Decide(t, jobs)
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
