package sqldb

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// identify reads the ledger's name. If there is none and may is set, it makes one. If several nodes do so at
// once, the schema lets one succeed.
func (d *DB) identify(ctx context.Context, may bool) error {
	found, err := d.readIdentity(ctx, d.Conclude.DB)
	if err != nil || found || !may {
		return err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // which never fails
	insert := d.insertIdentity(ctx, hex.EncodeToString(random[:]))
	if found, err = d.readIdentity(ctx, d.Write); err != nil || found {
		return err
	}
	return fmt.Errorf("say which ledger this is: %w", d.Dialect.explain(`INSERT`, insert))
}

// insertIdentity uses a transaction: the commit of a single statement could be cancelled (see postgres_standby.go).
func (d *DB) insertIdentity(ctx context.Context, name string) error {
	tx, err := d.Write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it fails after a commit
	if _, err = tx.ExecContext(ctx, d.Dialect.Rebind(`INSERT INTO identity (id, ledger) VALUES (1, ?)`), name); err != nil {
		return err
	}
	return tx.Commit()
}

func (d *DB) readIdentity(ctx context.Context, db *sql.DB) (found bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT ledger FROM identity`).Scan(&d.Identity)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read which ledger this is: %w", cmp.Or(d.Dialect.lacking(ctx, db, err), d.Dialect.explain(`SELECT`, err)))
	case !isIdentity(d.Identity):
		return false, fmt.Errorf("the ledger is called %q, and a ledger's name is 1 to %d letters of English, digits, - and _: give it one, UPDATE identity SET ledger = 'staging-2026'", d.Identity, maxIdentity)
	}
	return true, nil
}

// maxIdentity is the width of the column.
const maxIdentity = 64

// isIdentity reports whether a name is fit for a ledger. Messages, UIDs and channels embed the name.
func isIdentity(name string) bool {
	other := strings.IndexFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
	})
	return other < 0 && name != "" && len(name) <= maxIdentity
}

// lacking returns an error that says what to do if the identity could not be read because its table is
// missing. The schema's version is this binary's then, but the table is not there.
func (d *Dialect) lacking(ctx context.Context, db *sql.DB, err error) error {
	if d.denied(err) {
		return nil
	}
	there, err := tablesOf(ctx, d, db)
	if err != nil || slices.Contains(there, "identity") {
		return nil
	}
	return fmt.Errorf("%w: %s", errNoIdentity, adviceRestored)
}

var errNoIdentity = errors.New("the ledger lacks the table identity, which it was made with")

const adviceRestored = "if a backup was restored, restore all of its tables; else give serve a new ledger, another file or an empty database, and make its campaigns under new ids"
