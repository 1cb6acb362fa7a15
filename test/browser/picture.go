package browser

import (
	"context"
	"os"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Picture writes what the window shows to a file, as WebP. It does not scroll.
func (p *Page) Picture(path string) {
	p.t.Helper()
	quality := int64(82)
	ctx, over := context.WithTimeout(p.ctx, patience)
	defer over()
	picture, err := chromedp.Run(ctx, func(ctx context.Context, at *chromedp.Target) (page.CaptureScreenshotResult, error) {
		return cdp.Call(ctx, at, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, picture.Data, 0o644); err != nil { //nolint:gosec // everybody may see it
		p.t.Fatal(err)
	}
}

// Resize makes the window so many CSS pixels wide and high, each of them scale pixels of a picture.
func (p *Page) Resize(width, height int, scale float64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(int64(width), int64(height), chromedp.EmulateScale(scale)))
}

// FirstPaint returns how many milliseconds after it was asked for the page showed something.
func (p *Page) FirstPaint() float64 {
	p.t.Helper()
	return Eval[float64](p, `new Promise(told => new PerformanceObserver(seen => seen.getEntriesByName("first-contentful-paint").forEach(e => told(e.startTime))).observe({type: "paint", buffered: true}))`)
}
