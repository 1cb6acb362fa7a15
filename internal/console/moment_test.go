package console_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"
)

// A distance is what pages say of an instant so many seconds ago.
type distance struct {
	age    int
	ko, en string
}

func (d distance) says(lang string) string {
	if lang == "ko" {
		return d.ko
	}
	return d.en
}

var distances = []distance{
	{0, "0초 전", "0 seconds ago"},
	{1, "1초 전", "1 second ago"},
	{59, "59초 전", "59 seconds ago"},
	{90, "1분 전", "1 minute ago"},
	{59*60 + 59, "59분 전", "59 minutes ago"},
	{90 * 60, "1시간 전", "1 hour ago"},
	{47 * 60 * 60, "47시간 전", "47 hours ago"},
	{49 * 60 * 60, "2일 전", "2 days ago"},
	{1000 * 24 * 60 * 60, "1,000일 전", "1,000 days ago"},
	{-30, "30초 후", "in 30 seconds"},
	{-90 * 60, "1시간 후", "in 1 hour"},
}

// keysOf opens a house with a key made at each of the distances from now.
func keysOf(t *testing.T, now time.Time) *house {
	h := openHouse(t, func(h *house) { h.now = func() time.Time { return now } })
	for n, d := range distances {
		_, key, err := auth.NewKey(fmt.Sprint("key ", n), firstcome.Viewer)
		stage.Must(t, err)
		key.CreatedAt = now.Add(-time.Duration(d.age) * time.Second)
		stage.Must(t, h.ledger.AddKey(t.Context(), "a test", key))
	}
	return h
}

func TestTimesSayHowFarTheyAreAndTheInstantInBothZones(t *testing.T) {
	now := time.Date(2026, 11, 23, 20, 0, 3, 214_000_000, time.UTC)
	b := keysOf(t, now).browser()
	for lang, seoul := range map[string]string{"ko": "서울", "en": "Seoul"} {
		b.lang = lang
		got := b.get("/console/keys").body
		for _, d := range distances {
			at := now.Add(-time.Duration(d.age) * time.Second)
			want := fmt.Sprintf(`<time datetime="%s" tabindex="0" aria-description="%s %s&#10;UTC %s" data-age="%d">%s</time>`, at.Format("2006-01-02T15:04:05.000Z"),
				seoul, at.Add(9*time.Hour).Format("2006-01-02 15:04:05.000"), at.Format("2006-01-02 15:04:05.000"), d.age, d.says(lang))
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", lang, want, regexp.MustCompile(`<time.*?</time>`).FindAllString(got, -1))
			}
		}
	}
}

// TestInTheBrowserTimesGoOnCounting has the page's clock stand still a second after it was loaded.
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

// TestInTheBrowserEachTimeIsExactOnFocus goes to each time of each page on a telephone: a screen reader is told both zones, and
// what is drawn stays within the window.
func TestInTheBrowserEachTimeIsExactOnFocus(t *testing.T) {
	h := furnished(t)
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "later", firstcome.Terms{Name: "later", Quantity: 5, Answer: firstcome.Recorded, OpensAt: time.Now().Add(100 * time.Hour)})))
	plain, _ := h.key(firstcome.Admin)
	h.login(plain).post("/console/campaigns/spring/proof", map[string][]string{})
	h.login(plain).await("/console/campaigns/spring/proof", "Every promise was kept")
	p := browser.Open(t).Page(t, browser.Look{Language: "en", Width: 360})
	h.loginIn(p, plain)
	both := regexp.MustCompile(`^Seoul \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\s+UTC \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`)
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

// TestInTheBrowserTheScriptsTimesAreExactOnFocus compares the rows that the script of the Live page writes with the server's.
func TestInTheBrowserTheScriptsTimesAreExactOnFocus(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	stage.Run(t, h.config.Watcher.Run)
	b := browser.Open(t)
	for lang, seoul := range map[string]string{"ko": "서울", "en": "Seoul"} {
		p := b.Page(t, browser.Look{Language: lang, Width: 360})
		h.loginIn(p, plain)
		p.Go(h.url + "/console/campaigns/spring")
		p.Until(`document.querySelector("[data-pulse]").textContent.includes("1")`) // node of 1: the rows are the script's now, no more the server's
		p.Until(`document.querySelectorAll("[data-table] tbody time").length >= 2`)
		browser.Eval[bool](p, `(document.querySelector("details:has([data-table])").open = true)`)
		const last = `[...document.querySelectorAll("[data-table] tbody time")].at(-1)`
		at, err := time.Parse(time.RFC3339, browser.Eval[string](p, last+`.dateTime`))
		stage.Must(t, err)
		tip := p.Focus(`document.querySelector("[data-table] time[datetime='` + at.Format("2006-01-02T15:04:05.000Z") + `']")`)
		want := fmt.Sprintf("%s %s UTC %s", seoul, at.Add(9*time.Hour).Format("2006-01-02 15:04:05.000"), at.Format("2006-01-02 15:04:05.000"))
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
