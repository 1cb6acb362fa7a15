package ledger

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// leavers is audit.Source's.
func (b *Books) leavers(ctx context.Context, id firstcome.CampaignID, each func(audit.Ticket)) error {
	return every(ctx, b, "who left the line", each, func(take scan) (t audit.Ticket, err error) {
		err = take(&t.Generation, &t.User, &t.Number)
		return t, err
	}, `SELECT generation, user_id, through FROM leavers WHERE campaign_id = ? ORDER BY generation, user_id`, string(id))
}
