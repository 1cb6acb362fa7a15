package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Beside describes the remote gate that decides a node's campaigns.
type Beside struct {
	Gate     string // redis:INSTANCE, or empty if that Redis has no name. A Redis without a name decides no campaign
	Topic    string // the Kafka topic that carries its coupons to the ledger, or empty if there is none
	Abandons bool   // an operator has confirmed that all coupons of another topic are recorded
}

// UseGate sets the remote gate that decides this node's campaigns. Call it before Run. A gate needs the ledger's
// identity to open, so the ledger is opened first. firstcome.ErrGateMismatch means that another topic may hold
// coupons that are not recorded yet.
func (l *Ledger) UseGate(ctx context.Context, b Beside) error {
	l.rows.useGate(b.Gate, b.Topic, b.Abandons)
	was, err := l.JournalOf(ctx, b.Gate)
	if err == nil {
		err = l.rows.follows(was)
	}
	return err
}

// An OtherGate is a remote gate that campaigns name and that is not this node's gate.
type OtherGate struct {
	Name      string
	Campaigns int // unretired campaigns that name the gate
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

// Mismatched returns how many campaigns a node with this secret does not decide (ErrGateMismatch). These have
// another secret, or the other kind of gate: the ledger if the node has a remote gate, and a remote gate if the
// node has none.
func (l *Ledger) Mismatched(ctx context.Context, secret firstcome.Secret) (campaigns int, err error) {
	kind := `gate <> ?`
	if l.rows.remote() {
		kind = `gate = ?`
	}
	err = l.db.Conclude.QueryRowContext(ctx, `SELECT count(*) FROM campaigns WHERE `+kind+` OR secret <> ?`,
		gateKind, secret.Fingerprint()).Scan(&campaigns)
	return campaigns, sqldb.Wrap(err, "compare the campaigns' secrets")
}

// Foreign returns how many campaigns are open at the time at or open later. others is how many of them this node
// does not decide, because they have another gate or code secret.
func (l *Ledger) Foreign(ctx context.Context, at time.Time) (open, others int, err error) {
	err = l.db.Conclude.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(CASE WHEN gate <> ? OR secret <> ? THEN 1 ELSE 0 END), 0) FROM campaigns
		WHERE NOT closed AND (closes_at IS NULL OR closes_at > ?)`, l.rows.gate, l.rows.fingerprint, at.UnixMicro()).Scan(&open, &others)
	return open, others, sqldb.Wrap(err, "count the campaigns of other nodes")
}

// Decides returns nil if this node decides a campaign, and otherwise firstcome.ErrGateMismatch with the reason. The
// error is also gate.ErrLost if the campaign names another Redis, because this node's Redis may be that Redis after
// it was emptied.
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
