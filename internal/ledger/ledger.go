// Package ledger keeps coupons in a SQL database, and decides claims in it.
//
// # One writer
//
// On SQLite one goroutine, Ledger.Run, does every write. It takes the claims that wait,
// at all campaigns, into one transaction, commits it to the disk, and only then
// answers. If the schema refuses one of them, the transaction is rolled back and its halves
// run one behind the other, until the refusal meets only the campaign that it concerns.
// Everything else has a transaction of its own.
//
// On a database server each call of a writing method is one transaction of its own:
// see transact. Several nodes may share the database.
//
// # The tables
//
// docs/tables.md says what each column means and which are public to read; migrations/ makes
// them. Only this package writes.
package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/firstcome/firstcome"
)

// A Ledger keeps campaigns and coupons. Its methods may be called from many
// goroutines; those that write need Run.
type Ledger struct {
	dialect *dialect
	path    string  // of SQLite's file
	write   *sql.DB // on SQLite one connection
	// conclude reads what somebody concludes something from, where writes go; read lists and
	// exports, perhaps from a standby that lags; audits runs the checks of an audit, as read, and waits for them. On SQLite they are the same.
	conclude, read, audits *pool
	// checkpoints copies the log of write to the database; nil on a server.
	checkpoints *sql.DB
	lock        *flock.Flock
	secret      firstcome.Secret
	clock       func() time.Time // nil: the database server's
	maxLine     int64            // people in line of a campaign
	backlog     int64            // see grant
	gate        string           // the name of this node's gate: gateKind, or that of a remote one
	journal     string           // the topic that the gate's coupons pass; empty: none
	abandons    bool             // what passed another topic: see Beside
	jobs        chan *job
	search      chan struct{}                              // held by who looks for a code
	existing    *lru.Cache[firstcome.CampaignID, struct{}] // campaigns that this node has seen
	// fingerprint is that of secret.
	fingerprint string
	identity    string // see Identity

	onCommit func(jobs int, took time.Duration, err error) // nil: nobody is told

	mu      sync.Mutex                                      // guards what follows
	waiters map[firstcome.CampaignID]map[chan struct{}]bool // who waits for facts
	done    chan struct{}                                   // closed when Run has returned
}

// Options are what Open needs beside the place of the ledger.
type Options struct {
	// Owner is what a second process is told about who has the ledger, such as the
	// address it serves.
	Owner string
	// Secret makes the coupon codes.
	Secret firstcome.Secret
	// Gate names the gate that decides the claims of this node's campaigns, such as
	// redis:INSTANCE. Empty: the ledger itself, which decides in no other case.
	Gate string
	// Clock is the gate's clock. Nil means time.Now on SQLite, and else the database
	// server's. It may jump: the gate's time does not go back.
	Clock func() time.Time
	// MaxLine is how many people may be in line of a campaign; 0: DefaultMaxLine.
	MaxLine int64
	// Backlog is how many numbers a gate beside the ledger may give beyond the highest in the ledger; 0: 1,000,000,
	// negative: about 10^12.
	Backlog int64
	// OnCommit, if not nil, is told of each transaction.
	OnCommit func(jobs int, took time.Duration, err error)
}

// Open opens a ledger to decide in it, and migrates it. Its name is sqlite:FILE or the
// file's path, mysql://…, mariadb://… or postgres://…. A file is made if there is none and is
// this process's alone: a second one gets an error that says who has it. Call Run,
// and Close at the end.
func Open(ctx context.Context, name string, o Options) (*Ledger, error) {
	if OnServer(name) {
		return openServer(ctx, name, o, true, concluding, reading)
	}
	path := File(strings.TrimPrefix(name, "sqlite:"))
	lock, err := acquire(path, o.Owner)
	if err != nil {
		return nil, err
	}
	l, err := open(ctx, path, o)
	if err != nil {
		return nil, errors.Join(err, release(lock))
	}
	l.lock, l.fingerprint = lock, o.Secret.Fingerprint()
	return l, nil
}

// OpenShared opens the ledger of a name, as Open takes it, beside the processes that
// decide in it, to read it or to write keys. It must exist and have this binary's schema. Of
// several servers only the primary is read.
func OpenShared(ctx context.Context, name string) (*Ledger, error) {
	return openShared(ctx, name, patience{answer: reading.answer, primary: true})
}

// OpenCopy is OpenShared for a reader who wants the ledger as it was at some instant: it is read
// at whichever server the name leads to, a standby that lags too, and all of it there.
func OpenCopy(ctx context.Context, name string) (*Ledger, error) {
	return openShared(ctx, name, reading)
}

func openShared(ctx context.Context, name string, p patience) (*Ledger, error) {
	if OnServer(name) {
		return openServer(ctx, name, Options{}, false, p, p)
	}
	path := File(strings.TrimPrefix(name, "sqlite:"))
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("there is no ledger: %w", err)
	}
	l, err := connect(path, Options{})
	if err != nil {
		return nil, err
	}
	err = checkVersion(ctx, l.dialect, l.read.db)
	if err == nil {
		err = l.identify(ctx, false)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func open(ctx context.Context, path string, o Options) (*Ledger, error) {
	l, err := connect(path, o)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, l.dialect, l.write); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate %s: %w", path, err), l.Close())
	}
	if err := l.identify(ctx, true); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), l.Close())
	}
	if err := extendLog(ctx, path, l.write); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), l.Close())
	}
	return l, nil
}

// connect returns a ledger with its connections, which open when first used.
func connect(path string, o Options) (*Ledger, error) {
	if err := checkNames(path); err != nil {
		return nil, err
	}
	l := newLedger(&sqLite, o)
	l.path = path
	if l.clock == nil {
		l.clock = time.Now
	}
	var err error
	if l.write, l.read.db, l.checkpoints, err = openSQLite(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return l, nil
}

// newLedger returns a ledger without connections.
func newLedger(d *dialect, o Options) *Ledger {
	read := &pool{reader[*sql.DB]{d: d}}
	conclude, audits := read, read
	if d.shared {
		conclude, audits = &pool{reader[*sql.DB]{d: d}}, &pool{reader[*sql.DB]{d: d}}
	}
	existing, err := lru.New[firstcome.CampaignID, struct{}](maxExisting)
	if err != nil {
		panic(err) // of a size below 1 only
	}
	return &Ledger{
		dialect: d, read: read, conclude: conclude, audits: audits, existing: existing,
		secret: o.Secret, clock: o.Clock, maxLine: cmp.Or(o.MaxLine, DefaultMaxLine), backlog: backlogOf(o.Backlog), gate: cmp.Or(o.Gate, gateKind), onCommit: o.OnCommit,
		jobs:    make(chan *job, maxJobs),
		search:  make(chan struct{}, 1),
		waiters: map[firstcome.CampaignID]map[chan struct{}]bool{},
		done:    make(chan struct{}),
	}
}

// Close closes the connections and lets another process have the ledger. Run
// must have returned.
func (l *Ledger) Close() error {
	err := l.read.Close()
	if l.dialect.shared {
		// A connection that is gone cannot be closed in order, and need not: what was answered is committed.
		_ = l.write.Close()
		_ = l.conclude.Close()
		_ = l.audits.Close()
		return nil
	}
	if l.checkpoints != nil {
		err = errors.Join(err, l.checkpoints.Close())
	}
	return errors.Join(err, l.write.Close(), release(l.lock))
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
