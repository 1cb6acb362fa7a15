package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/listfile"
)

type codesCmd struct {
	Import codesImportCmd `cmd:"" help:"Import codes of another system: the n-th coupon of a prize gets the n-th code."`
}

type codesImportCmd struct {
	oneCampaign
	Prize string `variable:"none" placeholder:"ID" help:"The prize whose coupons get the codes. Leave it out if the campaign has no prizes."`
	File  string `arg:"" help:"The file: CSV whose first line has the heading code, or - for standard input. All its codes are imported, or none."`
}

func (c *codesImportCmd) Run(ctx context.Context, t terminal) error {
	in, err := openFile(t, c.File)
	if err != nil {
		return usageError{err}
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", c.File, err)
	}
	if err := c.mistakes(listfile.CSV(text)); err != nil {
		return usageError{err}
	}
	calls := c.client(t)
	defer calls.CloseIdle()
	done, err := calls.ImportCodes(ctx, c.ID, c.Prize, bytes.NewReader(text))
	return answered(t, func(t terminal, done client.ImportedList) error {
		return c.print(t, done, func(w io.Writer) { fmt.Fprintf(w, "added\t%d\nentries\t%d\n", done.Added, done.Entries) })
	})(done, err)
}

// mistakes returns the mistakes of the file, or nil.
func (c *codesImportCmd) mistakes(file *listfile.Codes) error {
	var errs []error
	for _, m := range file.Wrong {
		errs = append(errs, fmt.Errorf("%s line %d: %s", c.File, m.Line, m.Reason))
	}
	if file.Missed > 0 {
		errs = append(errs, fmt.Errorf("%s has %s more", c.File, counted(int64(file.Missed), "mistake", "s")))
	}
	return errors.Join(errs...)
}
