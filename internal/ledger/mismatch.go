package ledger

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
)

// Mismatched returns how many campaigns have another gate or another code secret
// than this one: a node with it decides none of their claims (ErrGateMismatch).
func (l *Ledger) Mismatched(ctx context.Context, secret firstcome.Secret) (campaigns int, err error) {
	err = l.conclude.QueryRowContext(ctx, `SELECT count(*) FROM campaigns WHERE gate <> ? OR secret <> ?`,
		l.gate, secret.Fingerprint()).Scan(&campaigns)
	if err != nil {
		return 0, fmt.Errorf("compare the campaigns' secrets: %w", err)
	}
	return campaigns, nil
}

// Decides returns firstcome.ErrGateMismatch if this node decides nothing of a campaign, because it has another gate or code secret.
func (l *Ledger) Decides(c *Status) error { return l.decides(c.Gate, c.Secret) }

func (l *Ledger) decides(gate, secret string) error {
	if gate == l.gate && secret == l.fingerprint {
		return nil
	}
	return fmt.Errorf("%w: it is decided by the gate %q with the secret of fingerprint %s, this node has the gate %q and %s",
		firstcome.ErrGateMismatch, gate, secret, l.gate, l.fingerprint)
}
