//go:build soak

package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"
)

const (
	liveStatus = `document.querySelector("[role=status]").textContent.trim()`
	liveBadge  = `document.querySelector("[data-state] .state").textContent`
	liveDrawn  = `document.querySelector("[data-plot=course] canvas") !== null`
)

// TestInTheBrowserLiveSaysOnceWhatHappened pauses, resumes, sells out and closes a campaign while its Live page is open. A screen reader is told each
// once, in a sentence, and nothing that counts. The page says no word that is not the page's language, and its button fits the state.
func TestInTheBrowserLiveSaysOnceWhatHappened(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 2)
	stage.Run(t, h.config.Watcher.Run)
	p := browser.Open(t).Page(t, browser.Look{Language: "en"})
	p.Go(h.url + "/console/campaigns/spring")
	p.Until(liveDrawn)
	browser.Eval[bool](p, `(window.told = [], window.badges = [],
		document.querySelectorAll("[role=status], [role=alert], [aria-live]").forEach(e => new MutationObserver(() => told.push(e.textContent.trim().replaceAll(/\d+:\d+(:\d+)? [ap]m on \d+ \w+ \(Seoul time\)/g, "…"))).observe(e, {childList: true, subtree: true, characterData: true})),
		new MutationObserver(() => badges.push(`+liveBadge+`)).observe(document.querySelector("[data-state]"), {childList: true, subtree: true}), true)`)
	turn := func(to firstcome.ChangeKind) {
		stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", id, 0, to)))
	}
	turn(firstcome.ChangePause)
	p.Until(liveStatus + ` === "It is paused." && document.querySelector(".acts button").value === "resume"`)
	turn(firstcome.ChangeResume)
	p.Until(liveStatus + ` === "It is open." && document.querySelector(".acts button").value === "pause"`)
	h.claim(id, "mina", "jun")
	p.Until(liveStatus + `.startsWith("Sold out at ")`)
	turn(firstcome.ChangeClose)
	p.Until(liveStatus + `.includes(" Closed at ") && document.querySelector(".acts button") === null`)
	told := browser.Eval[string](p, `told.join("\n").replaceAll(/(within a second|\d+ s after) of? ?the opening/g, "soon after")`)
	if want := "It is paused.\nIt is open.\nSold out at …, soon after.\nSold out at …, soon after. Closed at …."; told != want {
		t.Errorf("a screen reader is told %q, want %q", told, want)
	}
	if got := browser.Eval[string](p, `[...new Set(badges)].join()`); got != "paused,open,sold out,closed" && got != "open,paused,sold out,closed" {
		t.Errorf("the badge said %s", got)
	}
}

// TestInTheBrowserLiveDoesNotFallBackAfterAChange opens Live after a change that the last sample does not know.
func TestInTheBrowserLiveDoesNotFallBackAfterAChange(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 2)
	turn := func(to firstcome.ChangeKind) {
		stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", id, 0, to)))
	}
	turn(firstcome.ChangePause)
	_, stop := h.config.Watcher.Watch(id)
	defer stop()
	h.config.Watcher.Tick(t.Context())
	turn(firstcome.ChangeResume)
	p := browser.Open(t).Page(t, browser.Look{Language: "en"})
	p.Go(h.url + "/console/campaigns/spring")
	p.Until(liveDrawn)
	if got := browser.Eval[string](p, liveBadge); got != "open" {
		t.Errorf("the badge says %s", got)
	}
	h.config.Watcher.Tick(t.Context())
	p.Until(`document.querySelectorAll("[data-table] tbody tr").length === 2 && ` + liveBadge + ` === "open"`)
}

// TestInTheBrowserLiveSaysWhatAnEmptyPlotWaitsFor looks at plots before anything happened, and at their legends before and after. Of a line with a
// pace it says when it will have sold out, of an open campaign without claims nothing.
func TestInTheBrowserLiveSaysWhatAnEmptyPlotWaitsFor(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "line", firstcome.Terms{Name: "추석", Quantity: 1000, Answer: firstcome.Recorded, Pace: &firstcome.Pace{PerSecond: 5}})))
	stage.Run(t, h.config.Watcher.Run)
	p := browser.Open(t).Page(t, browser.Look{Language: "en"})
	const empty = `[...document.querySelectorAll(".plots p:not([hidden], .logged)")].map(e => e.textContent).join(" ")`
	const legend = `[...document.querySelectorAll(".legend [data-kind]:not([hidden])")].map(e => e.textContent).join()`
	const soon = `document.querySelector("[data-soon]:not([hidden])")?.textContent`
	p.Go(h.url + "/console/campaigns/spring")
	p.Until(`document.querySelector("[data-pulse]").textContent.startsWith("nodes 1")`)
	p.Until(empty + ` === "It is drawn once there are claims. It is drawn from the first coupon on. It is drawn once claims are answered." && ` + legend + ` === ""`)
	h.counter.Claimed("spring", firstcome.SoldOut, time.Millisecond)
	h.claim("spring", "mina")
	p.Until(legend + ` === "sold out" && !` + empty + `.includes("first coupon")`)
	if got := browser.Eval[string](p, soon+` ?? ""`); got != "" {
		t.Errorf("it says %q", got)
	}
	h.claim(h.campaign("earlier", 10), "mina", "jun")
	p.Go(h.url + "/console/campaigns/earlier")
	p.Until(legend + ` === "issued"`) // by the ledger: no node counted them
	p.Go(h.url + "/console/campaigns/line")
	p.Until(empty + `.endsWith("It is drawn once people wait.")`)
	h.claim("line", "mina", "jun")
	p.Until(soon + ` === "sold out in about 3 min" && !` + empty + `.includes("people wait")`)
}

// TestInTheBrowserLiveFitsAWall shows Live on two screens without scrolling: the state, the number and three plots, and no navigation. It goes on by
// itself.
func TestInTheBrowserLiveFitsAWall(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 1_000_000)
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "line", firstcome.Terms{Name: "추석", Quantity: 1000, Answer: firstcome.Recorded, Pace: &firstcome.Pace{PerSecond: 5}})))
	h.claim("line", "mina", "jun")
	stage.Run(t, h.config.Watcher.Run)
	b := browser.Open(t)
	for n, size := range []struct {
		look          browser.Look
		height, least int
	}{{browser.Look{Language: "ko", Width: 1920}, 1080, 140}, {browser.Look{Language: "en", Width: 1920, Dark: true}, 1080, 140}, {browser.Look{Language: "en", Width: 1366}, 768, 100}, {browser.Look{Language: "ko", Width: 1366, Dark: true}, 768, 100}} {
		t.Run(fmt.Sprint(size.look, "x", size.height), func(t *testing.T) {
			p := b.Page(t, size.look)
			p.Resize(size.look.Width, size.height, 1)
			for _, campaign := range []string{"spring", "line"} {
				p.Go(h.url + "/console/campaigns/" + campaign + "?wall")
				p.Until(liveDrawn)
				const fits = `(() => {
					const within = e => (({left, top, right, bottom}) => left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight)(e.getBoundingClientRect());
					const root = document.documentElement;
					const wrong = [...document.querySelectorAll(".count, [data-state], [role=status], .plot canvas, .plots h2, .legend span:not([hidden])")].filter(e => !within(e)).map(e => e.outerHTML.slice(0, 90));
					if (root.scrollHeight > innerHeight || root.scrollWidth > innerWidth) wrong.push("scrolls");
					if (document.querySelector("nav, header, form")) wrong.push("navigation");
					const plots = [...document.querySelectorAll(".plot canvas")].map(e => e.getBoundingClientRect().height);
					if (plots.length !== 3 || plots.some(height => height < innerHeight * .3)) wrong.push("plots of " + plots);
					return wrong;
				})()`
				p.Until(`document.querySelector("[data-pulse]").textContent.includes("1")`)
				p.Until(fits + `.length === 0`) // plots follow what is above them
				for _, wrong := range append(p.Overflows(), p.Violations()...) {
					t.Errorf("%s: %s", campaign, wrong)
				}
				if got := browser.Eval[float64](p, `parseFloat(getComputedStyle(document.querySelector(".count strong")).fontSize)`); got < float64(size.least) {
					t.Errorf("%s: the number is %v pixels high", campaign, got)
				}
				p.Screenshot("wall-" + campaign)
			}
			p.Go(h.url + "/console/campaigns/spring?wall")
			h.claim(id, fmt.Sprint("user-", n))
			p.Until(fmt.Sprintf(`document.querySelector("[data-f=in_force]").textContent === "%d"`, n+1))
		})
	}
}

// TestInTheBrowserWordsStandLevel compares the heads of tables and of figures: a word that explains itself stands no lower than one beside it. On a
// phone navigation leaves the window to the page.
func TestInTheBrowserWordsStandLevel(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	b := browser.Open(t)
	const uneven = `[...document.querySelectorAll("thead tr, .tiles")].flatMap(row => {
		const tops = new Map();
		for (const e of row.querySelectorAll("th, dt")) {
			const text = document.createTreeWalker(e, NodeFilter.SHOW_TEXT).nextNode(), range = document.createRange();
			if (!text || getComputedStyle(e).clipPath !== "none") continue;
			range.selectNodeContents(text);
			const at = range.getBoundingClientRect(), line = Math.round(e.getBoundingClientRect().top);
			if (tops.has(line) && Math.abs(tops.get(line) - at.top) > 1) return [text.data + " is " + (at.top - tops.get(line)) + " px off"];
			tops.set(line, at.top);
		}
		return [];
	})`
	for _, width := range []int{360, 1280} {
		p := b.Page(t, browser.Look{Language: "ko", Width: width})
		h.loginIn(p, plain)
		for n, path := range []string{"", "/campaigns/spring", "/health", "/campaigns/spring/coupons", "/recording", "/keys"} {
			p.Go(h.url + "/console" + path)
			wrong := append(browser.Eval[[]string](p, uneven), p.Overflows()...)
			if high := browser.Eval[float64](p, `document.querySelector("main").getBoundingClientRect().top + scrollY`); width == 360 && high > 180 {
				wrong = append(wrong, fmt.Sprintf("navigation is %v px high", high))
			}
			for _, what := range append(wrong, p.Violations()...) {
				t.Errorf("%d, %s: %s", width, path, what)
			}
			p.Screenshot(fmt.Sprintf("level-%d-%d", width, n))
		}
	}
}
