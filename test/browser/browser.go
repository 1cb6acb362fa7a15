// Package browser drives a real browser for tests: Debian's chromium, without a window. Whatever a page throws, and
// whatever its own security policy forbids, fails the test.
package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds every wait: a busy machine takes ten seconds for a page.
const patience = 90 * time.Second

// pause is how long Until waits before it asks again: who asks all the time takes the processor from the page.
const pause = 20 * time.Millisecond

// axe is axe-core 4.14.1 of its npm package: MPL 2.0, see testdata/axe.LICENSE.
//
//go:embed testdata/axe.min.js
var axe string

// A Browser is one chromium. Its pages are tabs, which may be used side by side.
type Browser struct{ ctx context.Context }

// Open starts a chromium that ends with the test.
func Open(t testing.TB) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // chromium does not sandbox for root
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("end chromium: %v", err)
		}
		end()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium, which .ci/install installs: %v", err)
	}
	return &Browser{ctx}
}

// A Look says how a visitor looks at a page. The zero value of a field is its default.
type Look struct {
	Width    int    // in CSS pixels; default 1280
	Language string // default ko
	Dark     bool
	NoScript bool // the page's own scripts do not run
}

// String names the look, for files and tests.
func (l Look) String() string {
	l = l.withDefaults()
	name := fmt.Sprintf("%s-%d", l.Language, l.Width)
	if l.Dark {
		name += "-dark"
	}
	if l.NoScript {
		name += "-noscript"
	}
	return name
}

func (l Look) withDefaults() Look {
	if l.Width == 0 {
		l.Width = 1280
	}
	if l.Language == "" {
		l.Language = "ko"
	}
	return l
}

// A Page is one visitor's tab, with cookies of its own.
type Page struct {
	t        testing.TB
	ctx      context.Context
	noScript bool

	mu       sync.Mutex // guards problems
	problems []string
}

// Page opens a tab that closes with the test. What goes wrong in it fails the test.
func (b *Browser) Page(t testing.TB, l Look) *Page {
	t.Helper()
	l = l.withDefaults()
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &Page{t: t, ctx: ctx, noScript: l.NoScript}
	t.Cleanup(func() {
		defer end()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Errorf("the page: %s", problem)
		}
	})
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	p.do(func(ctx context.Context, at *chromedp.Target) (none chromedp.Void, err error) {
		if _, err = cdp.Call(ctx, at, log.Enable, cdp.Empty{}); err != nil {
			return none, err
		}
		if _, err = cdp.Call(ctx, at, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
			return none, err
		}
		if _, err = cdp.Call(ctx, at, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.NoScript}); err != nil {
			return none, err
		}
		_, err = cdp.Call(ctx, at, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: "firstcome test", AcceptLanguage: l.Language})
		return none, err
	}, chromedp.EmulateViewport(int64(l.Width), 900))
	return p
}

// hear collects what went wrong. That a server refuses a request is no error of the page.
func (p *Page) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.saw("an exception: " + e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" && e.Entry.Source != "network" {
			p.saw(fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	}
}

func (p *Page) saw(problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, problem)
}

func (p *Page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, over := context.WithTimeout(p.ctx, patience)
	defer over()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// Go opens a URL and waits until the page is loaded. A page that loads again by itself may abort that: then it is opened again.
func (p *Page) Go(url string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; {
		ctx, over := context.WithDeadline(p.ctx, end)
		err := chromedp.Do(ctx, chromedp.Navigate(url))
		over()
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "net::ERR_ABORTED") || time.Now().After(end) {
			p.t.Fatalf("open %s: %v", url, err)
		}
	}
}

// Press clicks an element as a mouse does, as soon as it can be seen.
func (p *Page) Press(selector string) {
	p.t.Helper()
	p.touch(chromedp.ScrollIntoView(chromedp.CSS(selector), chromedp.NodeVisible))
	p.drawn()
	p.touch(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// drawn waits until the page is drawn as it was scrolled: a press hits what is drawn. Without script it does not wait.
func (p *Page) drawn() {
	p.t.Helper()
	if p.noScript {
		return
	}
	const frames = `document.hidden || new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))`
	steadily(p, func(ctx context.Context) (bool, error) {
		return chromedp.Run(ctx, chromedp.Evaluate[bool](frames, chromedp.EvalAwaitPromise))
	})
}

// PressTwice presses an element twice, the second time before anything came of the first.
func (p *Page) PressTwice(selector string) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(chromedp.CSS(selector)))
	Eval[bool](p, `(e => { e.click(); e.click(); return true; })(document.querySelector(`+Quote(selector)+`))`)
}

// Download presses an element that leads to a file, and returns the file.
func (p *Page) Download(selector string) []byte {
	p.t.Helper()
	ctx, over := context.WithTimeout(p.ctx, patience)
	defer over()
	dir, events := p.t.TempDir(), true
	progress := chromedp.BrowserEvents(ctx, browser.DownloadProgress)
	_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID, DownloadPath: dir, EventsEnabled: &events,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Press(selector)
	for at, err := range progress {
		if err != nil {
			p.t.Fatalf("a download: %v", err)
		}
		switch at.State {
		case browser.DownloadProgressStateCanceled:
			p.t.Fatal("a download was cut")
		case browser.DownloadProgressStateCompleted:
			file, err := os.ReadFile(filepath.Join(dir, at.GUID))
			if errors.Is(err, fs.ErrNotExist) {
				continue // of another page
			}
			if err != nil {
				p.t.Fatal(err)
			}
			return file
		}
	}
	p.t.Fatal("a download did not end")
	return nil
}

// Type replaces the value of an input by typing. It sets the value of a date without keys: the order of a date's parts in the field depends on the
// browser's language.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.do(chromedp.WaitReady(chromedp.CSS(selector)))
	input := `document.querySelector(` + Quote(selector) + `)`
	if Eval[bool](p, input+`.type === "datetime-local" && (`+input+`.value = `+Quote(text)+`, true)`) {
		return
	}
	Eval[bool](p, input+`.value = "", true`)
	p.touch(chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// touch does something to an element. If the page is loaded again just then, the element is gone before anything was done to it, and touch
// looks for it again.
func (p *Page) touch(step chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	const gone = "Could not find node with given id"
	again(p, func(err error) bool { return strings.Contains(err.Error(), gone) }, func(ctx context.Context) (chromedp.Void, error) {
		return chromedp.Void{}, chromedp.Do(ctx, step)
	})
}

// Eval returns the value of an expression in the page, also of a promise's. It works without script, too.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	ctx, over := context.WithTimeout(p.ctx, patience)
	defer over()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Text returns what somebody reads on the page.
func (p *Page) Text() string {
	p.t.Helper()
	return strings.Join(strings.Fields(Eval[string](p, `document.body ? document.body.innerText : ""`)), " ")
}

// Await waits until the page says something.
func (p *Page) Await(text string) {
	p.t.Helper()
	p.Until(`!!document.body && document.body.innerText.replace(/\s+/g, " ").includes(` + Quote(text) + `)`)
}

// Gone waits until the page has nothing that a selector selects.
func (p *Page) Gone(selector string) {
	p.t.Helper()
	p.Until(`!document.querySelector(` + Quote(selector) + `)`)
}

// Until waits until an expression is true in the page. A page that is just replaced by another cannot be asked: it is asked
// again.
func (p *Page) Until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; {
		ctx, over := context.WithDeadline(p.ctx, end)
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		over()
		if holds && err == nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-p.ctx.Done():
		}
		if time.Now().After(end) || p.ctx.Err() != nil {
			p.t.Fatalf("never %s: %v: the page says %s", expression, err, p.Text())
		}
	}
}

// Overflows returns what is wider than the window or than its own box, where nothing scrolls.
func (p *Page) Overflows() []string {
	p.t.Helper()
	const found = `(() => {
		const wrong = [];
		const root = document.documentElement;
		if (root.scrollWidth > root.clientWidth) wrong.push("the page is " + root.scrollWidth + " wide in " + root.clientWidth);
		const scrolls = e => { for (; e; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; return false; };
		const hidden = e => getComputedStyle(e).clipPath !== "none" || !e.checkVisibility();
		for (const e of document.querySelectorAll("body *")) {
			if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue; // what has no text of its own
			if (e.closest("svg, canvas, .uplot, template, input, select, textarea") || hidden(e) || scrolls(e)) continue;
			if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline") wrong.push((e.className || e.tagName) + ": " + e.textContent.trim().slice(0, 60));
		}
		return wrong;
	})()`
	return steadily(p, func(ctx context.Context) ([]string, error) {
		return chromedp.Run(ctx, chromedp.Evaluate[[]string](found))
	})
}

// Violations returns what axe-core finds wrong for people who use a keyboard or a screen reader.
func (p *Page) Violations() []string {
	p.t.Helper()
	return steadily(p, func(ctx context.Context) ([]string, error) {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](axe+"; true")); err != nil {
			return nil, err
		}
		const still = `Promise.allSettled(document.getAnimations().filter(a => a.effect.getComputedTiming().endTime < Infinity).map(a => a.finished)).then(() => true)`
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](still, chromedp.EvalAwaitPromise)); err != nil {
			return nil, err
		}
		const found = `axe.run({resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`
		return chromedp.Run(ctx, chromedp.Evaluate[[]string](found, chromedp.EvalAwaitPromise))
	})
}

// Screenshot keeps a picture of the whole page among the test's artifacts, if go test -artifacts keeps any.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	if kept := flag.Lookup("test.artifacts"); kept == nil || kept.Value.String() != "true" {
		return
	}
	png := steadily(p, func(ctx context.Context) ([]byte, error) { return chromedp.Run(ctx, chromedp.FullScreenshot(100)) })
	if err := os.WriteFile(filepath.Join(p.t.ArtifactDir(), name+".png"), png, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// steadily asks a page that loads itself again: whoever asks just then is told that the page is gone, and asks again.
func steadily[T any](p *Page, ask func(context.Context) (T, error)) T {
	p.t.Helper()
	return again(p, isGone, ask)
}

// again asks until there is no error that may pass.
func again[T any](p *Page, passes func(error) bool, ask func(context.Context) (T, error)) T {
	p.t.Helper()
	for end := time.Now().Add(patience); ; {
		ctx, over := context.WithDeadline(p.ctx, end)
		answer, err := ask(ctx)
		over()
		if err == nil {
			return answer
		}
		if !passes(err) || time.Now().After(end) {
			p.t.Fatal(err)
		}
	}
}

func isGone(err error) bool {
	return slices.ContainsFunc([]string{"Not attached to an active page", "context was destroyed", "Cannot find context", "navigated", "Promise was collected", "axe is not defined"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// Quote returns a text as JavaScript has it.
func Quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text
	}
	return string(quoted)
}
