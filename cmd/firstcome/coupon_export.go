package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/firstcome/firstcome/client"
)

type couponExportCmd struct {
	Server serverURL `default:"${server}" placeholder:"URL" help:"The server (default: ${server}). Its API key is read from FIRSTCOME_KEY."`
	ID     string    `arg:"" help:"The campaign's id."`
	To     string    `variable:"none" placeholder:"FILE" help:"The file to write (default: standard output). It must not exist, and appears only once it has all coupons."`
	Voided bool      `variable:"none" help:"Also write voided coupons."`
	Excel  bool      `variable:"none" help:"Write CSV that Excel opens correctly: Korean is readable, ids and codes are text, and times are dates."`
	TZ     zoneName  `name:"tz" placeholder:"ZONE" help:"Time zone of times in CSV, like Asia/Seoul (default: UTC)."`
}

func (c *couponExportCmd) Run(ctx context.Context, t terminal) error {
	export := client.Export{Voided: c.Voided, Excel: c.Excel, Zone: string(c.TZ)}
	calls := client.New(string(c.Server), t.variable(keyVariable))
	defer calls.CloseIdle()
	if c.To == "" {
		return explain(calls.ExportCoupons(ctx, c.ID, export, t.raw()))
	}
	if _, err := os.Lstat(c.To); !errors.Is(err, os.ErrNotExist) {
		return usageError{fmt.Errorf("--to: %s already exists: name another file", c.To)}
	}
	if _, err := os.Stat(filepath.Dir(c.To)); err != nil {
		return usageError{fmt.Errorf("--to: cannot find the directory of the file: %w", err)}
	}
	return explain(wholeFile(c.To, func(w io.Writer) error { return calls.ExportCoupons(ctx, c.ID, export, w) }))
}

// wholeFile creates a file with the bytes that write writes. The file gets its name once it is complete and on disk, so readers never find a part of
// it. Only its owner can read it.
func wholeFile(path string, write func(io.Writer) error) (err error) {
	part, err := os.CreateTemp(filepath.Dir(path), ".firstcome-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }() // fails after the rename, when this name is gone
	if err := errors.Join(write(part), part.Sync(), part.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(part.Name(), path), syncDirectory(filepath.Dir(path)))
}
