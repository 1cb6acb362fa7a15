//go:build soak

package console_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"
)

// waysToLook are the languages, widths and colours in which pages are viewed.
func waysToLook() (all []browser.Look) {
	for _, language := range []string{"ko", "en"} {
		for _, width := range []int{360, 1280, 2560} {
			for _, dark := range []bool{false, true} {
				all = append(all, browser.Look{Language: language, Width: width, Dark: dark})
			}
		}
	}
	return append(all, browser.Look{Language: "en", Width: 360, NoScript: true})
}

// TestInTheBrowserEveryPageIsReadable looks at each page: nothing overflows, axe-core finds nothing, no script fails.
func TestInTheBrowserEveryPageIsReadable(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	h.proved(plain, "spring")
	b := browser.Open(t)
	paths := pagesToLookAt(t, h)
	for _, l := range waysToLook() {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			p := b.Page(t, l)
			h.loginIn(p, plain)
			for n, path := range paths {
				p.Go(h.url + path)
				const seen = `performance.getEntriesByType("navigation")[0].responseStatus + " " + document.documentElement.lang + " " + document.querySelectorAll("h1").length`
				if got, want := browser.Eval[string](p, seen), fmt.Sprint(statusOf(path), " ", l.Language, " ", 1); got != want {
					t.Errorf("%s: status, language and headings are %s, want %s", path, got, want)
				}
				wrong := p.Overflows()
				if !l.NoScript { // axe-core is a script, and the same page was checked with scripts on
					wrong = append(wrong, p.Violations()...)
				}
				for _, what := range wrong {
					t.Errorf("%s: %s", path, what)
				}
				p.Screenshot(fmt.Sprintf("%02d%s", n, strings.NewReplacer("/", "-", "?", "-", "&", "-", "=", "-").Replace(path)))
			}
		})
	}
}

// TestInTheBrowserWhatPeopleNameIsTextAndFits shows names that would run, or that cannot be broken, on each page. No part of them becomes markup, and
// none is wider than its page.
func TestInTheBrowserWhatPeopleNameIsTextAndFits(t *testing.T) {
	h := openAwkward(t)
	plain, _ := h.key(firstcome.Admin)
	b := browser.Open(t)
	// turned finds names that reverse the text after them, because they are not in an element of their own.
	const turned = `[...document.querySelectorAll("body *")].filter(e => {
		const {display, unicodeBidi} = getComputedStyle(e);
		const parts = [...e.childNodes].filter(n => n.nodeType === 1 || n.data?.trim());
		return parts.some((n, at) => n.nodeType === 3 && n.data.includes("\u202e") && (display === "inline" ? !unicodeBidi.startsWith("isolate") : at < parts.length - 1));
	}).map(e => "not apart from what stands beside it: " + e.outerHTML.slice(0, 200))`
	const markup = `(typeof owned !== "undefined" ? "it ran" : "") + document.querySelectorAll("img, script:not([src])").length`
	for _, look := range []browser.Look{{Language: "en", Width: 360}, {Language: "ko", Width: 360, Dark: true}, {Language: "en"}, {Language: "ko", Width: 2560}} {
		t.Run(look.String(), func(t *testing.T) {
			t.Parallel()
			p := b.Page(t, look)
			h.loginIn(p, plain)
			for n, path := range awkwardPages() {
				p.Go(h.url + "/console" + path)
				if got := browser.Eval[string](p, markup); got != "0" {
					t.Errorf("%s: markup of a name: %s", path, got)
				}
				for _, wrong := range slices.Concat(p.Overflows(), browser.Eval[[]string](p, turned)) {
					t.Errorf("%s: %s", path, wrong)
				}
				p.Screenshot(fmt.Sprintf("%02d", n))
			}
		})
	}
}

// TestInTheBrowserEachActionIsDoneByClicking does each action with script and without.
func TestInTheBrowserEachActionIsDoneByClicking(t *testing.T) {
	b := browser.Open(t)
	for _, noScript := range []bool{false, true} {
		look := browser.Look{Language: "en", NoScript: noScript}
		t.Run(look.String(), func(t *testing.T) {
			t.Parallel()
			openClicker(t).does(b.Page(t, look))
		})
	}
}

// TestInTheBrowserAWordExplainsItself presses a word by mouse and by keyboard, with script and without. Its explanation appears within the window.
func TestInTheBrowserAWordExplainsItself(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := browser.Open(t)
	for _, look := range []browser.Look{{Language: "ko", Width: 360}, {Language: "en", Width: 1920, Dark: true}, {Language: "en", Width: 360, NoScript: true}} {
		t.Run(look.String(), func(t *testing.T) {
			p := b.Page(t, look)
			for path, word := range map[string]string{"": "last-proof", "/campaigns/spring": "unrecorded", "/campaigns/new": "waitlist", "/campaigns/spring/steer": "line", "/campaigns/spring/terms": "answer"} {
				p.Go(h.url + "/console" + path)
				button, tip := "[popovertarget=tip-"+word+"]", `document.querySelector("#tip-`+word+`")`
				p.Press(button)
				p.Until(tip + `.matches(":popover-open")`)
				const within = `(({left, top, right, bottom}) => left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight && bottom > top)`
				p.Until(within + `(` + tip + `.getBoundingClientRect())`)
				p.Screenshot("tip-" + word)
				if !look.NoScript {
					for _, wrong := range append(p.Overflows(), p.Violations()...) {
						t.Errorf("%s: %s", path, wrong)
					}
				}
				p.Type(button, "\r") // a second press closes it
				p.Until(`!` + tip + `.matches(":popover-open")`)
			}
		})
	}
}

func TestInTheBrowserAStaleTabIsToldWhatChanged(t *testing.T) {
	h := openHouse(t)
	h.pressesInAStaleTab(browser.Open(t).Page(t, browser.Look{Language: "en"}))
}

// TestInTheBrowserADoubleClickIsOne double-clicks buttons that would change something twice. Without script the browser drops the second request, or
// the server refuses it as stale.
func TestInTheBrowserADoubleClickIsOne(t *testing.T) {
	var made, paused atomic.Int64
	h := openHouse(t, func(h *house) {
		h.asked = func(operation string, status int) {
			switch {
			case operation == "POST /console/keys":
				made.Add(1)
			case operation == "POST /console/campaigns/{id}/switch" && status < 400:
				paused.Add(1)
			}
		}
	})
	id := h.campaign("spring", 10)
	b := browser.Open(t)
	p := b.Page(t, browser.Look{Language: "en"})
	p.Go(h.url + "/console/keys")
	p.Type("[name=name]", "jun")
	p.PressTwice("form[action$='/keys'] button")
	p.Await("The new key, shown only once")
	p.Go(h.url + "/console/keys")
	if keys := browser.Eval[int](p, `document.querySelectorAll("tbody tr").length`); keys != 1 || made.Load() != 1 {
		t.Errorf("two presses made %d keys in %d requests", keys, made.Load())
	}
	for _, noScript := range []bool{false, true} {
		paused.Store(0)
		p := b.Page(t, browser.Look{Language: "en", NoScript: noScript})
		p.Go(h.url + "/console/campaigns/spring/steer")
		p.PressTwice("form[action$='/switch'] button:not([value=close])")
		p.Until(`!location.pathname.endsWith("/steer")`)
		p.Go(h.url + "/console/campaigns/spring/changes")
		if n := paused.Load(); n != 1 || h.status(id).Paused == noScript {
			t.Errorf("without script %v: two presses were %d changes, and it is paused %v", noScript, n, h.status(id).Paused)
		}
	}
}

// TestInTheBrowserAPageThatIsOpenWhenItsSessionEndsLeadsToTheLogin revokes a key while pages that update themselves are open. After a login with
// another key, people are back on their page.
func TestInTheBrowserAPageThatIsOpenWhenItsSessionEndsLeadsToTheLogin(t *testing.T) {
	h := openHouse(t, withKeys)
	h.campaign("spring", 10)
	stage.Run(t, h.config.Watcher.Run)
	revoked, key := h.key(firstcome.Admin)
	other, _ := h.key(firstcome.Admin)
	b := browser.Open(t)
	tabs := map[string]*browser.Page{}
	for path, says := range map[string]string{"/console/campaigns/spring": "nodes 1 of 1", "/console/health": "Checks"} {
		p := b.Page(t, browser.Look{Language: "en"})
		h.loginIn(p, revoked)
		p.Go(h.url + path)
		p.Await(says)
		tabs[path] = p
	}
	stage.Must(t, h.ledger.Deployment.RevokeKey(t.Context(), "a test", key.ID))
	stage.Must(t, h.auth.Reload(t.Context()))
	for path, p := range tabs {
		p.Await("Log in with your API key.")
		p.Type("input[name=key]", other)
		p.Press("main button")
		p.Until(`location.pathname === ` + browser.Quote(path))
		p.Await("mina of admin")
	}
}

// TestInTheBrowserTimesGoOnCounting stops the page's clock a second after the page was loaded.
func TestInTheBrowserTimesGoOnCounting(t *testing.T) {
	h := keysOf(t, time.Now().Truncate(time.Second))
	b := browser.Open(t)
	later := []distance{
		{0, "1초 전", "1 second ago"},
		{1, "2초 전", "2 seconds ago"},
		{59, "1분 전", "1 minute ago"},
		{90, "1분 전", "1 minute ago"},
		{59*60 + 59, "1시간 전", "1 hour ago"},
		{47 * 60 * 60, "47시간 전", "47 hours ago"},
		{1000 * 24 * 60 * 60, "1,000일 전", "1,000 days ago"},
		{-30, "29초 후", "in 29 seconds"},
		{-90 * 60, "1시간 후", "in 1 hour"},
	}
	for _, lang := range []string{"ko", "en"} {
		p := b.Page(t, browser.Look{Language: lang})
		p.Go(h.url + "/console/keys")
		browser.Eval[bool](p, `(performance.now = () => 1000, true)`)
		for _, d := range later {
			p.Until(fmt.Sprintf(`document.querySelector("time[data-age='%d']").textContent === %s`, d.age, browser.Quote(d.says(lang))))
		}
	}
}

// TestInTheBrowserEachTimeIsExactOnFocus focuses each time on each page of a phone. A screen reader gets both time zones, and the drawn text stays
// within the window.
func TestInTheBrowserEachTimeIsExactOnFocus(t *testing.T) {
	h := furnished(t)
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "later", firstcome.Terms{Name: "later", Quantity: 5, Answer: firstcome.Recorded, OpensAt: time.Now().Add(100 * time.Hour)})))
	plain, _ := h.key(firstcome.Admin)
	h.proved(plain, "spring")
	p := browser.Open(t).Page(t, browser.Look{Language: "en", Width: 360})
	h.loginIn(p, plain)
	both := regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (KST|Asia/Seoul)\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC`)
	for path, least := range map[string]int{"": 3, "/keys": 1, "/health": 1, "/audit-log": 5, "/campaigns/later": 2, "/campaigns/spring/coupons": 4, "/campaigns/spring/proof": 1, "/campaigns/spring/report": 2, "/customer?user_id=mina&campaign=spring": 2} {
		p.Go(h.url + "/console" + path)
		times := browser.Eval[int](p, `document.querySelectorAll("time").length`)
		if times < least {
			t.Errorf("%s has %d times, want %d at least", path, times, least)
		}
		for n := range times {
			tip := p.Focus(fmt.Sprintf(`document.querySelectorAll("time")[%d]`, n))
			if !both.MatchString(tip.Described) {
				t.Errorf("%s: a screen reader is told %q of time %d", path, tip.Described, n)
			}
			if tip.Left < 0 || tip.Right > 360 || tip.Right-tip.Left < 200 || tip.Top < 0 || tip.Bottom > 900 {
				t.Errorf("%s: what is drawn of time %d is at %v", path, n, tip)
			}
		}
		for _, what := range p.Overflows() {
			t.Errorf("%s: %s", path, what)
		}
		p.Screenshot("focus" + strings.NewReplacer("/", "-", "?", "-", "&", "-", "=", "-").Replace(path))
	}
}

// TestInTheBrowserTheScriptsTimesAreExactOnFocus compares the rows that the script of the Live page writes with those of the server.
func TestInTheBrowserTheScriptsTimesAreExactOnFocus(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	stage.Run(t, h.config.Watcher.Run)
	b := browser.Open(t)
	for _, lang := range []string{"ko", "en"} {
		p := b.Page(t, browser.Look{Language: lang, Width: 360})
		h.loginIn(p, plain)
		p.Go(h.url + "/console/campaigns/spring")
		p.Until(`document.querySelector("[data-pulse]").textContent.includes("1")`) // the 1 of "node of 1" shows that the script has replaced the server's rows
		p.Until(`document.querySelectorAll("[data-table] tbody time").length >= 2`)
		browser.Eval[bool](p, `(document.querySelector("details:has([data-table])").open = true)`)
		const last = `[...document.querySelectorAll("[data-table] tbody time")].at(-1)`
		at, err := time.Parse(time.RFC3339, browser.Eval[string](p, last+`.dateTime`))
		stage.Must(t, err)
		tip := p.Focus(`document.querySelector("[data-table] time[datetime='` + at.Format("2006-01-02T15:04:05.000Z") + `']")`)
		want := fmt.Sprintf("%s Asia/Seoul %s UTC", at.Add(9*time.Hour).Format("2006-01-02 15:04:05.000"), at.Format("2006-01-02 15:04:05.000"))
		if tip.Described != want {
			t.Errorf("%s: a screen reader is told %q, want %q", lang, tip.Described, want)
		}
		if tip.Left < 0 || tip.Right > 360 || tip.Right-tip.Left < 200 {
			t.Errorf("%s: what is drawn is at %v", lang, tip)
		}
		got := browser.Eval[string](p, `document.activeElement.textContent`)
		if want := at.Add(9 * time.Hour).Format("2006-01-02 15:04:05"); got != want {
			t.Errorf("%s: the table says %q, want %q", lang, got, want)
		}
		if lines := browser.Eval[int](p, `document.activeElement.getClientRects().length`); lines != 1 {
			t.Errorf("%s: a time of the table is broken into %d lines", lang, lines)
		}
		p.Screenshot("live-table-focus-" + lang)
	}
}

// TestInTheBrowserALineThatIsLoggedIsReadable views the pages that mention the log of a line.
func TestInTheBrowserALineThatIsLoggedIsReadable(t *testing.T) {
	h, away := openLogged(t)
	h.claim("drop", "mina", "jun")
	away.Store(true)
	b := browser.Open(t)
	for _, l := range []browser.Look{{Language: "ko", Width: 360}, {Language: "ko", Width: 2560, Dark: true}, {Language: "en", Width: 360, Dark: true}, {Language: "en", Width: 2560}} {
		t.Run(l.String(), func(t *testing.T) {
			p := b.Page(t, l)
			for name, path := range map[string]string{"live": "/console/campaigns/drop", "steer": "/console/campaigns/drop/steer", "untold": "/console/customer?campaign=drop&user_id=jun"} {
				p.Go(h.url + path)
				for _, what := range append(p.Overflows(), p.Violations()...) {
					t.Errorf("%s: %s", path, what)
				}
				p.Screenshot(name)
			}
		})
	}
}

// TestInTheBrowserLiveShowsWhatIsUnknownAsUnknown cuts the gate off and brings it back while a Live page is open. Badge, bar, notice and plot always
// show what a freshly loaded page would show.
func TestInTheBrowserLiveShowsWhatIsUnknownAsUnknown(t *testing.T) {
	h := openFar(t)
	h.claim(h.campaign("spring", 10), "a", "b", "c")
	stage.Run(t, h.config.Watcher.Run)
	p := browser.Open(t).Page(t, browser.Look{Language: "en"})
	p.Go(h.url + "/console/campaigns/spring")
	// loads the script once more, with access to its plots
	browser.Eval[bool](p, `(window.real = uPlot, window.drawn = {}, uPlot = function(o, d, at) { return drawn[at.dataset.plot] = new real(o, d, at); }, import(document.querySelector("script[src*=live]").src + "?again"), true)`)
	const badge, bar, notice = `document.querySelector("[data-state] .state")`, `document.querySelector("[data-share]")`, `document.querySelector("[data-why]")`
	p.Until(`drawn.course?.data[2].at(-1) === 3`)
	p.Until(badge + `.textContent === "open" && !` + bar + `.hidden && ` + bar + `.value === .3 && ` + notice + `.hidden`)
	h.gate.Set(func() { h.gate.States = func(firstcome.CampaignID, *gate.State) error { return errAway } })
	p.Until(badge + `.textContent === "unknown" && ` + bar + `.hidden && !` + notice + `.hidden`)
	p.Until(notice + `.textContent.startsWith("The gate does not answer. Last reading: 2") && ` + notice + `.querySelector("time") !== null`)
	p.Until(`drawn.course.data[2].at(-1) === null && drawn.course.data[2].includes(3)`)
	p.Screenshot("unknown")
	h.gate.Set(func() {
		h.gate.States = func(_ firstcome.CampaignID, s *gate.State) error { s.Frozen = true; return nil }
	})
	p.Until(notice + `.textContent.startsWith("The gate is being rebuilt from the ledger. ")`)
	h.gate.Set(func() { h.gate.States = nil })
	p.Until(badge + `.textContent === "open" && !` + bar + `.hidden && ` + notice + `.hidden`)
}

// TestInTheBrowserLiveCountsDownByTheServersClock sets the server's clock days ahead of the browser's.
func TestInTheBrowserLiveCountsDownByTheServersClock(t *testing.T) {
	h := openHouse(t)
	now := time.Now().Add(72 * time.Hour).Truncate(time.Second)
	h.stands(now)
	soon := firstcome.Terms{Name: "추석", Quantity: 10, OpensAt: now.Add(time.Hour), Answer: firstcome.Recorded}
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "spring", soon)))
	p := browser.Open(t).Page(t, browser.Look{Language: "ko"})
	p.Go(h.url + "/console/campaigns/spring")
	const left = `document.querySelector("[data-opens]").textContent`
	p.Until(`/^(1:00:00|0:59:5\d)$/.test(` + left + `)`)
	p.Until(`/^0:59:5\d$/.test(` + left + `)`)
}

// TestInTheBrowserTheReportPrints looks at the report of a usual drop, and presses its buttons. It fits on a sheet of paper, without buttons and without
// what is folded away.
func TestInTheBrowserTheReportPrints(t *testing.T) {
	d := opensDrop(t, openHouse, 5)
	d.passes(time.Hour)
	d.claim(d.id, "a", "b")
	d.passes(1_240 * time.Millisecond)
	d.claim(d.id, "c", "d", "e")
	for range 1_234 {
		d.counter.Claimed(d.id, firstcome.SoldOut, time.Millisecond)
	}
	d.passes(time.Hour)
	d.turns(firstcome.ChangeClose)
	d.browser().post("/console/campaigns/winter/proof", url.Values{})
	d.browser().await("/console/campaigns/winter/proof", "Verify again")
	b := browser.Open(t)
	for _, look := range []browser.Look{{Language: "ko", Width: 360}, {Language: "en", Width: 360, Dark: true}, {Language: "ko", Width: 1920, Dark: true}, {Language: "en", Width: 1920}, {Language: "en", NoScript: true}} {
		t.Run(look.String(), func(t *testing.T) {
			p := b.Page(t, look)
			p.Go(d.url + "/console/campaigns/winter/report")
			p.Screenshot("screen")
			wrong := p.Overflows()
			if !look.NoScript {
				wrong = append(wrong, p.Violations()...)
				browser.Eval[bool](p, `(window.print = () => document.title = "printed", navigator.clipboard.writeText = async text => window.copied = text, true)`)
				p.Press("[data-print]")
				p.Until(`document.title === "printed"`)
				p.Press(".copy")
				p.Until(`window.copied === document.querySelector("[data-copy]").textContent`)
			}
			if hidden := browser.Eval[bool](p, `document.querySelector("[data-print]").hidden`); hidden != look.NoScript {
				wrong = append(wrong, fmt.Sprint("the button to print is hidden: ", hidden))
			}
			p.OnPaper()
			for _, text := range []string{"인쇄", "Print", "복사", "Copy", "Go to verification"} {
				if seen := browser.Eval[bool](p, `[...document.querySelectorAll("button, .button")].some(e => e.textContent === `+browser.Quote(text)+` && e.checkVisibility())`); seen {
					wrong = append(wrong, text+" is on paper")
				}
			}
			p.Resize(703, 1032, 1) // the printed part of A4
			p.Screenshot("paper")
			if n := p.Sheets("report"); n != 1 {
				wrong = append(wrong, fmt.Sprintf("it takes %d sheets", n))
			}
			for _, what := range wrong {
				t.Error(what)
			}
		})
	}
}
