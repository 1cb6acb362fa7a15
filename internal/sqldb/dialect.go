package sqldb

import (
	"cmp"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome/internal/trust"
)

// A Dialect is what one kind of database wants otherwise than the others. All
// SQL elsewhere is the same for all of them, with ? where an argument stands.
type Dialect struct {
	name string // of the directory of its migrations
	// Shared tells that other nodes decide in the same database: nothing of a
	// campaign is known from an earlier transaction, or for longer than one.
	Shared   bool
	numbered bool // arguments are $1, $2, … instead of ?
	// ForUpdate has a SELECT wait for the rows and keep them until the transaction ends.
	ForUpdate string
	// Limit is a LIMIT by an argument.
	Limit string
	// Clock is an expression: the server's clock, in microseconds. NULL: the process's
	// clock is the gate's.
	Clock string
	// Classify says what an error of the driver means, by its code.
	Classify func(error) verdict
	// code returns that of an error of the database; empty: it is none.
	code func(error) string
	// These are codes of errors: a row or a page is there and cannot be read; another transaction
	// kept a lock for too long; the user lacks a right.
	damagedCodes, lockedCodes, deniedCodes []string

	// advise returns what to do about an error of logging in, and nothing for any other.
	// Nil: nobody logs in.
	advise func(error) string

	// connector makes connections to the database that a URL names. Nil: it is a file.
	connector func(*url.URL, patience) (driver.Connector, error)
	schema    schema
	examine   func(*exam) // adds what Examine finds that only this database has
	backup    string      // the command that copies the ledger as it is at one instant; empty: Backup does
}

// open returns connections to the database that a URL names, which open when first used.
func (d *Dialect) open(u *url.URL, p patience) (*sql.DB, error) {
	connector, err := d.connector(u, p)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// advised adds to an error of opening a ledger what to do about it.
func (d *Dialect) advised(err error) error {
	if advice := d.advice(err); advice != "" {
		return fmt.Errorf("%w: %s", err, advice)
	}
	return err
}

func (d *Dialect) Damaged(err error) bool   { return slices.Contains(d.damagedCodes, d.code(err)) }
func (d *Dialect) RowLocked(err error) bool { return slices.Contains(d.lockedCodes, d.code(err)) }
func (d *Dialect) denied(err error) bool    { return slices.Contains(d.deniedCodes, d.code(err)) }

func (d *Dialect) advice(err error) string { return cmp.Or(trust.Advice(err), d.advise(err)) }

// A verdict says what an error of a statement means for its transaction.
type verdict int

const (
	// notOurs: it is no error of the database, but what a job answers.
	NotOurs verdict = iota
	// refused: the schema does not take what was written.
	Refused
	// again: the server has rolled the transaction back, or will; run it again.
	again
	// unreachable: the connection or the server is in trouble. If COMMIT was sent,
	// nobody knows whether it was done.
	unreachable
	// broken: the server will not do it, now or later: no right, no room, no such table.
	broken
)

// Rebind returns the query as the database wants its arguments marked.
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
