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
