// Package sqldb is the database of a ledger: SQLite in a file, or MariaDB, MySQL or PostgreSQL on a server. It opens, migrates, examines and copies
// the database, and runs transactions in it. It knows no campaigns: what transactions remember of rows is a Local, and what several callers
// do in one transaction is Shared. Each kind of database is a Dialect, with a file of its own.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// A DB is the database of a ledger: its connections, and the transactions in it.
type DB struct {
	Dialect *Dialect
	path    string  // of SQLite's file
	Write   *sql.DB // on SQLite one connection
	// Conclude reads what somebody concludes something from, where writes go; read lists and
	// exports, perhaps from a standby that lags; audits runs the checks of an audit, as read, and waits for them. On SQLite they are the same.
	Conclude, Read, Audits *Pool
	// checkpoints copies the log of Write to the database; nil on a server.
	checkpoints *sql.DB
	lock        *flock.Flock
	Clock       func() time.Time // nil: the database server's
	Identity    string           // see Identity
	jobs        chan *job
	// Local returns what transactions remember: of this one, or on SQLite of all.
	Local func() Local
	// Together does the work of several callers in one transaction.
	Together func(*Tx, []Shared) error
	// Watch looks, where nodes share the database, for what other nodes did, until ctx ends.
	Watch func(ctx context.Context) error

	OnCommit func(jobs int, took time.Duration, err error) // nil: nobody is told

	done chan struct{} // closed when run has returned
}

// Open opens the database of a ledger to decide in it, and migrates it: see Open.
func Open(ctx context.Context, name, owner string) (*DB, error) {
	if OnServer(name) {
		return openServer(ctx, name, true, concluding, reading)
	}
	path := File(strings.TrimPrefix(name, "sqlite:"))
	lock, err := acquire(path, owner)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, path)
	if err != nil {
		return nil, errors.Join(err, release(lock))
	}
	d.lock = lock
	return d, nil
}

// OpenShared opens the database beside the processes that decide in it: see OpenShared.
func OpenShared(ctx context.Context, name string) (*DB, error) {
	return openBeside(ctx, name, patience{answer: reading.answer, primary: true})
}

// OpenCopy opens the database for a reader who wants it as it was at some instant: see OpenCopy.
func OpenCopy(ctx context.Context, name string) (*DB, error) {
	return openBeside(ctx, name, reading)
}

func openBeside(ctx context.Context, name string, p patience) (*DB, error) {
	if OnServer(name) {
		return openServer(ctx, name, false, p, p)
	}
	path := File(strings.TrimPrefix(name, "sqlite:"))
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("there is no ledger: %w", err)
	}
	d, err := connect(path)
	if err != nil {
		return nil, err
	}
	err = checkVersion(ctx, d.Dialect, d.Read.DB)
	if err == nil {
		err = d.identify(ctx, false)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func open(ctx context.Context, path string) (*DB, error) {
	d, err := connect(path)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, d.Dialect, d.Write); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate %s: %w", path, err), d.Close())
	}
	if err := d.identify(ctx, true); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), d.Close())
	}
	if err := extendLog(ctx, path, d.Write); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), d.Close())
	}
	return d, nil
}

// connect returns a database with its connections, which open when first used.
func connect(path string) (*DB, error) {
	if err := checkNames(path); err != nil {
		return nil, err
	}
	d := newDB(&SQLite)
	d.path, d.Clock = path, time.Now
	var err error
	if d.Write, d.Read.DB, d.checkpoints, err = openSQLite(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return d, nil
}

// newDB returns a database without connections.
func newDB(d *Dialect) *DB {
	read := &Pool{reader[*sql.DB]{d: d}}
	conclude, audits := read, read
	if d.Shared {
		conclude, audits = &Pool{reader[*sql.DB]{d: d}}, &Pool{reader[*sql.DB]{d: d}}
	}
	return &DB{
		Dialect: d, Read: read, Conclude: conclude, Audits: audits,
		jobs: make(chan *job, maxJobs),
		done: make(chan struct{}),
	}
}

// Close closes the connections and lets another process have the ledger. run
// must have returned.
func (d *DB) Close() error {
	err := d.Read.Close()
	if d.Dialect.Shared {
		// A connection that is gone cannot be closed in order, and need not: what was answered is committed.
		_ = d.Write.Close()
		_ = d.Conclude.Close()
		_ = d.Audits.Close()
		return nil
	}
	if d.checkpoints != nil {
		err = errors.Join(err, d.checkpoints.Close())
	}
	return errors.Join(err, d.Write.Close(), release(d.lock))
}

// acquire takes the lock file beside the ledger and writes into it who has it.
func acquire(path, owner string) (*flock.Flock, error) {
	name := path + ".lock"
	lock := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the ledger: %w", err)
	}
	if !ok {
		who, _ := os.ReadFile(name)
		return nil, fmt.Errorf("another firstcome has the ledger %s: %s. Stop it first, or give this one a ledger of its own with --ledger sqlite:FILE", path, who)
	}
	text := fmt.Sprintf("process %d since %s, %s", os.Getpid(), time.Now().UTC().Format(time.RFC3339), owner)
	// A read-only disk does not hinder a ledger that is only asked: what is written
	// here is for people.
	_ = os.WriteFile(name, []byte(text), 0o600)
	return lock, nil
}

func release(lock *flock.Flock) error {
	if lock == nil {
		return nil
	}
	return lock.Unlock()
}

// Now returns the clock's instant: that of the server where there is one, by a
// statement of its own, because the one that waits for a lock tells the time before it had it.
func (d *DB) Now(t *Tx) (time.Time, error) {
	if d.Clock != nil {
		return d.Clock().UTC().Truncate(time.Microsecond), nil
	}
	var at int64
	err := t.Row(`SELECT ` + d.Dialect.Clock).Scan(&at)
	return time.UnixMicro(at).UTC(), err
}

// ReadNow is now without a transaction.
func (d *DB) ReadNow(ctx context.Context) (time.Time, error) {
	if d.Clock != nil {
		return d.Clock().UTC(), nil
	}
	var at int64
	err := d.Conclude.QueryRowContext(ctx, `SELECT `+d.Dialect.Clock).Scan(&at)
	return time.UnixMicro(at).UTC(), err
}

// Wall returns the time by the gate's clock if that is in this process, and else by this machine's clock,
// which is good enough for choosing what to show.
func (d *DB) Wall() time.Time {
	if d.Clock == nil {
		return time.Now()
	}
	return d.Clock()
}
