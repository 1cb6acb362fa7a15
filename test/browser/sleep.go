package browser

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Before runs a script in each document that the page opens from now on, before the document's own.
func (p *Page) Before(script string) {
	p.t.Helper()
	p.do(func(ctx context.Context, at *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, at, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return none, err
	})
}

// Freeze hides the page and stops its timers, once, as a phone does with a page whose user looks elsewhere.
func (p *Page) Freeze() {
	p.t.Helper()
	p.lifecycle(page.SetWebLifecycleStateStateFrozen)
}

// Wake ends Freeze: the page runs on, and is in sight again.
func (p *Page) Wake() {
	p.t.Helper()
	p.lifecycle(page.SetWebLifecycleStateStateActive)
	p.do(func(ctx context.Context, at *chromedp.Target) (none chromedp.Void, err error) {
		// Without a window nothing else brings a hidden page in sight.
		_, err = cdp.Call(ctx, at, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return none, err
	})
}

func (p *Page) lifecycle(state page.SetWebLifecycleStateState) {
	p.t.Helper()
	p.do(func(ctx context.Context, at *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, at, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state})
		return none, err
	})
}
