// Package campaign is a campaign in the database: its row, and everything that is written in one step with the row. The SQL gate
// (sqlgate), the recorder and the reads (ledger) and recovery (epoch) stand above it, and do not know each other.
//
// Store reads a row as a Row, and locks it if nodes share the database. Code that changes the row writes the rest in the same
// transaction: the change with AddChange, coupons with WriteCoupons, facts with AddIssued or AddVoidFact, a line that ended with
// InsertPast, and the audit log with AddLog.
//
// On SQLite one process writes, so transactions remember rows: Store.Row reads each row once. PutRow keeps how a transaction
// changes it, and the transaction writes it at its end. RowToChange reads the row from the database, and the caller writes it with a statement of its
// own.
package campaign

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Store reads and changes the rows of the campaigns that this node decides. Its fields do not change after Run has begun.
type Store struct {
	queries *queries
	DB      *sqldb.DB
	Secret  firstcome.Secret // makes the codes
	// Fingerprint identifies the secret. It is empty if this process decides nothing.
	Fingerprint string
	Gate        string    // the name of this node's gate: OwnGate, or the name of a remote gate
	backlog     int64     // see Grant
	Journal     string    // the topic through which the gate's coupons pass. Empty if there is none
	abandons    bool      // see ledger.RemoteGate.Abandons
	Existing    *Existing // campaigns that this node knows to exist
}

// The Options are what rows need to know of a node.
type Options struct {
	Secret      firstcome.Secret // makes the codes
	Fingerprint string           // identifies the secret. Empty if this process decides nothing
	Gate        string           // see Store.Gate
	Backlog     int64            // as in ledger.Options
}

// New returns the rows of a database, whose Local is News.NewCache.
func New(d *sqldb.DB, o Options) *Store {
	return &Store{DB: d, queries: byDialect[d.Dialect], Secret: o.Secret, Fingerprint: o.Fingerprint, Gate: cmp.Or(o.Gate, OwnGate), backlog: backlogOf(o.Backlog), Existing: newExisting(d)}
}

// UseGate sets the gate beside the ledger that decides this node's campaigns, and the topic through which its coupons pass. See
// ledger.RemoteGate. It must be called before Run.
func (r *Store) UseGate(name, journal string, abandons bool) {
	r.Gate, r.Journal, r.abandons = name, journal, abandons
}

// OwnGate is the gate's name in the rows of campaigns whose claims the ledger decides.
const OwnGate = "ledger"

// FirstEpoch is the epoch of a campaign whose gate was never rebuilt.
const FirstEpoch = 1

// Remote reports whether a gate beside the ledger decides this node's campaigns.
func (r *Store) Remote() bool { return r.Gate != OwnGate }

// Decides returns nil if this node decides a campaign whose row has the gate name and the fingerprint secret: see
// ledger.Reads.Decides.
func (r *Store) Decides(name, secret string) error {
	switch {
	case secret != r.Fingerprint || (name == OwnGate) == r.Remote():
		return fmt.Errorf("%w: it is decided by the gate %q with the secret of fingerprint %s, this node has the gate %q and %s",
			firstcome.ErrGateMismatch, name, secret, r.Gate, r.Fingerprint)
	case r.Gate == "":
		return fmt.Errorf("%w: %w: it is decided by %s, and this node's Redis has no name: it was emptied, or is a new one", gate.ErrGone, firstcome.ErrGateMismatch, name)
	case name != r.Gate:
		return fmt.Errorf("%w: %w: it is decided by %s, and this node's Redis is %s", gate.ErrGone, firstcome.ErrGateMismatch, name, r.Gate)
	}
	return nil
}

// CampaignUID returns a campaign's UID: see firstcome.Change. Its three parts distinguish campaigns that have the
// same ID. The ledger's identity differs between ledgers. The time of creation differs between copies of a
// ledger. The secret's fingerprint differs between campaigns with other codes.
func (r *Store) CampaignUID(createdAt time.Time, secret string) string {
	return r.DB.Identity + "." + strconv.FormatInt(createdAt.UnixMicro(), 10) + "." + secret
}

// Change calls do in a transaction, with the state of a campaign of this node's gate. It returns when the change is done or refused,
// even if ctx ends earlier: Issuer.Change, which encloses it, must not allow leases again while the change may still happen.
func (r *Store) Change(ctx context.Context, id firstcome.CampaignID, do func(t *sqldb.Tx, s Row) error) error {
	return r.ChangeAnywhere(ctx, id, func(t *sqldb.Tx, s Row) error {
		if s.Away != nil {
			return s.Away
		}
		return do(t, s)
	})
}

// ChangeAnywhere is like Change, but also changes a campaign whose gate is another Redis.
func (r *Store) ChangeAnywhere(ctx context.Context, id firstcome.CampaignID, do func(t *sqldb.Tx, s Row) error) error {
	return r.DB.Update(context.WithoutCancel(ctx), func(t *sqldb.Tx) error {
		s, err := r.RowToChange(t, id)
		switch {
		case err != nil:
			return err
		case s.Pending():
			return fmt.Errorf("%w: it has %d of %d changes", firstcome.ErrPending, s.Applied, s.Version)
		}
		return do(t, s)
	})
}

// Locked is like Change, but also runs while the gate lacks changes.
func (r *Store) Locked(ctx context.Context, id firstcome.CampaignID, do func(t *sqldb.Tx, s Row) error) error {
	return r.DB.Update(context.WithoutCancel(ctx), func(t *sqldb.Tx) error {
		s, err := r.RowToChange(t, id)
		if err == nil {
			err = s.Away
		}
		if err != nil {
			return err
		}
		return do(t, s)
	})
}
