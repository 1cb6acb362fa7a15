package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"
)

// furnished opens a house in which every page has something to show.
func furnished(t testing.TB) *house {
	h := openHouse(t, withKeys, withTrouble)
	id := h.campaign("spring", 5)
	h.claim(id, "mina", "jun", "a-user-with-an-id-that-is-as-long-as-a-hash-0123456789abcdef", "sua", "hana", "late")
	ctx := t.Context()
	op := h.config.Operator
	stage.Must(t, stage.Err(op.Void(ctx, "a test", id, 2, "the customer asked for it")))
	stage.Must(t, stage.Err(op.SetTerms(ctx, "a test", id, 0, func(terms *firstcome.Terms) { terms.Quantity = 12_345 })))
	stage.Must(t, stage.Err(op.Create(ctx, "a test", "line", firstcome.Terms{Name: "대기열이 있는 아주 긴 이름의 추석 한정 선착순 쿠폰 이벤트", Quantity: 1_000_000, Answer: firstcome.Recorded, Pace: &firstcome.Pace{PerSecond: 500}})))
	h.claim("line", "first", "second")
	h.campaign("shut", 5)
	stage.Must(t, stage.Err(op.Switch(ctx, "a test", "shut", 0, ledger.Close)))
	return h
}

// withTrouble has a gate of which nothing is decided of some campaigns.
func withTrouble(h *house) {
	for id, why := range map[firstcome.CampaignID]error{"spring": flow.ErrLost, "line": flow.ErrUnverified, "shut": &flow.OlderError{Campaign: "shut"}} {
		h.mender.breaks(id, why)
	}
	lag := func(context.Context) ([]flow.Lag, error) {
		return []flow.Lag{{Campaign: "spring", Numbers: 12_345, Oldest: time.Minute}}, nil
	}
	h.config.Journal = &console.Journal{Lag: lag, Recorder: func() flow.RecorderStats { return flow.RecorderStats{Retries: 7, Breaker: "open"} }, Troubles: h.mender.all}
}

// pagesToLookAt are the paths of all pages that somebody looks at, of the campaigns spring and line.
func pagesToLookAt(t testing.TB, h *house) (paths []string) {
	t.Helper()
	for _, operation := range console.New(h.configWithAuth()).Operations() {
		path, isGet := strings.CutPrefix(operation, "GET ")
		if !isGet || strings.HasSuffix(path, "/events") || strings.HasSuffix(path, ".csv") {
			continue
		}
		paths = append(paths, strings.ReplaceAll(path, "{id}", "spring"))
	}
	return append(paths, "/console/campaigns/line", "/console/campaigns/line/steer", "/console/campaigns/none",
		"/console/customer?user_id=jun&campaign=spring", "/console/customer?user_id=second&campaign=line", "/console/coupons-of-nothing")
}

// waysToLook are how pages are looked at: in a soak all that there are.
func waysToLook() (all []browser.Look) {
	soak := stage.Soak() > 0
	for _, language := range []string{"ko", "en"} {
		for _, width := range []int{360, 1280, 2560} {
			for _, dark := range []bool{false, true} {
				if soak || width < 2560 && !dark || language == "ko" && width == 1280 {
					all = append(all, browser.Look{Language: language, Width: width, Dark: dark})
				}
			}
		}
	}
	return append(all, browser.Look{Language: "en", Width: 360, NoScript: true})
}

// loginIn logs a page in.
func (h *house) loginIn(p *browser.Page, plain string) {
	h.t.Helper()
	p.Go(h.url + "/console")
	p.Type("input[name=key]", plain)
	p.Press("main button")
	p.Await("mina of admin")
}

// TestInTheBrowserEveryPageIsReadable looks at each page: nothing overflows, axe-core finds nothing, no script fails.
func TestInTheBrowserEveryPageIsReadable(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	h.login(plain).post("/console/campaigns/spring/proof", map[string][]string{})
	h.login(plain).await("/console/campaigns/spring/proof", "Every promise was kept")
	b := browser.Open(t)
	paths := pagesToLookAt(t, h)
	t.Run("looks", func(t *testing.T) {
		for _, l := range waysToLook() {
			t.Run(l.String(), func(t *testing.T) {
				t.Parallel()
				p := b.Page(t, l)
				h.loginIn(p, plain)
				for n, path := range paths {
					p.Go(h.url + path)
					status := 200
					if strings.HasSuffix(path, "/none") || strings.HasSuffix(path, "-nothing") {
						status = 404
					}
					const seen = `performance.getEntriesByType("navigation")[0].responseStatus + " " + document.documentElement.lang + " " + document.querySelectorAll("h1").length`
					if got, want := browser.Eval[string](p, seen), fmt.Sprint(status, " ", l.Language, " ", 1); got != want {
						t.Errorf("%s: status, language and headings are %s, want %s", path, got, want)
					}
					wrong := p.Overflows()
					if !l.NoScript { // axe-core is one; the same page was seen with it
						wrong = append(wrong, p.Violations()...)
					}
					for _, what := range wrong {
						t.Errorf("%s: %s", path, what)
					}
					p.Screenshot(fmt.Sprintf("%02d%s", n, strings.NewReplacer("/", "-", "?", "-", "&", "-", "=", "-").Replace(path)))
				}
			})
		}
	})
}

// TestInTheBrowserTheLivePageMoves breaks the ledger for a while and then sells a campaign out, while a browser shows it.
func TestInTheBrowserTheLivePageMoves(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 4)
	read := &lostLedger{Ledger: h.ledger}
	h.config.Watcher.Ledger = read
	stage.Run(t, h.config.Watcher.Run)
	p := browser.Open(t).Page(t, browser.Look{Language: "en"})
	p.Go(h.url + "/console/campaigns/spring")
	p.Await("nodes 1 of 1")
	h.claim(id, "a", "b", "c")
	p.Await("3 / 4 issued")
	p.Until(`document.querySelectorAll(".plot canvas").length >= 3`)
	read.away.Store(true)
	p.Await("The ledger does not answer")
	for _, want := range []string{"– / 4 issued", "Unrecorded –"} {
		if got := p.Text(); !strings.Contains(got, want) {
			t.Errorf("with the ledger away: no %q in %s", want, got)
		}
	}
	read.away.Store(false)
	h.claim(id, "d", "e")
	p.Await("4 / 4 issued")
	p.Await("sold out 20")
}
