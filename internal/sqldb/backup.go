package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
)

// Backup writes a snapshot of SQLite's ledger into a new file, which is also a ledger. Other processes may write to
// the ledger while Backup runs.
func (d *DB) Backup(ctx context.Context, file string) error {
	if d.Dialect.backup != "" {
		return fmt.Errorf("a ledger on a server is backed up by the server's own tool: %s", d.Dialect.backup)
	}
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("back up the ledger: %s exists", file)
	}
	copies, err := sql.Open("sqlite", DSN(d.path, nil)) // the readers' connections must not create files
	if err != nil {
		return fmt.Errorf("back up the ledger: %w", err)
	}
	defer copies.Close()
	if _, err := copies.ExecContext(ctx, `VACUUM INTO ?`, file); err != nil {
		return fmt.Errorf("back up the ledger into %s: %w", file, err)
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
