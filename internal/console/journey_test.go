//go:build !check && (!race || soak)

package console_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"
)

// A day is a day of an operator at the console, in a browser.
type day struct {
	*house
	*browser.Page
	look browser.Look
	read *lostLedger // the one that the watcher reads

	switches      atomic.Int64  // requests to switch the campaign
	first, second chan struct{} // closed when the first request is under way, and when the button was pressed again
}

// asking holds the first switch until the button has been pressed again.
func (d *day) asking(r *http.Request) {
	wait := func(until <-chan struct{}) {
		select {
		case <-until:
		case <-r.Context().Done():
		}
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/switch") && d.switches.Add(1) == 1:
		close(d.first)
		wait(d.second)
	case r.URL.RawQuery == "first":
		wait(d.first)
	case r.URL.RawQuery == "second":
		close(d.second)
	}
}

func TestInTheBrowserAnOperatorsDay(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	for _, look := range []browser.Look{{Language: "ko", Width: 360}, {Language: "en", Dark: true}} {
		t.Run(look.String(), func(t *testing.T) {
			t.Parallel()
			d := &day{look: look, first: make(chan struct{}), second: make(chan struct{})}
			d.house = openHouse(t, withKeys, func(h *house) {
				d.read = &lostLedger{Reads: h.ledger.Reads}
				h.config.Watcher.Ledger = d.read
				h.asking = d.asking
			})
			d.Page = b.Page(t, look) // registered later, so it closes before the house
			d.logsIn()
			d.makesACampaign()
			d.watches()
			d.pausesAndResumes()
			d.watchesItSellOut()
			d.voidsACoupon()
			d.provesAndReports()
			d.logsOut()
		})
	}
}

// sees waits for words, in Korean or in English.
func (d *day) sees(ko, en string) {
	d.t.Helper()
	d.Await(map[string]string{"ko": ko, "en": en}[d.look.Language])
}

// looks waits for words, and checks the page that has them: nothing overflows, and axe-core finds nothing.
func (d *day) looks(ko, en string) {
	d.t.Helper()
	d.sees(ko, en)
	const seen = `document.documentElement.lang + " " + document.querySelectorAll("h1").length`
	if got, want := browser.Eval[string](d.Page, seen), d.look.Language+" 1"; got != want {
		d.t.Errorf("%s: language and headings are %s, want %s", en, got, want)
	}
	for _, wrong := range append(d.Overflows(), d.Violations()...) {
		d.t.Errorf("%s: %s", en, wrong)
	}
	d.Screenshot(strings.ReplaceAll(en, " ", "-"))
}

// follows waits until the Live page has drawn what happened before and follows the campaign.
func (d *day) follows() {
	d.t.Helper()
	d.Until(`document.querySelectorAll(".plot canvas").length >= 3`)
}

// tick gives the Live page the current figures. Nothing else does, so no page moves while somebody presses a button.
func (d *day) tick() { d.config.Watcher.Tick(d.t.Context()) }

func (d *day) logsIn() {
	plain, _ := d.key(firstcome.Admin)
	d.Go(d.url + "/console/campaigns/new")
	d.looks("API 키로 로그인합니다.", "Log in with your API key.")
	d.Type("input[name=key]", plain)
	d.Press("main button")
	d.looks("새 캠페인", "Create a campaign")
	d.Press("header nav a")
	d.looks("아직 캠페인이 없습니다.", "There is no campaign yet.")
}

func (d *day) makesACampaign() {
	d.Press("a[href$='/campaigns/new']")
	d.Type("[name=name]", "Autumn <b>& co</b>")
	d.Type("[name=id]", "autumn")
	d.Type("[name=quantity]", "many")
	d.Press("button[value=check]")
	d.Until(`!!document.querySelector("[name=quantity][aria-invalid]")`)
	d.looks("새 캠페인", "Create a campaign")
	d.Type("[name=quantity]", "4")
	d.Press("button[value=check]")
	d.looks("오픈 전 확인 사항", "Before it opens")
	d.Press("button[value=create]")
	d.looks("캠페인을 만들었습니다.", "Campaign created.")
	d.Await("Autumn <b>& co</b>")
}

// watches checks that the figures move, and makes the ledger unavailable for a while.
func (d *day) watches() {
	d.follows()
	d.claim("autumn", "mina", "jun", "sua")
	d.tick()
	d.looks("3 / 4장 발급", "3 / 4 issued")
	d.sees("남음 1", "Left 1")
	d.sees("노드 1/1", "nodes 1 of 1")
	d.read.away.Store(true)
	d.tick()
	d.sees("원장이 응답하지 않습니다.", "The ledger does not answer.")
	d.sees("– / 4장 발급", "– / 4 issued")
	d.sees("기록 대기 –", "Unrecorded –")
	d.read.away.Store(false)
	d.tick()
	d.sees("3 / 4장 발급", "3 / 4 issued")
}

// pausesAndResumes presses again while the first press is under way: together they are one change. The Live page of a reopened campaign reloads
// itself.
func (d *day) pausesAndResumes() {
	browser.Eval[bool](d.Page, `(e => {
		e.click();
		fetch("/console/help?first").then(() => { e.click(); fetch("/console/help?second"); });
		return true;
	})(document.querySelector("button[value=pause]"))`)
	d.looks("일시중지했습니다.", "Paused.")
	if n := d.switches.Load(); n != 1 || !d.status("autumn").Paused {
		d.t.Errorf("two presses are %d requests, and it is paused %v", n, d.status("autumn").Paused)
	}
	got, err := d.issuer.Claim(d.t.Context(), "autumn", "hana")
	if stage.Must(d.t, err); got.Outcome != firstcome.Paused {
		d.t.Errorf("while it is paused a claim is %v", got.Outcome)
	}
	d.counter.Claimed("autumn", got.Outcome, time.Millisecond)
	d.follows()
	d.tick()
	d.sees("거절된 요청 1", "Refused 1")
	d.Press(".tabs a[href$='/steer']")
	d.looks("발급을 다시 시작합니다.", "Coupons are issued again.")
	d.Press("button[value=resume]")
	d.sees("재개했습니다.", "Resumed.")
	if d.status("autumn").Paused {
		d.t.Error("it is paused still")
	}
	d.follows()
	d.tick()
	d.sees("진행 중입니다.", "It is open.")
}

func (d *day) watchesItSellOut() {
	d.claim("autumn", "hana", "late")
	d.tick()
	d.sees("4 / 4장 발급", "4 / 4 issued")
	d.looks("에 소진되었습니다", "Sold out at ")
}

func (d *day) voidsACoupon() {
	d.Press(".tabs a[href$='/coupons']")
	d.looks("여러 장 회수", "Void several")
	d.Press("a[href*='user_id=jun']")
	d.looks("받으셨습니다. 쿠폰 코드는 ", "Your coupon code is ")
	d.Press("main section details summary")
	d.Type("[name=reason]", "she asked")
	d.Press("button.danger")
	d.sees("회수했습니다.", "Voided.")
	d.looks("mina of admin: she asked", "mina of admin: she asked")
	if n := d.status("autumn").InForce; n != 3 {
		d.t.Errorf("%d are in force, want 3", n)
	}
}

func (d *day) provesAndReports() {
	d.Go(d.url + "/console/campaigns/autumn/proof")
	d.looks("아직 검증하지 않았습니다.", "It has not been verified yet.")
	d.Press("form[action$='/proof'] button")
	d.looks("확인한 약속을 모두 지켰습니다", "Every promise that was checked was kept")
	d.Press("a[href$='/report']")
	d.looks("고객 3명이 받았습니다. 회수된 쿠폰 1장은 제외한 수입니다.", "customers got 3 of ")
	d.Go(d.url + "/console/campaigns/autumn/changes")
	d.looks("“she asked”", "“she asked”")
}

func (d *day) logsOut() {
	d.Press("form[action$='/logout'] button")
	d.sees("API 키로 로그인합니다.", "Log in with your API key.")
	d.Go(d.url + "/console/keys")
	d.sees("API 키로 로그인합니다.", "Log in with your API key.")
}
