package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Backup writes a snapshot of SQLite's ledger into a new file, which is also a ledger. Other processes may write to
// the ledger while Backup runs. Nobody but the owner may read the copy, because coupon codes are in it.
func (d *DB) Backup(ctx context.Context, file string) error {
	if d.Dialect.backup != "" {
		return fmt.Errorf("a ledger on a server is backed up by the server's own tool: %s", d.Dialect.backup)
	}
	copies, err := sql.Open("sqlite", DSN(d.path, nil)) // the readers' connections must not create files
	if err != nil {
		return fmt.Errorf("back up the ledger: %w", err)
	}
	defer copies.Close()
	copied, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // O_EXCL also refuses a link to nothing
	if err != nil {
		return fmt.Errorf("back up the ledger: %w", err)
	}
	_, err = copies.ExecContext(ctx, `VACUUM INTO ?`, file) // it takes an empty file for a new one
	if err = errors.Join(err, copied.Close()); err != nil {
		return errors.Join(fmt.Errorf("back up the ledger into %s: %w", file, err), os.Remove(file))
	}
	return nil
}

// Verify runs SQLite's check of the file's pages, indexes and constraints, and returns its findings. For a ledger on a
// server it checks nothing and returns nil, because the server has its own tools.
func (d *DB) Verify(ctx context.Context) ([]string, error) {
	if d.Dialect.Shared {
		return nil, nil
	}
	rows, err := d.Read.QueryContext(ctx, `PRAGMA integrity_check`)
	wrong, err := AllRows(rows, err, One[string])
	wrong = slices.DeleteFunc(wrong, func(line string) bool { return line == "ok" })
	if d.Dialect.Damaged(err) {
		return append(wrong, err.Error()), nil
	}
	return wrong, Wrap(err, "check the ledger's file")
}
