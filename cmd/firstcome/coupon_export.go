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
	Format string    `variable:"none" enum:"csv,ndjson" default:"csv" help:"Write csv, or ndjson: a line of JSON a coupon (default: csv)."`
	To     string    `variable:"none" placeholder:"FILE" help:"The file to write, which must not be there (default: standard output). It is there only once all coupons are in it."`
	Voided bool      `variable:"none" help:"Voided ones too."`
	Excel  bool      `variable:"none" help:"CSV that Excel opens as it is meant: with Korean as it is, ids and codes as texts, and dates."`
	TZ     zoneName  `name:"tz" placeholder:"ZONE" help:"The zone of instants in CSV, like Asia/Seoul (default: UTC)."`
}

func (c *couponExportCmd) Run(ctx context.Context, t terminal) error {
	export := client.Export{NDJSON: c.Format == "ndjson", Voided: c.Voided, Excel: c.Excel}
	if !export.NDJSON { // of which all times are UTC, whatever FIRSTCOME_TZ is for other commands
		export.Zone = string(c.TZ)
	}
	calls := client.New(string(c.Server), t.variable(keyVariable))
	defer calls.CloseIdle()
	if c.To == "" {
		return explain(calls.ExportCoupons(ctx, c.ID, export, t.raw()))
	}
	if _, err := os.Lstat(c.To); !errors.Is(err, os.ErrNotExist) {
		return usageError{fmt.Errorf("--to: there is something at %s already: name another file", c.To)}
	}
	if _, err := os.Stat(filepath.Dir(c.To)); err != nil {
		return usageError{fmt.Errorf("--to: there is no directory for it: %w", err)}
	}
	return explain(wholeFile(c.To, func(w io.Writer) error { return calls.ExportCoupons(ctx, c.ID, export, w) }))
}

// wholeFile makes a file of what write writes. It gets its name once it is complete and on the disk: nobody finds a part.
// Only its owner can read it.
func wholeFile(path string, write func(io.Writer) error) (err error) {
	part, err := os.CreateTemp(filepath.Dir(path), ".firstcome-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }() // after the rename there is none
	if err := errors.Join(write(part), part.Sync(), part.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(part.Name(), path), syncDirectory(filepath.Dir(path)))
}
