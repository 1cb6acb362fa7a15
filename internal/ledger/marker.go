package ledger

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Identity returns the random name that distinguishes the ledger from all others. It is created once, and copies
// of the ledger share it. It is empty only if no node has opened the ledger yet.
func (l *Ledger) Identity() string { return l.db.Identity }

// marker returns a campaign's marker: see firstcome.Change. Its three parts distinguish campaigns that have the
// same ID. The ledger's identity differs between ledgers. The time of creation differs between copies of a
// ledger. The secret's fingerprint differs between campaigns with other codes.
func (r *rows) marker(createdAt time.Time, secret string) string {
	return r.db.Identity + "." + strconv.FormatInt(createdAt.UnixMicro(), 10) + "." + secret
}

// Owns reports whether a marker belongs to a campaign of this ledger or of its copies, with this node's secret.
func (l *Ledger) Owns(marker string) bool {
	return strings.HasPrefix(marker, l.db.Identity+".") && strings.HasSuffix(marker, "."+l.rows.fingerprint)
}

// Whose returns the marker of a campaign, whichever gate decides it, or firstcome.ErrNoCampaign.
func (rc *Recorder) Whose(ctx context.Context, id firstcome.CampaignID) (string, error) {
	var createdAt time.Time
	var secret string
	err := rc.db.Conclude.QueryRowContext(ctx, `SELECT created_at, secret FROM campaigns WHERE id = ?`, string(id)).Scan(when(&createdAt), &secret)
	if errors.Is(err, sql.ErrNoRows) {
		return "", firstcome.ErrNoCampaign
	}
	return rc.rows.marker(createdAt, secret), sqldb.Wrap(err, "read whose campaign %s is", id)
}
