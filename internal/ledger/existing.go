package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome"
)

// maxExisting bounds how many existing campaigns a node remembers: some 15 MB. For a campaign that it has
// forgotten it asks the ledger again. A node does not remember that a campaign is missing, so it finds a
// campaign of another node at once.
const maxExisting = 100_000

// isMadeUp reports whether there is certainly no such campaign. Anybody can ask for an id that does not
// exist. So on a server a plain read looks first, and takes no connection from decisions. If that read fails,
// the transaction that follows finds out.
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
