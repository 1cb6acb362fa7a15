package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
)

// backup writes a snapshot of SQLite's ledger into a new file. Others may write to the ledger meanwhile. The
// new file is a ledger, too.
func (d *db) backup(ctx context.Context, file string) error {
	if d.dialect.backup != "" {
		return fmt.Errorf("a ledger on a server is backed up by the server's own tool: %s", d.dialect.backup)
	}
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("back up the ledger: %s exists", file)
	}
	copies, err := sql.Open("sqlite", dsn(d.path, nil)) // the readers' connections must not create files
	if err != nil {
		return fmt.Errorf("back up the ledger: %w", err)
	}
	defer copies.Close()
	if _, err := copies.ExecContext(ctx, `VACUUM INTO ?`, file); err != nil {
		return fmt.Errorf("back up the ledger into %s: %w", file, err)
	}
	return nil
}

// verify has SQLite check the file's pages, indexes and constraints, and returns what SQLite found wrong. It
// does not check a ledger on a server and returns nothing: the server has its own tools for that.
func (d *db) verify(ctx context.Context) ([]string, error) {
	if d.dialect.shared {
		return nil, nil
	}
	rows, err := d.read.QueryContext(ctx, `PRAGMA integrity_check`)
	wrong, err := allRows(rows, err, one[string])
	wrong = slices.DeleteFunc(wrong, func(line string) bool { return line == "ok" })
	if d.dialect.damaged(err) {
		return append(wrong, err.Error()), nil
	}
	return wrong, wrap(err, "check the ledger's file")
}
