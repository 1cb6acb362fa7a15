package browser

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Sheets prints the page and returns how many sheets of paper it takes. The file is kept among the test's artifacts, if go test -artifacts keeps any.
func (p *Page) Sheets(name string) int {
	p.t.Helper()
	pdf := steadily(p, func(ctx context.Context) ([]byte, error) {
		sized := true
		printed, err := chromedp.Run(ctx, func(ctx context.Context, at *chromedp.Target) (page.PrintToPDFResult, error) {
			return cdp.Call(ctx, at, page.PrintToPDF, page.PrintToPDFParams{PreferCSSPageSize: &sized})
		})
		return printed.Data, err
	})
	if kept := flag.Lookup("test.artifacts"); kept != nil && kept.Value.String() == "true" {
		if err := os.WriteFile(filepath.Join(p.t.ArtifactDir(), name+".pdf"), pdf, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	return bytes.Count(pdf, []byte("/Type /Page\n"))
}

// OnPaper shows the page as it is printed.
func (p *Page) OnPaper() {
	p.t.Helper()
	p.do(func(ctx context.Context, at *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, at, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return none, err
	})
}
