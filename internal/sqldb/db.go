// Package sqldb is the database of a ledger: SQLite in a file, or MariaDB, MySQL or PostgreSQL on a server. It opens,
// migrates, examines and copies the database, and runs transactions in it. It knows nothing of campaigns: a Local
// holds the rows that transactions remember, and a Job is work that shares a transaction. Each kind of database is a
// Dialect, in a file of its own.
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
	path    string  // SQLite's file
	Write   *sql.DB // on SQLite one connection
	// Conclude is for reads on which decisions depend, from the server that takes the writes. Read is for lists and
	// exports, perhaps from a standby that lags. Audits is for the checks of an audit: it reads as Read does, and has
	// no limit of time. On SQLite the three are the same.
	Conclude, Read, Audits *Pool
	// checkpoints copies the log of Write to the database. Nil on a server.
	checkpoints *sql.DB
	files       *openFiles // nil unless a node decides in a file
	lock        *flock.Flock
	Clock       func() time.Time // nil if the database server's clock is used
	Identity    string           // the ledger's random name: see ledger.Ledger.Identity
	calls       chan *call       // on SQLite

	// The caller of Open sets these fields before the first transaction.

	// Local returns the Local of a transaction. On SQLite all transactions have the same one.
	Local    func() Local
	OnCommit func(jobs int, took time.Duration, err error) // called after a transaction that wrote or failed. May be nil
	// OnMove is called when SQLite's file was moved or deleted, with the reason, and with nil when it is back. May be nil.
	OnMove func(error)

	done chan struct{} // closed when run has returned
}

// Open opens the database of a ledger for a node that decides, and migrates it. On SQLite it takes the ledger's lock
// for owner.
func Open(ctx context.Context, name, owner string) (*DB, error) {
	if OnServer(name) {
		return openServer(ctx, name, true, concluding, reading)
	}
	called := strings.TrimPrefix(name, "sqlite:")
	path := File(called)
	lock, err := acquire(path, owner)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, called, path)
	if err != nil {
		return nil, errors.Join(err, release(lock))
	}
	d.lock = lock
	return d, nil
}

// OpenShared opens the database while other processes may decide in it. It takes no lock and migrates nothing. On a
// server all its reads are from the primary.
func OpenShared(ctx context.Context, name string) (*DB, error) {
	return openBeside(ctx, name, patience{answer: reading.answer, primary: true})
}

// OpenCopy opens the database for reading. It takes no lock and migrates nothing. On a server it may read from a
// standby that lags.
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

func open(ctx context.Context, called, path string) (*DB, error) {
	if err := checkLog(path); err != nil {
		return nil, err
	}
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
	if d.files, err = d.openFiles(ctx, called); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.files.onMove = func(moved error) {
		if d.OnMove != nil {
			d.OnMove(moved)
		}
	}
	d.Read.files = d.files
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
	read := &Pool{reader: reader[*sql.DB]{d: d}}
	conclude, audits := read, read
	if d.Shared {
		conclude, audits = &Pool{reader: reader[*sql.DB]{d: d}}, &Pool{reader: reader[*sql.DB]{d: d}}
	}
	return &DB{
		Dialect: d, Read: read, Conclude: conclude, Audits: audits,
		calls: make(chan *call, maxJobs),
		done:  make(chan struct{}),
	}
}

// Close closes the connections and releases the ledger's lock. Run must have returned.
func (d *DB) Close() error {
	err := d.Read.Close()
	if d.Dialect.Shared {
		// A lost connection cannot be closed cleanly. Its error does not matter: answered work is committed.
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

// acquire locks the lock file beside the ledger, and writes into it which process has the lock.
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
	// The text is only for people, so a read-only disk must not stop a ledger that is only read.
	_ = os.WriteFile(name, []byte(text), 0o600)
	return lock, nil
}

func release(lock *flock.Flock) error {
	if lock == nil {
		return nil
	}
	return lock.Unlock()
}

// Now returns the time by the server's clock, or by the process's clock on SQLite. The server's time is read by a
// statement of its own: one that also waits for a lock may return the time at which it began to wait.
func (d *DB) Now(t *Tx) (time.Time, error) {
	if d.Clock != nil {
		return d.Clock().UTC().Truncate(time.Microsecond), nil
	}
	var at int64
	err := t.Row(`SELECT ` + d.Dialect.Clock).Scan(&at)
	return time.UnixMicro(at).UTC(), err
}

// ReadNow is Now without a transaction.
func (d *DB) ReadNow(ctx context.Context) (time.Time, error) {
	if d.Clock != nil {
		return d.Clock().UTC(), nil
	}
	var at int64
	err := d.Conclude.QueryRowContext(ctx, `SELECT `+d.Dialect.Clock).Scan(&at)
	return time.UnixMicro(at).UTC(), err
}

// Wall returns the time by the gate's clock if that is in this process, and otherwise by this machine's clock. It is
// accurate enough to choose what to display.
func (d *DB) Wall() time.Time {
	if d.Clock == nil {
		return time.Now()
	}
	return d.Clock()
}
