//go:build !check && (!race || soak)

package main

import (
	"fmt"
	"testing"

	"github.com/firstcome/firstcome/test/browser"
)

// asleep stops each timer of the page that is longer than 5 s, so that nothing but waking has it ask again. It counts what became of the page.
const asleep = `(() => {
	const timer = window.setTimeout;
	window.setTimeout = (act, ms, ...more) => ms > 5000 ? 0 : timer(act, ms, ...more);
	window.frozen = 0;
	document.addEventListener("freeze", () => window.frozen++);
})()`

// sleepers opens the page of a scripted server for guests whose devices will sleep.
func sleepers(t *testing.T) (*scripted, []*guest, string) {
	server, guests, shop := scripts(t)
	for _, g := range guests {
		g.Before(asleep)
	}
	return server, guests, shop
}

// sleepsWhile freezes the guest's page while something happens.
func (g *guest) sleepsWhile(happens func()) {
	g.t.Helper()
	g.Freeze()
	happens()
	g.Wake()
	g.Until(`window.frozen === 1`)
}

// The campaign an hour before it opens, and after it opened. To the page that hour is no time: so it is where its clock stands still while the
// device sleeps.
var (
	anHourBefore = state("not_open", 9, 9, `,"opens_at":"2031-05-05T01:59:59.000000Z"`)
	anHourLater  = state("open", 9, 8, `,"opens_at":"2031-05-05T02:00:00.000000Z","server_time":"2031-05-05T02:00:01.000000Z"`)
)

// TestInTheBrowserAPageThatSleptOverTheOpeningOffersTheCoupon at once, and not when its own clock comes to the opening.
func TestInTheBrowserAPageThatSleptOverTheOpeningOffersTheCoupon(t *testing.T) {
	t.Parallel()
	server, guests, shop := sleepers(t)
	for _, g := range guests {
		server.says(map[string]string{"GET ": anHourBefore})
		g.Go(shop)
		g.sees("남음", "to go")
		g.sleepsWhile(func() { server.says(map[string]string{"GET ": anHourLater}) })
		g.sees("지금 받을 수 있어요", "Ready when you are")
	}
}

// TestInTheBrowserAPageThatSleptInLineLooksAtOnce, and goes on from the place that is left.
func TestInTheBrowserAPageThatSleptInLineLooksAtOnce(t *testing.T) {
	t.Parallel()
	server, guests, shop := sleepers(t)
	far := `202 {"outcome":"waiting","ticket":900,"generation":1,"ahead":899,"eta_seconds":899,"likely":true,"serving":true,"reason":null,"until":null,"closes_at":null,"poll_after":1}`
	for _, g := range guests {
		server.says(map[string]string{
			"GET ": state("open", 900, 900, ""), "POST /claims": far, "GET /claims/u/events": "404 {}", "GET /line": fmt.Sprintf(lineAt, 1, 900, 900, 900),
		})
		g.Go(shop)
		g.sees("지금 받을 수 있어요", "Ready when you are")
		g.Press("#act")
		g.sees("최대 899명", "At most 899")
		g.sleepsWhile(func() { server.says(map[string]string{"GET /line": fmt.Sprintf(lineAt, 450, 900, 450, 900)}) })
		g.sees("최대 450명", "At most 450")
		if got := browser.Eval[float64](g.Page, `document.querySelector("#track").value`); got < .4 {
			t.Errorf("the bar begins again: %v", got)
		}
	}
}

// TestInTheBrowserThePageReadsTheClockHoweverItWakes: browsers differ in what they tell a page. The page is told nothing else here.
func TestInTheBrowserThePageReadsTheClockHoweverItWakes(t *testing.T) {
	t.Parallel()
	server, guests, shop := sleepers(t)
	for way, wakes := range map[string]string{
		"it is shown":                 `document.dispatchEvent(new Event("visibilitychange"))`,
		"it is shown again":           `window.dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true}))`,
		"it runs on":                  `document.dispatchEvent(new Event("resume"))`,
		"the network is back":         `window.dispatchEvent(new Event("online"))`,
		"nothing but the clock moved": `(real => { Date.now = () => real() + 3_600_000; return true; })(Date.now)`,
	} {
		t.Log(way)
		g := guests[0]
		server.says(map[string]string{"GET ": anHourBefore})
		g.Go(shop)
		g.sees("남음", "to go")
		server.says(map[string]string{"GET ": anHourLater})
		browser.Eval[bool](g.Page, wakes)
		g.sees("지금 받을 수 있어요", "Ready when you are")
	}
}

// TestInTheBrowserTheClockIsThatOfTheAnswer: a question before it, which the server had no answer to, does not count.
func TestInTheBrowserTheClockIsThatOfTheAnswer(t *testing.T) {
	t.Parallel()
	server, guests, shop := scripts(t)
	// The countdown may be old by a while, and then says more. It never says less than what is left since the last question.
	const honest = `(asked => {
		const [, m, s] = document.querySelector("#words .big").textContent.match(/(\d+):(\d+)/).map(Number);
		return 60 * m + s >= 3599 - (performance.now() - asked) / 1000;
	})(performance.getEntriesByType("resource").filter(e => e.name.endsWith("/v1/campaigns/drop")).at(-1).startTime)`
	for _, g := range guests {
		server.says(map[string]string{"GET ": "503 {}"})
		g.Go(shop)
		g.Until(`performance.getEntriesByType("resource").some(e => e.name.endsWith("/v1/campaigns/drop"))`)
		server.says(map[string]string{"GET ": anHourBefore})
		g.sees("남음", "to go")
		if !browser.Eval[bool](g.Page, honest) {
			t.Errorf("the countdown is ahead of the server: %s", g.Text())
		}
	}
}
