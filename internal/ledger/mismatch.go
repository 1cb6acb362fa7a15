package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// UseGate says that a gate beside the ledger decides this node's campaigns: redis:INSTANCE, or empty where that Redis
// has no name, and so decides none. It is called before Run.
func (l *Ledger) UseGate(name string) { l.gate = name }

// An OtherGate is a gate beside the ledger that campaigns name, and not this node's.
type OtherGate struct {
	Name      string
	Campaigns int // that are not retired
}

// OtherGates returns the gates, in the order of their names, of all unretired campaigns that neither the
// ledger nor this node's gate decides.
func (l *Ledger) OtherGates(ctx context.Context) (all []OtherGate, err error) {
	rows, err := l.conclude.QueryContext(ctx, `SELECT gate, count(*) FROM campaigns
		WHERE gate <> ? AND gate <> ? AND retired_at IS NULL GROUP BY gate ORDER BY gate`, gateKind, l.gate)
	all, err = allRows(rows, err, func(take scan) (g OtherGate, err error) {
		err = take(&g.Name, &g.Campaigns)
		return g, err
	})
	return all, wrap(err, "read which gates campaigns name")
}

// Mismatched returns how many campaigns have another code secret than this one, or are decided
// by the ledger where a gate beside it decides this node's, or the other way round: a node with it decides
// none of their claims (ErrGateMismatch).
func (l *Ledger) Mismatched(ctx context.Context, secret firstcome.Secret) (campaigns int, err error) {
	kind := `gate <> ?`
	if l.remote() {
		kind = `gate = ?`
	}
	err = l.conclude.QueryRowContext(ctx, `SELECT count(*) FROM campaigns WHERE `+kind+` OR secret <> ?`,
		gateKind, secret.Fingerprint()).Scan(&campaigns)
	return campaigns, wrap(err, "compare the campaigns' secrets")
}

// ErrUnnamedGate says that no campaign is made, because none can name this node's gate.
var ErrUnnamedGate = errors.New("this node's Redis has no name as a gate, so nothing was made. Its log says what to do")

// Decides returns why this node decides nothing of a campaign, or nil: firstcome.ErrGateMismatch. It is flow.ErrLost
// too where another Redis than this node's decides the campaign, because this one may be that one, emptied.
func (l *Ledger) Decides(c *Status) error { return l.decides(c.Gate, c.Secret) }

func (l *Ledger) decides(gate, secret string) error {
	switch {
	case secret != l.fingerprint || (gate == gateKind) == l.remote():
		return fmt.Errorf("%w: it is decided by the gate %q with the secret of fingerprint %s, this node has the gate %q and %s",
			firstcome.ErrGateMismatch, gate, secret, l.gate, l.fingerprint)
	case l.gate == "":
		return fmt.Errorf("%w: %w: it is decided by %s, and this node's Redis has no name: it was emptied, or is a new one", flow.ErrLost, firstcome.ErrGateMismatch, gate)
	case gate != l.gate:
		return fmt.Errorf("%w: %w: it is decided by %s, and this node's Redis is %s", flow.ErrLost, firstcome.ErrGateMismatch, gate, l.gate)
	}
	return nil
}
