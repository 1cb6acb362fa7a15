package ledger

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

// A db is the database of a ledger: its connections, and the transactions in it.
type db struct {
	dialect *dialect
	path    string  // of SQLite's file
	write   *sql.DB // on SQLite one connection
	// conclude reads what somebody concludes something from, where writes go; read lists and
	// exports, perhaps from a standby that lags; audits runs the checks of an audit, as read, and waits for them. On SQLite they are the same.
	conclude, read, audits *pool
	// checkpoints copies the log of write to the database; nil on a server.
	checkpoints *sql.DB
	lock        *flock.Flock
	clock       func() time.Time // nil: the database server's
	identity    string           // see Identity
	jobs        chan *job
	// local returns what transactions remember: of this one, or on SQLite of all.
	local func() local
	// together does the work of several callers in one transaction.
	together func(*tx, []shared) error
	// watch looks, where nodes share the database, for what other nodes did, until ctx ends.
	watch func(ctx context.Context) error

	onCommit func(jobs int, took time.Duration, err error) // nil: nobody is told

	done chan struct{} // closed when run has returned
}

// openDB opens the database of a ledger to decide in it, and migrates it: see Open.
func openDB(ctx context.Context, name, owner string) (*db, error) {
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

// openSharedDB opens the database beside the processes that decide in it: see OpenShared.
func openSharedDB(ctx context.Context, name string) (*db, error) {
	return openBeside(ctx, name, patience{answer: reading.answer, primary: true})
}

// openCopyDB opens the database for a reader who wants it as it was at some instant: see OpenCopy.
func openCopyDB(ctx context.Context, name string) (*db, error) {
	return openBeside(ctx, name, reading)
}

func openBeside(ctx context.Context, name string, p patience) (*db, error) {
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
	err = checkVersion(ctx, d.dialect, d.read.db)
	if err == nil {
		err = d.identify(ctx, false)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func open(ctx context.Context, path string) (*db, error) {
	d, err := connect(path)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, d.dialect, d.write); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate %s: %w", path, err), d.close())
	}
	if err := d.identify(ctx, true); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), d.close())
	}
	if err := extendLog(ctx, path, d.write); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), d.close())
	}
	return d, nil
}

// connect returns a database with its connections, which open when first used.
func connect(path string) (*db, error) {
	if err := checkNames(path); err != nil {
		return nil, err
	}
	d := newDB(&sqLite)
	d.path, d.clock = path, time.Now
	var err error
	if d.write, d.read.db, d.checkpoints, err = openSQLite(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return d, nil
}

// newDB returns a database without connections.
func newDB(d *dialect) *db {
	read := &pool{reader[*sql.DB]{d: d}}
	conclude, audits := read, read
	if d.shared {
		conclude, audits = &pool{reader[*sql.DB]{d: d}}, &pool{reader[*sql.DB]{d: d}}
	}
	return &db{
		dialect: d, read: read, conclude: conclude, audits: audits,
		jobs: make(chan *job, maxJobs),
		done: make(chan struct{}),
	}
}

// close closes the connections and lets another process have the ledger. run
// must have returned.
func (d *db) close() error {
	err := d.read.Close()
	if d.dialect.shared {
		// A connection that is gone cannot be closed in order, and need not: what was answered is committed.
		_ = d.write.Close()
		_ = d.conclude.Close()
		_ = d.audits.Close()
		return nil
	}
	if d.checkpoints != nil {
		err = errors.Join(err, d.checkpoints.Close())
	}
	return errors.Join(err, d.write.Close(), release(d.lock))
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

// now returns the clock's instant: that of the server where there is one, by a
// statement of its own, because the one that waits for a lock tells the time before it had it.
func (d *db) now(t *tx) (time.Time, error) {
	if d.clock != nil {
		return d.clock().UTC().Truncate(time.Microsecond), nil
	}
	var at int64
	err := t.row(`SELECT ` + d.dialect.clock).Scan(&at)
	return time.UnixMicro(at).UTC(), err
}

// readNow is now without a transaction.
func (d *db) readNow(ctx context.Context) (time.Time, error) {
	if d.clock != nil {
		return d.clock().UTC(), nil
	}
	var at int64
	err := d.conclude.QueryRowContext(ctx, `SELECT `+d.dialect.clock).Scan(&at)
	return time.UnixMicro(at).UTC(), err
}

// wall returns the time by the gate's clock if that is in this process, and else by this machine's clock,
// which is good enough for choosing what to show.
func (d *db) wall() time.Time {
	if d.clock == nil {
		return time.Now()
	}
	return d.clock()
}
