package ledger

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
)

// A Range is count numbers of a campaign from First on.
type Range struct{ First, Count int64 }

// Lost returns the numbers of a campaign that were skipped because its gate lost its memory.
func (l *Ledger) Lost(ctx context.Context, id firstcome.CampaignID) ([]Range, error) {
	rows, err := l.read.QueryContext(ctx, `SELECT number, count FROM lost WHERE campaign_id = ? ORDER BY number`, string(id))
	if err != nil {
		return nil, fmt.Errorf("read the lost numbers of %s: %w", id, err)
	}
	defer rows.Close()
	var all []Range
	for rows.Next() {
		var r Range
		if err := rows.Scan(&r.First, &r.Count); err != nil {
			return nil, fmt.Errorf("read the lost numbers of %s: %w", id, err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}
