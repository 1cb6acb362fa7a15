package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/firstcome/firstcome/internal/ledger"
)

type backupCmd struct {
	ledgerFlag
	outputFlag
	File string `arg:"" help:"The new file. It must not exist."`
}

func (c *backupCmd) Help() string {
	return `backup copies a ledger on SQLite only. Back up a database on a server with the database's own tools. The new file is
itself a ledger. To restore it: stop the server, move the ledger, FILE-wal and FILE-shm away, put the file in the
ledger's place, and start the server. The restored ledger does not know the coupons that were issued after the backup:
read docs/operate.md about them first. Keep the secret of the coupon codes (FILE.secret) with the backup: without the
secret, no claim on its campaigns can be decided.`
}

func (c *backupCmd) Run(ctx context.Context, t terminal) error {
	err := readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error {
		done := showProgress(ctx, t, "back up", func() course { return course{done: size(c.File), total: size(c.Ledger.path())} })
		defer done()
		return l.Backup(ctx, c.File)
	})
	if err != nil {
		return err
	}
	if err := syncFile(c.File); err != nil {
		return fmt.Errorf("make the backup durable: %w", err)
	}
	return c.print(t, map[string]any{"file": c.File, "bytes": size(c.File)}, func(w io.Writer) {
		fmt.Fprintf(w, "%s is a copy of the ledger, %d bytes.\n", c.File, size(c.File))
	})
}

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// syncFile makes a file and its name durable, and readable only by its owner: the coupon codes in it are worth money.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close(), syncDirectory(filepath.Dir(path)))
}
