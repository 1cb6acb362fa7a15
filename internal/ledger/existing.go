package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome"
)

// maxExisting bounds how many campaigns a node remembers to have seen: some 15 MB. What is forgotten is
// seen again. Missing ones it does not remember, so a campaign that another node makes is there at once.
const maxExisting = 100_000

// isMadeUp tells whether there is certainly no such campaign. Anybody can ask for one, so on a server a plain
// read finds out, apart from the connections that decide. What it cannot tell, a transaction will.
func (l *Ledger) isMadeUp(ctx context.Context, id firstcome.CampaignID) bool {
	if !l.dialect.shared || l.existing.Contains(id) {
		return false
	}
	var found int
	err := l.conclude.QueryRowContext(ctx, `SELECT 1 FROM campaigns WHERE id = ?`, id).Scan(&found)
	if err == nil {
		l.existing.Add(id, struct{}{})
	}
	return errors.Is(err, sql.ErrNoRows)
}
