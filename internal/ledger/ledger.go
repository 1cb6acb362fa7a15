// Package ledger opens a ledger and hands out its roles. It also records and reads: what gates beside it issued, dead letters,
// searches, exports, API keys, nodes, followers.
//
// # Roles
//
// A Ledger opens and runs the database. Its fields are its roles:
//
//   - Gate decides claims: package sqlgate.
//   - Campaigns creates and changes campaigns.
//   - Recorder records the coupons of a gate beside the ledger.
//   - Reads reads campaigns, coupons, facts and logs.
//   - Epochs serves recovery: package epoch.
//   - Followers keeps the progress of those who copy facts elsewhere.
//   - Deployment keeps API keys and nodes.
//
// All roles use one sqldb.DB, which has the connections and transactions. Package campaign has the row of a campaign and everything that is
// written in one step with it; all roles that change a campaign use one campaign.Store.
//
// # One writer
//
// On SQLite one goroutine, Ledger.Run, does every write. It puts the waiting claims of all campaigns into one transaction, commits
// it to the disk, and only then answers. If the schema refuses a claim, the transaction is rolled back. Then its halves run as
// transactions of their own, one after the other, and so on, until only the refused claim's campaign is affected. Every other write
// has its own transaction.
//
// On a database server each call of a writing method is a transaction of its own: see sqldb. Several nodes may share the database.
//
// # The tables
//
// docs/tables.md explains each column, and lists the columns that other programs may read. Package sqldb creates the tables. Only
// this package, campaign, sqlgate and epoch write to them.
package ledger

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/codes"
	"github.com/firstcome/firstcome/internal/epoch"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/internal/sqlgate"
)

// A Ledger keeps campaigns and coupons. Its methods may be called from many goroutines. Methods that write wait for Run.
type Ledger struct {
	Gate       *sqlgate.Gate
	Campaigns  *Campaigns
	Reads      *Reads
	Recorder   *Recorder
	Epochs     *epoch.Epochs
	Followers  *Followers
	Codes      *codes.Lists
	Deployment *Deployment

	db    *sqldb.DB
	store *campaign.Store
}

// Options are the options of Open.
type Options struct {
	// Owner describes this process, for example by the address that it serves. A second process that opens the ledger gets it in
	// its error.
	Owner string
	// Secret makes the coupon codes.
	Secret firstcome.Secret
	// Gate names the gate that decides the claims of this node's campaigns, such as redis:INSTANCE. If it is empty, the ledger
	// decides them.
	Gate string
	// Clock is the gate's clock. If it is nil, it is time.Now on SQLite, and otherwise the database server's clock. It may jump:
	// the gate's time never goes back.
	Clock func() time.Time
	// MaxLine is the maximum number of users in a campaign's line. 0 means DefaultMaxLine.
	MaxLine int64
	// Backlog is how many numbers above the ledger's highest a gate beside the ledger may assign. 0 means 1,000,000. A negative
	// value means about 10^12.
	Backlog int64
	// OnCommit, if not nil, is called after each transaction.
	OnCommit func(jobs int, took time.Duration, err error)
	// OnMove, if not nil, is called when SQLite's file was moved or deleted, with the reason, and with nil when it is back.
	OnMove func(error)
}

// Open opens a ledger to decide in it, and migrates it. Its name is sqlite:FILE or the file's path, mysql://…, mariadb://… or
// postgres://…. Open creates a missing file. Only one process may have the file open: a second one gets an error with the Owner of
// the first. Call Run, and Close at the end.
func Open(ctx context.Context, name string, o Options) (*Ledger, error) {
	d, err := sqldb.Open(ctx, name, o.Owner)
	if err != nil {
		return nil, err
	}
	return newLedger(d, o, o.Secret.Fingerprint()), nil
}

// OpenShared opens a ledger, named as for Open, to read it or to write keys while other processes decide in it. The ledger must exist
// and have this binary's schema. If the name leads to several servers, only the primary is read.
func OpenShared(ctx context.Context, name string) (*Ledger, error) {
	return with(sqldb.OpenShared(ctx, name))
}

// OpenCopy is like OpenShared, for a reader that needs one snapshot of the ledger, which may be old. It reads everything from the one
// server that the name leads to, which may be a replica that lags.
func OpenCopy(ctx context.Context, name string) (*Ledger, error) {
	return with(sqldb.OpenCopy(ctx, name))
}

// with returns the ledger in an opened database, or the error of opening it.
func with(d *sqldb.DB, err error) (*Ledger, error) {
	if err != nil {
		return nil, err
	}
	return newLedger(d, Options{}, ""), nil
}

// newLedger returns the ledger in a database. fingerprint identifies the secret. It is empty if this process decides nothing.
func newLedger(d *sqldb.DB, o Options, fingerprint string) *Ledger {
	n := campaign.NewNews(d)
	if d.Local, d.OnCommit, d.OnMove = n.NewCache, o.OnCommit, o.OnMove; o.Clock != nil {
		d.Clock = o.Clock
	}
	r := campaign.New(d, campaign.Options{Secret: o.Secret, Fingerprint: fingerprint, Gate: o.Gate, Backlog: o.Backlog})
	var box *codes.Box
	if fingerprint != "" {
		box = codes.NewBox(o.Secret)
	}
	return &Ledger{
		Codes: codes.NewLists(r, box),
		Gate:  sqlgate.New(r, o.MaxLine), Campaigns: &Campaigns{db: r.DB, store: r}, Epochs: epoch.New(r),
		Reads: &Reads{db: d, store: r, news: n, codes: newCodeIndex(r)}, Recorder: &Recorder{db: d, store: r},
		Followers: &Followers{db: d}, Deployment: &Deployment{db: d},
		db: d, store: r,
	}
}

// Run does the ledger's writes until ctx ends. Then it finishes the waiting writes and returns. On a server each call writes for
// itself, and Run looks for what other nodes wrote.
func (l *Ledger) Run(ctx context.Context) error {
	if l.db.Dialect.Shared {
		l.Reads.news.Watch(ctx)
		return nil
	}
	return l.db.Run(ctx)
}

// Close closes the connections, so that another process can open the ledger. Run must have returned.
func (l *Ledger) Close() error { return l.db.Close() }

// Backup writes a snapshot of a SQLite ledger into a new file, which is itself a ledger. Writes to the ledger may continue while it
// runs.
func (l *Ledger) Backup(ctx context.Context, file string) error { return l.db.Backup(ctx, file) }

// Verify runs SQLite's checks of the file's pages, indexes and constraints, and returns the faults found. For a ledger on a server
// it checks nothing and returns nothing: the server has its own tools.
func (l *Ledger) Verify(ctx context.Context) ([]string, error) { return l.db.Verify(ctx) }
