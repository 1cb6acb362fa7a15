package ledger

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
)

// activePage is how many campaigns are read at once: some 30 kB.
const activePage = 1000

// Active returns the campaigns that recorders have to look at, in the order of their
// ids: those of this node's gate and secret that the gate has not forgotten. One that is made or
// retired meanwhile may be among them or not.
func (l *Ledger) Active(ctx context.Context) ([]firstcome.CampaignID, error) {
	var all []firstcome.CampaignID
	for after := firstcome.CampaignID(""); ; after = all[len(all)-1] {
		before := len(all)
		err := l.activeBehind(ctx, after, &all)
		if err != nil {
			return nil, fmt.Errorf("read the active campaigns: %w", err)
		}
		if len(all) < before+activePage {
			return all, nil
		}
	}
}

// activeBehind adds the next page of active campaigns to all.
func (l *Ledger) activeBehind(ctx context.Context, after firstcome.CampaignID, all *[]firstcome.CampaignID) error {
	rows, err := l.read.QueryContext(ctx, `SELECT id FROM campaigns
		WHERE gate = ? AND retired_at IS NULL AND id > ? AND secret = ? ORDER BY id LIMIT ?`, l.gate, string(after), l.fingerprint, activePage)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id firstcome.CampaignID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		*all = append(*all, id)
	}
	return rows.Err()
}
