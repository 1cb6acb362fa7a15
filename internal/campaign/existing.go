package campaign

import (
	"context"
	"database/sql"
	"errors"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// maxExisting bounds how many existing campaigns a node remembers, in some 15 MB. If it has forgotten a campaign, it asks the ledger
// again.
const maxExisting = 100_000

// Existing remembers campaigns that exist, because any user can ask for made-up ids without limit. It does not remember that a campaign is
// missing, so a campaign that another node creates is found at once.
type Existing struct {
	db  *sqldb.DB
	met *lru.Cache[firstcome.CampaignID, struct{}]
}

func newExisting(db *sqldb.DB) *Existing {
	met, err := lru.New[firstcome.CampaignID, struct{}](maxExisting)
	if err != nil {
		panic(err) // only a size below 1 is an error
	}
	return &Existing{db: db, met: met}
}

// Has reports whether a campaign is remembered.
func (e *Existing) Has(id firstcome.CampaignID) bool { return e.met.Contains(id) }

// Add remembers a campaign that exists.
func (e *Existing) Add(id firstcome.CampaignID) { e.met.Add(id, struct{}{}) }

// Remove forgets a campaign that does not exist any longer, as after a restored backup.
func (e *Existing) Remove(id firstcome.CampaignID) { e.met.Remove(id) }

// Check returns nil if a campaign exists, and firstcome.ErrNoCampaign if it does not. Unless the campaign is remembered, it does a plain
// read, which takes no connection from decisions.
func (e *Existing) Check(ctx context.Context, id firstcome.CampaignID) error {
	if e.Has(id) {
		return nil
	}
	var found int
	err := e.db.Conclude.QueryRowContext(ctx, `SELECT 1 FROM campaigns WHERE id = ?`, id).Scan(&found)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return firstcome.ErrNoCampaign
	case err == nil:
		e.Add(id)
	}
	return sqldb.Wrap(err, "read whether the campaign %s exists", id)
}
