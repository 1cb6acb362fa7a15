package sqlgate

import (
	"context"
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome"
)

// maxExisting bounds how many existing campaigns a node remembers, in some 15 MB. If it has forgotten a campaign, it asks the ledger
// again. A node does not remember that a campaign is missing, so it finds a campaign that another node creates at once.
const maxExisting = 100_000

// isMadeUp reports whether a campaign certainly does not exist. Any user can claim with a made-up id. So on a server, isMadeUp first
// does a plain read, which takes no connection from decisions. If the read fails, isMadeUp returns false, and the transaction that follows
// checks the id.
func (g *Gate) isMadeUp(ctx context.Context, id firstcome.CampaignID) bool {
	if !g.db.Dialect.Shared || g.existing.Contains(id) {
		return false
	}
	var found int
	err := g.db.Conclude.QueryRowContext(ctx, `SELECT 1 FROM campaigns WHERE id = ?`, id).Scan(&found)
	if err == nil {
		g.existing.Add(id, struct{}{})
	}
	return errors.Is(err, sql.ErrNoRows)
}
