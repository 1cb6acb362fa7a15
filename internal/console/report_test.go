package console_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

// A drop is a campaign whose report a test reads.
type drop struct {
	*house
	now time.Time
	id  firstcome.CampaignID
}

// opensDrop creates a campaign that opens an hour from then, in Seoul at 10:00 of 30 November, and lets that hour pass.
func opensDrop(t *testing.T, open func(testing.TB, ...func(*house)) *house, quantity int64, edit ...func(*firstcome.Terms)) *drop {
	t.Helper()
	d := &drop{now: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), id: "winter"}
	d.house = open(t, func(h *house) {
		h.stands(d.now)
		h.config.Watcher.Clock = h.clock
		if h.gate != nil {
			h.gate.Clock = h.clock
		}
	})
	terms := firstcome.Terms{Name: "겨울 쿠폰", Quantity: quantity, OpensAt: d.now.Add(time.Hour), Answer: firstcome.Recorded, Benefit: []byte(`"10% 할인"`), ValidFor: 30 * 24 * time.Hour}
	for _, do := range edit {
		do(&terms)
	}
	stage.Must(t, stage.Err(d.config.Operator.Create(t.Context(), "a test", d.id, terms)))
	return d
}

func (d *drop) passes(by time.Duration) {
	d.now = d.now.Add(by)
	d.stands(d.now)
}

func (d *drop) sets(edit func(*firstcome.Terms)) {
	stage.Must(d.t, stage.Err(d.config.Operator.SetTerms(d.t.Context(), "a test", d.id, 0, edit)))
}

func (d *drop) turns(to firstcome.ChangeKind) {
	stage.Must(d.t, stage.Err(d.config.Operator.ChangeState(d.t.Context(), "a test", d.id, 0, to)))
}

// tells fails unless the report tells what happened in these sentences, in Korean and in English.
func (d *drop) tells(when, ko, en string) {
	d.t.Helper()
	for lang, want := range map[string]string{"ko": ko, "en": en} {
		b := d.browser()
		b.lang = lang
		got := b.get("/console/campaigns/winter/report")
		_, told, _ := strings.Cut(got.body, "data-copy>")
		told, _, _ = strings.Cut(told, "</p>")
		if told != want {
			d.t.Errorf("%s, %s: the report tells %q, want %q", when, lang, told, want)
		}
	}
}

// TestTheReportTellsHowItWent takes a drop from before its opening to after its end.
func TestTheReportTellsHowItWent(t *testing.T) {
	d := opensDrop(t, openHouse, 3)
	d.tells("before the opening", "‘겨울 쿠폰’: 준비한 쿠폰 3장을 받은 고객은 없습니다. 11월 30일 오전 10시에 오픈합니다.", "“겨울 쿠폰”: no customer got one of the 3 coupons. It opens at 10:00 am on 30 November (Seoul time).")
	d.passes(time.Hour)
	d.claim(d.id, "a", "b")
	d.tells("while it is open", "‘겨울 쿠폰’: 준비한 쿠폰 3장 중 2장을 고객 2명이 받았습니다. 11월 30일 오전 10시에 오픈했습니다. 아직 진행 중입니다.", "“겨울 쿠폰”: customers got 2 of 3 coupons, one each. It opened at 10:00 am on 30 November (Seoul time). It is still open.")
	d.turns(firstcome.ChangePause)
	d.tells("in a pause", "‘겨울 쿠폰’: 준비한 쿠폰 3장 중 2장을 고객 2명이 받았습니다. 11월 30일 오전 10시에 오픈했습니다. 현재 발급이 일시 중지되어 있습니다.", "“겨울 쿠폰”: customers got 2 of 3 coupons, one each. It opened at 10:00 am on 30 November (Seoul time). It is paused now.")
	d.turns(firstcome.ChangeResume)
	d.passes(840 * time.Millisecond)
	d.claim(d.id, "c", "d")
	for range 5 {
		d.counter.Claimed(d.id, firstcome.SoldOut, time.Millisecond)
	}
	d.tells("when it is sold out", "‘겨울 쿠폰’: 준비한 쿠폰 3장 중 3장을 고객 3명이 받았습니다. 11월 30일 오전 10시에 오픈했습니다. 오픈 후 0.8초 만에 모두 소진되었습니다. 신청은 5건 이상이었습니다.", "“겨울 쿠폰”: customers got 3 of 3 coupons, one each. It opened at 10:00 am on 30 November (Seoul time). It sold out after 0.8 seconds. Requests: at least 5.")
	d.passes(time.Hour)
	stage.Must(t, stage.Err(d.config.Operator.Void(t.Context(), "a test", d.id, 2, "she asked")))
	d.turns(firstcome.ChangeClose)
	d.tells("closed after it sold out", "‘겨울 쿠폰’: 준비한 쿠폰 3장 중 2장을 고객 2명이 받았습니다. 회수된 쿠폰 1장은 제외한 수입니다. 11월 30일 오전 10시에 오픈했습니다. 오픈 후 0.8초 만에 처음으로 모두 소진되었습니다. 11월 30일 오전 11시에 종료되었습니다. 신청은 5건 이상이었습니다.",
		"“겨울 쿠폰”: customers got 2 of 3 coupons, one each. Coupons taken back, not counted here: 1. It opened at 10:00 am on 30 November (Seoul time). It first sold out after 0.8 seconds. It ended at 11:00 am on 30 November. Requests: at least 5.")
}

// TestTheReportTellsWhatIsRare has drops that did not go as usual.
func TestTheReportTellsWhatIsRare(t *testing.T) {
	for name, c := range map[string]struct {
		quantity int64
		do       func(d *drop)
		ko, en   string
	}{
		"closed before it opened": {3, func(d *drop) { d.turns(firstcome.ChangeClose); d.passes(2 * time.Hour) }, "3장을 받은 고객은 없습니다. 오픈하기 전인 11월 30일 오전 9시에 종료되었습니다.", "no customer got one of the 3 coupons. It was closed before it opened, at 9:00 am on 30 November (Seoul time)."},
		"its window ended": {3, func(d *drop) {
			d.sets(func(terms *firstcome.Terms) { terms.ClosesAt = d.now.Add(2 * time.Hour) })
			d.passes(3 * time.Hour)
		}, "3장을 받은 고객은 없습니다. 11월 30일 오전 11시에 종료되었습니다.", "no customer got one of the 3 coupons. It ended at 11:00 am on 30 November (Seoul time)."},
		"sold out at once": {1, func(d *drop) { d.passes(time.Hour); d.claim(d.id, "a") }, "오픈 후 0.1초도 안 되어 모두 소진되었습니다.", "It sold out after less than 0.1 seconds."},
		"sold out slowly":  {2, func(d *drop) { d.passes(time.Hour); d.claim(d.id, "a"); d.passes(72 * time.Second); d.claim(d.id, "b") }, "오픈 후 1분 12초 만에 모두 소진되었습니다.", "It sold out after 1 min 12 s."},
		"sold out before it opened": {1, func(d *drop) {
			stage.Must(d.t, stage.Err(d.decides.Issue(d.t.Context(), gate.Order{Actor: "a test", Reason: "r"}, d.id, []firstcome.UserID{"guest"})))
			d.passes(2 * time.Hour)
			d.claim(d.id, "a")
		}, "11월 30일 오전 11시에 오픈했습니다. 11월 30일 오전 9시에 모두 소진되었습니다.", "It opened at 11:00 am on 30 November (Seoul time). It sold out at 9:00 am on 30 November."},
		"all are taken back": {3, func(d *drop) {
			d.passes(time.Hour)
			d.claim(d.id, "a", "b")
			for number := range int64(2) {
				stage.Must(d.t, stage.Err(d.config.Operator.Void(d.t.Context(), "a test", d.id, number+1, "asked for it")))
			}
		}, "‘겨울 쿠폰’: 고객이 받은 쿠폰 2장이 모두 회수되었습니다. 11월 30일", "“겨울 쿠폰”: all coupons that customers got were taken back: 2. It opened at"},
		"without a bound": {firstcome.Unlimited, func(d *drop) { d.passes(time.Hour); d.claim(d.id, "a") }, "‘겨울 쿠폰’: 고객 1명이 쿠폰을 받았습니다. ", "“겨울 쿠폰”: coupons that customers got, one each: 1. "},
	} {
		t.Run(name, func(t *testing.T) {
			d := opensDrop(t, openHouse, c.quantity)
			c.do(d)
			for lang, want := range map[string]string{"ko": c.ko, "en": c.en} {
				b := d.browser()
				b.lang = lang
				if got := b.get("/console/campaigns/winter/report").text(); !strings.Contains(got, want) {
					t.Errorf("%s: no %q in %s", lang, want, got)
				}
			}
		})
	}
}

// TestTheReportOfALostGateTellsNothingUnknown closes a campaign, and then its gate is lost.
func TestTheReportOfALostGateTellsNothingUnknown(t *testing.T) {
	d := opensDrop(t, openFar, 3)
	d.passes(time.Hour)
	d.claim(d.id, "a", "b")
	d.turns(firstcome.ChangeClose)
	lost := error(gate.ErrGone)
	d.mender.breaks(d.id, lost)
	d.eyes.why.Store(&lost)
	d.tells("lost", "‘겨울 쿠폰’: 몇 명이 쿠폰을 받았는지 지금은 알 수 없습니다. 11월 30일 오전 10시에 종료되었습니다.", "“겨울 쿠폰”: how many customers got a coupon is not known now. It ended at 10:00 am on 30 November (Seoul time).")
}

// TestTheReportHasTermsChangesAndChecks reads the report as a viewer, who sees no user's id, also if a reason names one.
func TestTheReportHasTermsChangesAndChecks(t *testing.T) {
	d := opensDrop(t, func(t testing.TB, change ...func(*house)) *house { return openHouse(t, append(change, withKeys)...) }, 3)
	operator, key := d.key(firstcome.Operator)
	viewer, _ := d.key(firstcome.Viewer)
	d.passes(time.Hour)
	d.claim(d.id, "mina-private", "jun-private")
	stage.Must(t, stage.Err(d.config.Operator.Void(t.Context(), "a test", d.id, 1, "mina-private asked for it")))
	stage.Must(t, stage.Err(d.config.Operator.SetTerms(t.Context(), "key:"+key.ID, d.id, 0, func(terms *firstcome.Terms) { terms.Quantity = 1_000 })))
	runs, sees := d.login(operator), d.login(viewer)
	runs.post("/console/campaigns/winter/proof", url.Values{})
	runs.await("/console/campaigns/winter/proof", "Verify again")
	d.claim(d.id, "late-private")
	for lang, wants := range map[string][]string{
		"ko": {
			"시간대: 한국 시간", "1,000장 · 1인 1매", "약속과 검증", "더 자세히: 약속마다 확인한 것, 서버가 센 것", "확인 내용 확인한 행 수 결과", "오픈 2026-11-30 10:00:00.000 KST 소진 – 종료 – 가장 빠를 때 초당 약 3장 · 2026-11-30 10:00:00 KST", "회수 1", "이름 겨울 쿠폰 수량 1,000 오픈 2026-11-30 10:00:00 KST 응답 시점 원장에 기록한 뒤 속도 대기열 없음", "혜택 10% 할인 유효 기간 30일",
			"a test 캠페인을 만들었습니다 2026-11-30 09:00:00 KST", "조건을 변경했습니다 2026-11-30 10:00:00 KST 수량 3 → 1,000",
			"✓ 확인한 약속을 모두 지켰습니다: 초과 발급 없음, 1인 1매, 선착순, 유실 없음, 순위와 경품 유지. 11월 30일 오전 10시에 원장의 쿠폰 2장을 모두 다시 읽고 확인했습니다. 그 뒤에 기록된 쿠폰 1장은 확인하지 않았습니다.",
		},
		"en": {
			"times are in Seoul time", "Opened 2026-11-30 10:00:00.000 KST Sold out – Closed – At its fastest about 3 coupons a second · 2026-11-30 10:00:00 KST", "Voided 1", "name 겨울 쿠폰 quantity 1,000 opens 2026-11-30 10:00:00 KST answered when once it is in the ledger pace no line", "benefit 10% 할인 valid for 30 d",
			"a test created the campaign 2026-11-30 09:00:00 KST", "mina of operator changed the terms 2026-11-30 10:00:00 KST quantity 3 → 1,000",
			"✓ Every promise that was checked was kept: Never more; One per user; First come, first served; Kept; A rank is given once. All coupons in the ledger were read again at 10:00 am on 30 November (Seoul time): 2. Coupons recorded since then, not checked: 1.",
		},
	} {
		sees.lang = lang
		got := sees.get("/console/campaigns/winter/report")
		for _, want := range wants {
			if !strings.Contains(got.text(), want) {
				t.Errorf("no %q in %s", want, got.text())
			}
		}
		if strings.Contains(got.body, "private") || strings.Contains(got.text(), "voided a coupon") || strings.Contains(got.text(), "쿠폰을 회수했습니다") {
			t.Errorf("a viewer reads a user's id: %s", got.text())
		}
	}
}

// TestTheReportSaysThatThereAreMoreChanges changes a campaign more often than a report has room for.
func TestTheReportSaysThatThereAreMoreChanges(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("winter", 3)
	for range 10 {
		for _, to := range []firstcome.ChangeKind{firstcome.ChangePause, firstcome.ChangeResume} {
			stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", id, 0, to)))
		}
	}
	got := h.browser().get("/console/campaigns/winter/report").text()
	if strings.Contains(got, "created the campaign") || strings.Count(got, "paused it") != 10 || !strings.Contains(got, "There are earlier changes. All changes") {
		t.Errorf("the report says %s", got)
	}
}

// TestAVerdictCounts reads how much a verification has read.
func TestAVerdictCounts(t *testing.T) {
	var found atomic.Pointer[console.Proof]
	h := openHouse(t, func(h *house) {
		h.config.Prove = func(context.Context, firstcome.CampaignID, *atomic.Int64) (console.Proof, error) {
			return *found.Load(), nil
		}
	})
	h.campaign("winter", 3)
	b := h.browser()
	for want, breaches := range map[string]int64{"5,000 coupons, 5,040 facts": 0, "5,000 coupons checked": 2} {
		var proof console.Proof
		proof.Ledger.Coupons, proof.Ledger.Facts, proof.Ledger.Breaches.Total = 5_000, 5_040, breaches
		found.Store(&proof)
		b.post("/console/campaigns/winter/proof", url.Values{})
		if got := b.await("/console/campaigns/winter/proof", want); got.status != 200 {
			t.Error(fmt.Sprint(got.status))
		}
	}
}
