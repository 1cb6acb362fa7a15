package console_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// opensPrizes opens a drop of five coupons: a drink for the first two, a discount for the next, and free shipping.
func opensPrizes(t *testing.T, open func(testing.TB, ...func(*house)) *house) *drop {
	return opensDrop(t, open, 5, func(terms *firstcome.Terms) {
		terms.Benefit, terms.Prizes = nil, []firstcome.Prize{
			{ID: "drink", Name: "음료", Quantity: 2, Benefit: []byte(`"아메리카노 한 잔"`)}, {ID: "discount", Name: "20% 할인", Quantity: 1}, {ID: "shipping", Name: "무료 배송", Benefit: []byte(`{"shipping":0}`)},
		}
	})
}

// shows fails unless the pages have these texts.
func (d *drop) shows(when, path string, texts map[string][]string) {
	d.t.Helper()
	for lang, wants := range texts {
		b := d.browser()
		b.lang = lang
		got := b.get("/console" + path)
		for _, want := range wants {
			if !strings.Contains(got.text(), want) {
				d.t.Errorf("%s, %s, %s: no %q in %s", when, lang, path, want, got.text())
			}
		}
	}
}

// TestLiveAndTheReportShowWhatIsLeftOfEachPrize, and when it ran out, from before the opening on.
func TestLiveAndTheReportShowWhatIsLeftOfEachPrize(t *testing.T) {
	d := opensPrizes(t, openHouse)
	const live, report = "/campaigns/winter", "/campaigns/winter/report"
	d.shows("before", live, map[string][]string{"ko": {"경품 음료 1~2위 0 / 2", "20% 할인 3위 0 / 1", "무료 배송 4위부터 0 / 2"}, "en": {"Prizes 음료 1 to 2 0 / 2", "20% 할인 3 0 / 1", "무료 배송 from 4 on 0 / 2"}})
	d.shows("before", report, map[string][]string{"ko": {"경품 경품 순위 나간 수 소진 음료 아메리카노 한 잔 1~2위 0 / 2 – 20% 할인 3위 0 / 1 – 무료 배송 {&#34;shipping&#34;:0} 4위부터 0 / 2 –"}, "en": {"Prizes Prize Ranks Given Ran out 음료 아메리카노 한 잔 1 to 2 0 / 2 – "}})
	d.passes(time.Hour)
	d.claim(d.id, "a")
	d.passes(840 * time.Millisecond)
	d.claim(d.id, "b")
	d.passes(12 * time.Second)
	d.claim(d.id, "c", "e")
	d.shows("two ran out", live, map[string][]string{
		"ko": {"음료 1~2위 2 / 2 소진 오픈 후 0.8초 만에 2026-11-30 10:00:00.840 KST 100.0 %", "20% 할인 3위 1 / 1 소진 오픈 후 12초 만에", "무료 배송 4위부터 1 / 2 50.0 %"},
		"en": {"음료 1 to 2 2 / 2 gone after 0.8 seconds 2026-11-30 10:00:00.840 KST 100.0 %", "gone after 12 s ", "무료 배송 from 4 on 1 / 2 50.0 %"},
	})
	d.shows("two ran out", report, map[string][]string{
		"ko": {"아메리카노 한 잔 1~2위 2 / 2 2026-11-30 10:00:00.840 KST · 오픈 후 0.8초 만에", "4위부터 1 / 2 –", "‘음료’ 2장은 0.8초 만에 모두 나갔어요. ‘20% 할인’ 1장은 12초 만에 모두 나갔어요. 복사"},
		"en": {"아메리카노 한 잔 1 to 2 2 / 2 2026-11-30 10:00:00.840 KST · after 0.8 seconds", " from 4 on 1 / 2 –", "“음료”, 2 in all: gone in 0.8 seconds. “20% 할인”, 1 in all: gone in 12 s. Copy"},
	})
	// the stock of a voided drink is given to the last prize
	stage.Must(t, stage.Err(d.config.Operator.Void(t.Context(), "a test", d.id, 1, "she asked")))
	d.shows("voided", live, map[string][]string{"en": {"음료 1 to 2 2 / 2 ", "무료 배송 from 4 on 1 / 3 "}})
	d.passes(time.Hour) // returned stock leaves its quarantine
	d.claim(d.id, "f", "g", "h")
	d.shows("sold out", live, map[string][]string{"en": {"음료 1 to 2 2 / 2 ", "무료 배송 from 4 on 3 / 3 "}})
	d.sets(func(terms *firstcome.Terms) { terms.Quantity = firstcome.Unlimited })
	d.shows("unlimited", live, map[string][]string{"en": {"무료 배송 from 4 on 3 "}})
}

// TestStockOfAPrizeIsUnknownWhileTheGateIs: a page shows no stock of a gate that decides nothing, and when a prize ran out once the ledger has it.
func TestStockOfAPrizeIsUnknownWhileTheGateIs(t *testing.T) {
	d := opensPrizes(t, openFar)
	d.passes(time.Hour)
	stage.Must(t, stage.Err(d.issuer.Claim(t.Context(), d.id, "a")))
	stage.Must(t, stage.Err(d.issuer.Claim(t.Context(), d.id, "b")))
	const live = "/campaigns/winter"
	got := d.browser().get("/console" + live)
	if text := got.text(); !strings.Contains(text, "음료 1 to 2 2 / 2 100.0 % 20% 할인") || !strings.Contains(got.body, `data-of="open 1 0"`) {
		t.Errorf("it ran out, and the ledger does not know when: %s", got.body)
	}
	d.gate.Record(t, d.ledger.Recorder, d.id)
	if got := d.browser().get("/console" + live); !strings.Contains(got.text(), "음료 1 to 2 2 / 2 gone after less than 0.1 seconds") || !strings.Contains(got.body, `data-of="open 1 1"`) {
		t.Errorf("the ledger knows when: %s", got.body)
	}
	lost := error(gate.ErrGone)
	d.mender.breaks(d.id, lost)
	d.eyes.why.Store(&lost)
	d.shows("lost", live, map[string][]string{"en": {"음료 1 to 2 – / 2 ", "무료 배송 from 4 on – "}})
	if text := d.browser().get("/console" + live).text(); strings.Contains(text, "gone") {
		t.Errorf("what is unknown ran out: %s", text)
	}
}

// TestSupportTellsRankAndPrize, and to a newcomer which prize a claim gets now.
func TestSupportTellsRankAndPrize(t *testing.T) {
	d := opensPrizes(t, openHouse)
	d.passes(time.Hour)
	b := d.browser()
	newcomer := func(ko, en string) {
		t.Helper()
		for lang, want := range map[string]string{"ko": ko, "en": en} {
			b.lang = lang
			if got := b.get("/console/customer?campaign=winter&q=nobody").text(); !strings.Contains(got, want) {
				t.Errorf("%s: a newcomer is not told %q: %s", lang, want, got)
			}
		}
	}
	newcomer("현재 5장이 남아 있어 지금 신청하실 수 있습니다. 지금 나가는 경품은 ‘음료’입니다.", "Coupons left now: 5. You may claim one. The prize now is: 음료.")
	d.claim(d.id, "a", "b", "c", "e")
	newcomer("현재 1장이 남아 있어 지금 신청하실 수 있습니다. 지금 나가는 경품은 ‘무료 배송’입니다.", "Coupons left now: 1. You may claim one. The prize now is: 무료 배송.")
	const at = "11월 30일 오전 10시에 ‘겨울 쿠폰’을 받으셨습니다. 쿠폰 코드는 "
	code := func(number int64) string { return stage.Secret().Code(d.id, number) }
	for user, want := range map[string][2]string{
		"b": {"고객님께서는 " + at + code(2) + "이며, 12월 30일 오전 10시까지 사용하실 수 있습니다. 순위는 2위, 경품은 ‘음료’입니다. 혜택은 ‘아메리카노 한 잔’입니다.", "Your rank is 2, and your prize: 음료. It is good for: 아메리카노 한 잔."},
		"c": {"고객님께서는 " + at + code(3) + "이며, 12월 30일 오전 10시까지 사용하실 수 있습니다. 순위는 3위, 경품은 ‘20% 할인’입니다.", "Your rank is 3, and your prize: 20% 할인."},
		"e": {"고객님께서는 " + at + code(4) + "이며, 12월 30일 오전 10시까지 사용하실 수 있습니다. 순위는 4위, 경품은 ‘무료 배송’입니다.", "Your rank is 4, and your prize: 무료 배송."},
	} {
		b.lang = "ko"
		b.tells("campaign=winter&user_id="+user, want[0])
		d.shows(user, "/customer?campaign=winter&user_id="+user, map[string][]string{"en": {want[1]}})
	}
	d.shows("its head", "/customer?campaign=winter&user_id=b", map[string][]string{"ko": {"유효 순위 2위, 음료 고객님께서는"}, "en": {"in force rank 2, 음료 You got"}})
	// a coupon keeps the terms that it was issued under
	d.sets(func(terms *firstcome.Terms) { terms.Prizes[0].Name = "커피" })
	d.shows("renamed", "/customer?campaign=winter&user_id=b", map[string][]string{"en": {"your prize: 음료."}})
	d.shows("the list", "/campaigns/winter/coupons", map[string][]string{"ko": {"번호 순위 경품 고객 ID", "1 1 음료 a ", "4 4 무료 배송 e "}, "en": {"Number Rank Prizes User id", "2 2 음료 b ", "3 3 20% 할인 c "}})
	d.campaign("plain", 5)
	d.claim("plain", "mina")
	d.shows("without prizes", "/campaigns/plain/coupons", map[string][]string{"en": {"Number Rank User id", " 1 1 mina "}})
	d.shows("without prizes", "/customer?campaign=plain&user_id=mina", map[string][]string{"en": {"in force rank 1 You got"}})
}

// A skipping ledger has terms after which the first number of each campaign was never given.
type skipping struct{ *ledger.Reads }

func (s skipping) Terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	t, err := s.Reads.Terms(ctx, id, version)
	return t.WithSkip(0, 1), err
}

// TestTheRankOnAPageIsThatOfTheCouponsOwnTerms, and no number: in the terms of the coupons a number was skipped.
func TestTheRankOnAPageIsThatOfTheCouponsOwnTerms(t *testing.T) {
	d := opensPrizes(t, func(t testing.TB, change ...func(*house)) *house {
		return openHouse(t, append(change, func(h *house) { h.config.Ledger = skipping{h.ledger.Reads} })...)
	})
	d.passes(time.Hour)
	d.claim(d.id, "a", "b", "c")
	d.shows("the list", "/campaigns/winter/coupons", map[string][]string{"en": {"2 1 음료 b ", "3 2 음료 c "}})
	d.shows("a customer", "/customer?campaign=winter&user_id=c", map[string][]string{"en": {"rank 2, 음료", "Your rank is 2, and your prize: 음료. It is good for: 아메리카노 한 잔.", "rank 2, 음료, is not given again."}})
}

// TestAVoidSaysThatARankIsNotGivenAgain before and after, for one coupon and for several. A direct issue says which prize it takes.
func TestAVoidSaysThatARankIsNotGivenAgain(t *testing.T) {
	d := opensPrizes(t, openHouse)
	d.passes(time.Hour)
	d.claim(d.id, "a", "b", "c")
	const user = "/customer?campaign=winter&user_id=b"
	ko, en := "재고는 새 순위로만 발급되며, 2위의 ‘음료’는 다시 나가지 않습니다. 다음은 4위 ‘무료 배송’입니다.", "Its stock can only be issued under a new rank: rank 2, 음료, is not given again. The next is rank 4: 무료 배송."
	d.shows("before", user, map[string][]string{
		"ko": {"고객은 다시 신청할 수 있습니다. " + ko, "경품은 다음 순위의 것을 받습니다. 지금은 4위부터 ‘무료 배송’입니다."},
		"en": {"may claim again. " + en, "It takes the next rank: from rank 4 on, as of now: 무료 배송."},
	})
	b := d.browser()
	got := b.post("/console/campaigns/winter/coupons/2/void", url.Values{"reason": {"she asked"}, "user_id": {"b"}})
	if !strings.Contains(got.text(), "Voided. "+en) {
		t.Errorf("after: %s", got.text())
	}
	b.lang = "ko"
	if got := b.get(got.uri); !strings.Contains(got.text(), "회수했습니다. "+ko) {
		t.Errorf("after, in Korean: %s", got.text())
	}
	several := url.Values{"numbers": {"1 3"}, "reason": {"r"}}
	for lang, want := range map[string]string{
		"ko": "재고는 새 순위로만 발급되며, 회수한 순위의 경품은 다시 나가지 않습니다. 다음은 4위 ‘무료 배송’입니다.",
		"en": "Their stock can only be issued under new ranks: the prizes of the voided ranks are not given again. The next is rank 4: 무료 배송.",
	} {
		b.lang = lang
		if got := b.post("/console/campaigns/winter/coupons/void", several); !strings.Contains(got.text(), want) {
			t.Errorf("%s: several: %s", lang, got.text())
		}
	}
	b.lang = "en"
	d.turns(firstcome.ChangeClose)
	if text := d.browser().get("/console/customer?campaign=winter&user_id=c").text(); !strings.Contains(text, "rank 3, 20% 할인, is not given again.") || strings.Contains(text, "The next is rank") || strings.Contains(text, "It takes the next rank") {
		t.Errorf("a closed campaign: %s", text)
	}
	d.campaign("plain", 5)
	d.claim("plain", "mina")
	got = b.post("/console/campaigns/plain/coupons/1/void", url.Values{"reason": {"r"}, "user_id": {"mina"}})
	if text := got.text(); !strings.Contains(text, "Voided.") || strings.Contains(text, "new rank") || strings.Contains(text, "next rank") {
		t.Errorf("without prizes: %s", text)
	}
}

// TestAChangeThatSkipsNumbersSaysWhy ends two epochs: ranks go on, and so does the prize of the next coupon.
func TestAChangeThatSkipsNumbersSaysWhy(t *testing.T) {
	d := opensPrizes(t, openFar)
	d.passes(time.Hour)
	d.claim(d.id, "a")
	d.gate.Record(t, d.ledger.Recorder, d.id)
	rebuild := func(through int64) {
		t.Helper()
		r, err := d.ledger.Epochs.BeginRebuild(t.Context(), "a test", d.id, 0)
		stage.Must(t, err)
		mark, err := d.ledger.Epochs.Refills(t.Context(), d.id, func(firstcome.Coupon) error { return nil })
		stage.Must(t, err)
		stage.Must(t, stage.Err(d.ledger.Epochs.FinishRebuild(t.Context(), r, recovery.Loaded{Mark: mark}, recovery.Frozen{Through: through})))
	}
	rebuild(1000)
	rebuild(1001)
	for _, path := range []string{"/campaigns/winter/changes", "/campaigns/winter/terms", "/campaigns/winter/report", "/audit-log"} {
		d.shows("rebuilt", path, map[string][]string{
			"ko": {"순위 게이트를 재구성할 때 2번부터 1,000번까지는 발급된 기록이 없어 건너뛰었습니다. 순위는 2위부터 이어집니다.", "순위 게이트를 재구성할 때 1,001번은 발급된 기록이 없어 건너뛰었습니다. 순위는 2위부터 이어집니다."},
			"en": {"ranks no coupon of numbers 2 to 1,000 was known when the gate was rebuilt; ranks go on at 2", "ranks no coupon of number 1,001 was known when the gate was rebuilt; ranks go on at 2"},
		})
	}
	d.sets(func(terms *firstcome.Terms) { terms.Prizes[0].Name = "커피" })
	if got := d.browser().get("/console/campaigns/winter/changes").text(); strings.Count(got, "was known when") != 2 {
		t.Errorf("an edit says it again: %s", got)
	}
}
