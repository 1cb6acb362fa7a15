package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome/internal/trust"
)

// A Dialect describes how one kind of database differs from the others. All other SQL is the same for all of them,
// with ? for each argument.
type Dialect struct {
	name string // the directory of its migrations
	// Shared is true if other nodes decide in the same database. Then no transaction may use rows that an earlier
	// transaction read.
	Shared   bool
	numbered bool // arguments are $1, $2, … instead of ?
	// ForUpdate makes a SELECT lock its rows until the transaction ends.
	ForUpdate string
	// Limit is a LIMIT clause with an argument.
	Limit string
	// Clock is the expression of the server's clock, in microseconds. It is NULL if the process's clock is the
	// gate's clock.
	Clock string
	// Classify returns the verdict on an error of the driver, by its code.
	Classify func(error) verdict
	// code returns the code of an error of the database, or an empty string for any other error.
	code func(error) string
	// These are codes of errors: a row or a page exists and cannot be read; another transaction held a lock for
	// too long; the user lacks a right.
	damagedCodes, lockedCodes, deniedCodes []string

	// advise returns what to do about a login error, and an empty string for any other error. It is nil for a
	// file, which needs no login.
	advise func(error) string

	// connector returns a connector to the database that a URL names. It is nil for a file.
	connector func(*url.URL, patience) (driver.Connector, error)
	// session returns the settings of a session, and shown is a query for the settings that %s names. They are nil and
	// empty for a file.
	session func(patience) []setting
	shown   string
	schema  schema
	// old is a query of transactions that keep the server from removing old versions of rows: who has it, and its age in
	// seconds. Its argument is the least age, in seconds. It is empty if there is no such query.
	old string
	// lapsed reports whether the server commits without the replica that it is set to wait for. It is nil if no server does.
	lapsed func(context.Context, *sql.DB) (bool, error)
	// mayMakeTables is a query for whether this user may make tables.
	mayMakeTables string
	examine       func(*exam) // adds the findings of Examine that concern only this kind of database
	backup        string      // the command that copies a snapshot of the ledger. Empty if Backup does that
}

// open returns connections to the database that a URL names, which open when first used.
func (d *Dialect) open(u *url.URL, p patience) (*sql.DB, error) {
	connector, err := d.connector(u, p)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// advised adds advice to an error of opening a ledger.
func (d *Dialect) advised(err error) error {
	if advice := d.advice(err); advice != "" {
		return fmt.Errorf("%w: %s", err, advice)
	}
	return err
}

func (d *Dialect) Damaged(err error) bool   { return slices.Contains(d.damagedCodes, d.code(err)) }
func (d *Dialect) RowLocked(err error) bool { return slices.Contains(d.lockedCodes, d.code(err)) }

// Declined reports whether the database answered a query with an error, so that other queries may succeed.
func (d *Dialect) Declined(err error) bool {
	return d.code(err) != "" && (!d.Shared || d.Classify(err) != unreachable)
}

func (d *Dialect) denied(err error) bool { return slices.Contains(d.deniedCodes, d.code(err)) }

func (d *Dialect) advice(err error) string { return cmp.Or(trust.Advice(err), d.advise(err)) }

// A verdict is the meaning of a statement's error for its transaction.
type verdict int

const (
	// NotOurs means that the error is the job's own, not the database's.
	NotOurs verdict = iota
	// Refused means that the schema refused a row.
	Refused
	// again means that the server has rolled the transaction back, or will. Run it again.
	again
	// unreachable means that the connection or the server failed. If COMMIT was sent, its outcome is unknown.
	unreachable
	// broken means that a repeat will fail too: a missing right or table, for example.
	broken
)

// Rebind returns the query with the dialect's placeholders instead of ?.
func (d *Dialect) Rebind(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	b.Grow(len(query) + 16)
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}
