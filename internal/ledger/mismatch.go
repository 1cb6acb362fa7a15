package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Beside is a gate beside the ledger, which decides a node's campaigns.
type Beside struct {
	Gate     string // redis:INSTANCE; empty: that Redis has no name, and decides no campaign
	Topic    string // of Kafka, that its coupons pass on their way to the ledger; empty: none
	Abandons bool   // an operator knows that all is recorded that passed another topic
}

// UseGate has a gate beside the ledger decide this node's campaigns. Call it before Run: a gate is opened with what the ledger says of
// itself, so the ledger is opened first. firstcome.ErrGateMismatch says that coupons that passed another topic may not be recorded.
func (l *Ledger) UseGate(ctx context.Context, b Beside) error {
	l.rows.gate, l.rows.journal, l.rows.abandons = b.Gate, b.Topic, b.Abandons
	was, err := l.JournalOf(ctx, b.Gate)
	if err == nil {
		err = l.rows.follows(was)
	}
	return err
}

// An OtherGate is a gate beside the ledger that campaigns name and that is not this node's.
type OtherGate struct {
	Name      string
	Campaigns int // unretired ones that name the gate
}

// OtherGates returns the gates, in the order of their names, of all unretired campaigns that neither the
// ledger nor this node's gate decides.
func (l *Ledger) OtherGates(ctx context.Context) (all []OtherGate, err error) {
	rows, err := l.db.Conclude.QueryContext(ctx, `SELECT gate, count(*) FROM campaigns
		WHERE gate <> ? AND gate <> ? AND retired_at IS NULL GROUP BY gate ORDER BY gate`, gateKind, l.rows.gate)
	all, err = sqldb.AllRows(rows, err, func(take sqldb.Scan) (g OtherGate, err error) {
		err = take(&g.Name, &g.Campaigns)
		return g, err
	})
	return all, sqldb.Wrap(err, "read which gates campaigns name")
}

// Mismatched returns how many campaigns a node with this secret does not decide (ErrGateMismatch): those with
// another secret, those of the ledger if the node has a gate beside the ledger, and those of a gate beside
// the ledger if the node has none.
func (l *Ledger) Mismatched(ctx context.Context, secret firstcome.Secret) (campaigns int, err error) {
	kind := `gate <> ?`
	if l.rows.remote() {
		kind = `gate = ?`
	}
	err = l.db.Conclude.QueryRowContext(ctx, `SELECT count(*) FROM campaigns WHERE `+kind+` OR secret <> ?`,
		gateKind, secret.Fingerprint()).Scan(&campaigns)
	return campaigns, sqldb.Wrap(err, "compare the campaigns' secrets")
}

// Foreign returns how many campaigns are open or will be at an instant, and how many of those this node does not decide, because they have another
// gate or code secret.
func (l *Ledger) Foreign(ctx context.Context, at time.Time) (open, others int, err error) {
	err = l.db.Conclude.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(CASE WHEN gate <> ? OR secret <> ? THEN 1 ELSE 0 END), 0) FROM campaigns
		WHERE NOT closed AND (closes_at IS NULL OR closes_at > ?)`, l.rows.gate, l.rows.fingerprint, at.UnixMicro()).Scan(&open, &others)
	return open, others, sqldb.Wrap(err, "count the campaigns of other nodes")
}

// ErrUnnamedGate says that no campaign was created, because a campaign cannot name this node's gate.
var ErrUnnamedGate = errors.New("this node's Redis has no name as a gate, so nothing was made. Its log says what to do")

// Decides returns nil if this node decides a campaign, else an error that says why not: firstcome.ErrGateMismatch.
// The error is also gate.ErrLost if the campaign names another Redis than this node's, because this node's may be
// that Redis, emptied.
func (rd *Reads) Decides(c *Status) error { return rd.rows.decides(c.Gate, c.Secret) }

func (r *rows) decides(name, secret string) error {
	switch {
	case secret != r.fingerprint || (name == gateKind) == r.remote():
		return fmt.Errorf("%w: it is decided by the gate %q with the secret of fingerprint %s, this node has the gate %q and %s",
			firstcome.ErrGateMismatch, name, secret, r.gate, r.fingerprint)
	case r.gate == "":
		return fmt.Errorf("%w: %w: it is decided by %s, and this node's Redis has no name: it was emptied, or is a new one", gate.ErrLost, firstcome.ErrGateMismatch, name)
	case name != r.gate:
		return fmt.Errorf("%w: %w: it is decided by %s, and this node's Redis is %s", gate.ErrLost, firstcome.ErrGateMismatch, name, r.gate)
	}
	return nil
}
