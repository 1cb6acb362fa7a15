// Package ledger keeps coupons in a SQL database, and decides claims in it.
//
// # Roles
//
// A Ledger opens and runs the database, and its fields are its roles: a Gate decides claims, Campaigns changes campaigns, a Recorder keeps
// what another gate issued, Reads reads what is kept, Epochs is recovery's side, Followers bring facts elsewhere, and a Desk keeps keys and
// nodes. All of them stand on one sqldb.DB, which has connections and transactions and knows no campaign, and on one rows, which reads and changes
// the rows of campaigns. What a transaction knows of campaigns is in its memory. A queries has the statements that differ between databases.
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
// see sqldb. Several nodes may share the database.
//
// # The tables
//
// docs/tables.md says what each column means and which are public to read; sqldb makes
// them. Only this package writes.
package ledger

import (
	"cmp"
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Ledger keeps campaigns and coupons. Its methods may be called from many
// goroutines; those that write need Run.
type Ledger struct {
	Gate      *Gate
	Campaigns *Campaigns
	Reads     *Reads
	Recorder  *Recorder
	Epochs    *Epochs
	Followers *Followers
	Desk      *Desk

	db   *sqldb.DB
	rows *rows
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
	d, err := sqldb.Open(ctx, name, o.Owner)
	if err != nil {
		return nil, err
	}
	l := newLedger(d, o)
	l.rows.fingerprint = o.Secret.Fingerprint()
	return l, nil
}

// OpenShared opens the ledger of a name, as Open takes it, beside the processes that
// decide in it, to read it or to write keys. It must exist and have this binary's schema. Of
// several servers only the primary is read.
func OpenShared(ctx context.Context, name string) (*Ledger, error) {
	return with(sqldb.OpenShared(ctx, name))
}

// OpenCopy is OpenShared for a reader who wants the ledger as it was at some instant: it is read
// at whichever server the name leads to, a standby that lags too, and all of it there.
func OpenCopy(ctx context.Context, name string) (*Ledger, error) {
	return with(sqldb.OpenCopy(ctx, name))
}

// with returns the ledger in a database that was opened without error.
func with(d *sqldb.DB, err error) (*Ledger, error) {
	if err != nil {
		return nil, err
	}
	return newLedger(d, Options{}), nil
}

// newLedger returns the ledger in a database.
func newLedger(d *sqldb.DB, o Options) *Ledger {
	existing, err := lru.New[firstcome.CampaignID, struct{}](maxExisting)
	if err != nil {
		panic(err) // of a size below 1 only
	}
	if d.OnCommit = o.OnCommit; o.Clock != nil {
		d.Clock = o.Clock
	}
	n := &news{read: d.Read, waiters: map[firstcome.CampaignID]map[chan struct{}]bool{}}
	r := &rows{db: d, queries: queriesOf(d.Dialect), secret: o.Secret, backlog: backlogOf(o.Backlog), gate: cmp.Or(o.Gate, gateKind)}
	l := &Ledger{
		Gate:      &Gate{db: d, rows: r, maxLine: cmp.Or(o.MaxLine, DefaultMaxLine), existing: existing},
		Campaigns: &Campaigns{db: d, rows: r}, Reads: &Reads{db: d, rows: r, news: n, search: make(chan struct{}, 1)},
		Recorder: &Recorder{db: d, rows: r}, Epochs: &Epochs{db: d, rows: r},
		Followers: &Followers{db: d}, Desk: &Desk{db: d},
		db: d, rows: r,
	}
	d.Local = func() sqldb.Local { return newMemory(r.queries, n) }
	d.Together, d.Watch = l.Gate.decideTogether, n.watch
	return l
}

// Run writes until ctx ends. Then it finishes the waiting jobs and returns.
func (l *Ledger) Run(ctx context.Context) error { return l.db.Run(ctx) }

// Close closes the connections and lets another process have the ledger. Run
// must have returned.
func (l *Ledger) Close() error { return l.db.Close() }

// Backup writes a snapshot of SQLite's ledger into a new file. Others may write to the ledger meanwhile. The
// new file is a ledger, too.
func (l *Ledger) Backup(ctx context.Context, file string) error { return l.db.Backup(ctx, file) }

// Verify has SQLite check the file's pages, indexes and constraints, and returns what SQLite found wrong. It
// does not check a ledger on a server and returns nothing: the server has its own tools for that.
func (l *Ledger) Verify(ctx context.Context) ([]string, error) { return l.db.Verify(ctx) }
