package ledger

import (
	"context"
	"fmt"
)

// Counts are what waits in the ledger for an operator or for the gate.
type Counts struct {
	Letters int64 // dead letters that are open
	Pending int64 // changes that this node's gate lacks
}

// Counts returns what waits now.
func (l *Ledger) Counts(ctx context.Context) (Counts, error) {
	var c Counts
	err := l.conclude.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL),
		(SELECT count(*) FROM campaigns c JOIN changes h ON h.campaign_id = c.id AND h.version > c.applied
			WHERE c.applied < c.version AND c.gate = ? AND c.secret = ?)`, l.gate, l.fingerprint).Scan(&c.Letters, &c.Pending)
	if err != nil {
		return c, fmt.Errorf("count what waits in the ledger: %w", err)
	}
	return c, nil
}
