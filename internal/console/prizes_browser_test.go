//go:build soak

package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"

	"github.com/firstcome/firstcome"
)

// TestInTheBrowserPrizesAreMadeByTheButtonsOfTheForm with script and without.
func TestInTheBrowserPrizesAreMadeByTheButtonsOfTheForm(t *testing.T) {
	b := browser.Open(t)
	for _, noScript := range []bool{false, true} {
		look := browser.Look{Language: "en", NoScript: noScript}
		t.Run(look.String(), func(t *testing.T) {
			h := openHouse(t)
			h.makesPrizes(b.Page(t, look))
		})
	}
}

// TestInTheBrowserRanksAreShownAsSomebodyTypes, as the server shows them, and the key Enter checks the form.
func TestInTheBrowserRanksAreShownAsSomebodyTypes(t *testing.T) {
	h := openHouse(t)
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "summer", firstcome.Terms{Name: "여름", Quantity: 5000, Answer: firstcome.Recorded, Prizes: threePrizes})))
	p := browser.Open(t).Page(t, browser.Look{Language: "en"})
	p.Go(h.url + "/console/campaigns/summer/terms")
	const ranks, rest = `[...document.querySelectorAll("[data-ranks]")].map(e => e.textContent).join()`, `document.querySelector("[data-rest]").textContent`
	for _, c := range []struct{ name, typed, ranks, rest string }{
		{"prizes.0.quantity", "1", "1,2 to 901,from 902 on", "the rest: 4,099"},
		{"prizes.0.quantity", "1,000", "1 to 1,000,1,001 to 1,900,from 1,901 on", "the rest: 3,100"},
		{"quantity", "", "1 to 1,000,1,001 to 1,900,from 1,901 on", "the rest"},
		{"quantity", "1,900", "1 to 1,000,1,001 to 1,900,from 1,901 on", "the rest: 0"},
		{"quantity", "1,899", "1 to 1,000,1,001 to 1,900,from 1,901 on", "the rest"},
		{"prizes.0.quantity", "many", "–,–,–", "the rest"},
		{"prizes.0.quantity", "0", "–,–,–", "the rest"},
		{"prizes.0.quantity", "5", "1 to 5,6 to 905,from 906 on", "the rest: 994"},
	} {
		p.Type("[name='"+c.name+"']", c.typed)
		browser.Eval[bool](p, `document.querySelector("[name='`+c.name+`']").dispatchEvent(new Event("input", {bubbles: true}))`) // no key was pressed for an empty text
		p.Until(ranks + " === " + browser.Quote(c.ranks) + " && " + rest + " === " + browser.Quote(c.rest))
	}
	browser.Eval[bool](p, `(document.querySelector("[name='prizes.1.name']").focus(), document.querySelector("form[action$='/terms']").requestSubmit(document.querySelector("form[action$='/terms'] button")), true)`)
	p.Await("prize 1 ranks 1 to 100: 음료 (drink), 아메리카노 한 잔 → ranks 1 to 5: 음료 (drink), 아메리카노 한 잔")
	p.Until(ranks + ` === "1 to 5,6 to 905,from 906 on" && ` + rest + ` === "the rest: 994"`) // the server's
}

// TestInTheBrowserLiveShowsPrizesAsTheyRunOut, and nothing that is unknown, while the page is open.
func TestInTheBrowserLiveShowsPrizesAsTheyRunOut(t *testing.T) {
	d := opensPrizes(t, openFar)
	d.passes(time.Hour)
	stage.Run(t, d.config.Watcher.Run)
	now := time.Now()
	d.keep(func() time.Time { return d.now.Add(time.Since(now)) }) // samples of one instant are one sample
	d.gate.Set(func() { d.gate.Records = true })
	p := browser.Open(t).Page(t, browser.Look{Language: "en"})
	p.Go(d.url + "/console/campaigns/winter")
	const stock = `[...document.querySelectorAll("[data-prize]")].map(e => e.querySelector(".given").textContent.trim().replaceAll(/\s+/g, " ") + (e.querySelector("progress").hidden ? " –" : " " + e.querySelector("progress").value.toFixed(1))).join("; ")`
	p.Until(stock + ` === "0 / 2 0.0; 0 / 1 0.0; 0 / 2 0.0"`)
	stage.Must(t, stage.Err(d.issuer.Claim(t.Context(), d.id, "a")))
	p.Until(stock + ` === "1 / 2 0.5; 0 / 1 0.0; 0 / 2 0.0"`)
	stage.Must(t, stage.Err(d.issuer.Claim(t.Context(), d.id, "b")))
	p.Until(stock + `.startsWith("2 / 2 1.0; 0 / 1 ")`) // the ledger does not know when
	d.gate.Record(t, d.ledger.Recorder, d.id)
	p.Until(stock + `.startsWith("2 / 2 gone after ")`)
	d.gate.Set(func() { d.gate.States = func(firstcome.CampaignID, *gate.State) error { return errAway } })
	p.Until(stock + ` === "– / 2 –; – / 1 –; – –"`)
	d.gate.Set(func() { d.gate.States = nil })
	p.Until(stock + `.startsWith("2 / 2 gone after ")`)
}

// TestInTheBrowserPagesWithPrizesAreReadable looks at three prizes, and at as many as there may be. The report fits on a sheet of paper.
func TestInTheBrowserPagesWithPrizesAreReadable(t *testing.T) {
	d := opensPrizes(t, openHouse)
	d.passes(time.Hour)
	d.claim(d.id, "a", "b", "c", "e")
	many := firstcome.Terms{Name: "많은 경품", Quantity: 5000, Answer: firstcome.Recorded}
	for n := range firstcome.MaxPrizes {
		many.Prizes = append(many.Prizes, firstcome.Prize{ID: firstcome.PrizeID(fmt.Sprint("prize-", n)), Name: fmt.Sprint("이름이 아주 긴 경품이라서-한-줄에-다-들어가지-않습니다 ", n), Quantity: 100, Benefit: []byte(`"아메리카노 한 잔"`)})
	}
	many.Prizes[firstcome.MaxPrizes-1].Quantity = 0
	stage.Must(t, stage.Err(d.config.Operator.Create(t.Context(), "a test", "many", many)))
	stage.Must(t, stage.Err(d.config.Operator.Void(t.Context(), "a test", d.id, 1, "she asked")))
	b := browser.Open(t)
	paths := []string{"/campaigns/winter", "/campaigns/winter?wall", "/campaigns/winter/terms", "/campaigns/winter/coupons", "/campaigns/winter/report", "/campaigns/winter/changes", "/customer?campaign=winter&user_id=b", "/campaigns/many", "/campaigns/many?wall", "/campaigns/many/terms", "/campaigns/many/report", "/campaigns/new?clone=many"}
	for _, look := range waysToLook() {
		t.Run(look.String(), func(t *testing.T) {
			t.Parallel()
			p := b.Page(t, look)
			for n, path := range paths {
				p.Go(d.url + "/console" + path)
				wrong := p.Overflows()
				if !look.NoScript {
					wrong = append(wrong, p.Violations()...)
				}
				for _, what := range wrong {
					t.Errorf("%s: %s", path, what)
				}
				p.Screenshot(fmt.Sprintf("%02d", n))
			}
			p.Go(d.url + "/console/campaigns/winter/report")
			p.OnPaper()
			p.Resize(703, 1032, 1) // the printed part of A4
			if n := p.Sheets("report"); n != 1 {
				t.Errorf("the report takes %d sheets", n)
			}
		})
	}
}
