package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// checkNewer returns nil if a binary that knows the schema up to version wants may
// serve on version has, which a newer one made: the ledger says from which version
// on binaries may. A ledger that does not say so is not served.
func checkNewer(ctx context.Context, db *sql.DB, has, wants int64) error {
	var from int64
	if err := db.QueryRowContext(ctx, `SELECT compatible_from FROM compatibility`).Scan(&from); err != nil {
		return fmt.Errorf("%w (which binaries it is compatible with cannot be read: %w)", newerSchema(has, wants), err)
	}
	if from > wants {
		return fmt.Errorf("%w; it is compatible with binaries that know version %d", newerSchema(has, wants), from)
	}
	return nil
}

func newerSchema(has, wants int64) error {
	return fmt.Errorf("the ledger's schema is version %d and this firstcome knows only %d: run the newer firstcome that migrated it", has, wants)
}
