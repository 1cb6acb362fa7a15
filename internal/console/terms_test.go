package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheTermsPageChangesWhatWasTypedAndNothingElse has terms that a form cannot show in full.
func TestTheTermsPageChangesWhatWasTypedAndNothingElse(t *testing.T) {
	h := openHouse(t)
	made := firstcome.Terms{
		Name: "추석", Quantity: 5000, OpensAt: time.Date(2026, 12, 1, 1, 0, 0, 123_000, time.UTC), Answer: firstcome.Recorded,
		Benefit: []byte(`{"off": 30}`), ValidFor: 36*time.Hour + 500*time.Millisecond, Pace: &firstcome.Pace{PerSecond: 5}, Waitlist: true,
	}
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "spring", made)))
	want := h.status("spring").Terms
	p, check := h.reader(), "form[action$='/terms'] button"
	p.Go("/console/campaigns/spring/terms")
	p.Press(check)
	p.Await("Nothing would change.")
	p.Type("[name=quantity]", "50000")
	p.Press(check)
	p.Await("quantity 5,000 → 50,000")
	stage.Same(t, "the terms before it was confirmed", want, h.status("spring").Terms)
	p.Type("[name=typed]", "spring")
	p.Press(".card.danger button")
	p.Await("Changed: quantity")
	want.Quantity = 50000
	stage.Same(t, "the terms", want, h.status("spring").Terms)
	p.Go("/console/campaigns/spring/terms")
	p.Await("local changed the terms")
	p.Await("quantity 5,000 → 50,000")
}

// TestEachTermIsChangedBeforeAndAfterTheOpening, once it was shown as old → new and confirmed.
func TestEachTermIsChangedBeforeAndAfterTheOpening(t *testing.T) {
	seoul := func(day, hour int) time.Time { return time.Date(2026, 12, day, hour-9, 0, 0, 0, time.UTC) }
	for when, now := range map[string]time.Time{"before": seoul(1, 9), "after": seoul(1, 11)} {
		t.Run(when, func(t *testing.T) {
			h := openHouse(t)
			h.stands(now)
			want := firstcome.Terms{Name: "추석", Quantity: 5000, OpensAt: seoul(1, 10), ClosesAt: seoul(2, 10), Answer: firstcome.Recorded, Benefit: []byte(`"30%"`), ValidFor: 24 * time.Hour}
			stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "spring", want)))
			p := h.reader()
			for _, c := range []struct {
				field, typed, shown string
				edit                func(*firstcome.Terms)
			}{
				{"name", "설날", "name 추석 → 설날", func(t *firstcome.Terms) { t.Name = "설날" }},
				{"quantity", "6000", "quantity 5,000 → 6,000", func(t *firstcome.Terms) { t.Quantity = 6000 }},
				{"benefit", "40%", "benefit 30% → 40%", func(t *firstcome.Terms) { t.Benefit = []byte(`"40%"`) }},
				{"opens_at", "2026-12-01T12:00", "2026-12-01 10:00:00 KST → 2026-12-01 12:00:00 KST", func(t *firstcome.Terms) { t.OpensAt = seoul(1, 12) }},
				{"closes_at", "2026-12-03T10:00", "2026-12-02 10:00:00 KST → 2026-12-03 10:00:00 KST", func(t *firstcome.Terms) { t.ClosesAt = seoul(3, 10) }},
				{"valid_for", "2", "→", func(t *firstcome.Terms) { t.ValidFor = 48 * time.Hour }},
			} {
				p.Go("/console/campaigns/spring/terms")
				p.Type("[name="+c.field+"]", c.typed)
				p.Press("form[action$='/terms'] button")
				if got := p.page.text(); !strings.Contains(got, c.shown) {
					t.Fatalf("%s is confirmed without %q: %s", c.field, c.shown, got)
				}
				stage.Same(t, "the terms before "+c.field+" was confirmed", want, h.status("spring").Terms)
				p.Type("[name=typed]", "spring")
				p.Press(".card.danger button")
				c.edit(&want)
				stage.Same(t, "the terms with another "+c.field, want, h.status("spring").Terms)
			}
		})
	}
}

// TestACloneHasAllTermsButTheTimes of opening and closing.
func TestACloneHasAllTermsButTheTimes(t *testing.T) {
	for valid, terms := range map[string]firstcome.Terms{
		"36 hours":      {ValidFor: 36 * time.Hour},
		"12 hours":      {ValidFor: 12 * time.Hour},
		"90 seconds":    {ValidFor: 90 * time.Second},
		"until a night": {ValidUntil: time.Date(2027, 1, 31, 14, 59, 59, 0, time.UTC)},
	} {
		h := openHouse(t)
		terms.Name, terms.Quantity, terms.Answer, terms.Benefit = "추석", 5000, firstcome.Decided, []byte(`"30% 할인"`)
		terms.Pace, terms.Waitlist = &firstcome.Pace{PerSecond: 7}, true
		with := terms
		with.OpensAt, with.ClosesAt = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)
		stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "spring", with)))
		p := h.reader()
		p.Go("/console/campaigns/new?clone=spring")
		p.Type("[name=id]", "autumn")
		p.Press("button[value=check]")
		p.Press("button[value=create]")
		p.Await("Campaign created.")
		stage.Same(t, valid, terms, h.status("autumn").Terms)
	}
}

// TestAnExpiryThatMakesCouponsWorthlessIsSaid before the campaign is created, when its terms change, and once it has passed.
func TestAnExpiryThatMakesCouponsWorthlessIsSaid(t *testing.T) {
	now := time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC) // 10:00 in Seoul
	h := openHouse(t, func(h *house) { h.stands(now) })
	for lang, says := range map[string]struct{ wrong, early, lapsed string }{
		"ko": {"지금과 오픈보다 늦어야 합니다", "받자마자 만료됩니다", "쿠폰의 만료 일시가 지났습니다"},
		"en": {"already expired when they are issued", "are already expired", "valid-until time has passed"},
	} {
		h.stands(now)
		b, id := h.browser(), "spring-"+lang
		b.lang = lang
		create := func(validUntil, step string) shown {
			return b.post("/console/campaigns", url.Values{
				"id": {id}, "name": {"추석"}, "quantity": {"5"}, "opens_at": {"2026-12-01T12:00"}, "answer": {"recorded"}, "line": {"none"},
				"valid_until": {validUntil}, "step": {step},
			})
		}
		for _, wrong := range []string{"2026-12-01T10:00", "2026-12-01T12:00"} {
			for _, step := range []string{"check", "create"} {
				if got := create(wrong, step); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text(), says.wrong) {
					t.Errorf("%s: an expiry of %s is answered %d %s", lang, wrong, got.status, got.text())
				}
			}
		}
		if got := create("2026-12-01T13:00", "check"); got.status != http.StatusOK || !strings.Contains(got.text(), says.early) {
			t.Errorf("%s: an expiry before the campaign closes is checked without %q: %s", lang, says.early, got.text())
		}
		create("2026-12-01T13:00", "create")
		form := url.Values{"version": {"1"}, "name": {"추석"}, "quantity": {"5"}, "opens_at": {"2026-12-01T12:00"}, "valid_until": {"2026-12-01T09:00"}}
		if got := b.post("/console/campaigns/"+id+"/terms", form); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text(), says.wrong) {
			t.Errorf("%s: an expiry in the past is answered %d %s", lang, got.status, got.text())
		}
		for _, when := range []struct {
			at     time.Time
			lapsed bool
		}{{now.Add(3*time.Hour - time.Microsecond), false}, {now.Add(3 * time.Hour), true}} {
			h.stands(when.at)
			for _, path := range []string{"", "/terms"} {
				if got := b.get("/console/campaigns/" + id + path); strings.Contains(got.text(), says.lapsed) != when.lapsed {
					t.Errorf("%s, %s at %v: that the expiry has passed should be %v: %s", lang, path, when.at, when.lapsed, got.text())
				}
			}
		}
		stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", firstcome.CampaignID(id), 0, firstcome.ChangeClose)))
		for _, path := range []string{"", "/terms"} {
			if got := b.get("/console/campaigns/" + id + path); strings.Contains(got.text(), says.lapsed) {
				t.Errorf("%s, %s: a closed campaign is warned of: %s", lang, path, got.text())
			}
		}
	}
}

// TestTheCheckAndTheAnnouncementSayTheTerms, all that were filled in and no others, in the zone of the shop.
func TestTheCheckAndTheAnnouncementSayTheTerms(t *testing.T) {
	h := openFar(t, func(h *house) { h.stands(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)) })
	b := h.browser()
	form := url.Values{
		"id": {"full"}, "name": {"추석 쿠폰"}, "quantity": {"5000"}, "opens_at": {"2026-12-01T10:00"}, "closes_at": {"2027-01-02T10:00"}, "answer": {"decided"},
		"line": {"fast"}, "waitlist": {"on"}, "benefit": {"30% 할인"}, "valid_for": {"7"}, "valid_unit": {"days"}, "step": {"check"},
	}
	for lang, says := range map[string][]string{
		"ko": {"이름 추석 쿠폰", "수량 5,000", "마감 2027-01-02 10:00:00 KST", "유효 기간 발급 시점부터 7일", "속도 최대한 빠르게", "예비 대기 소진된 뒤에도 대기열을 유지하고", "주의 응답 시점 게이트가 결정하는 즉시 Redis가 데이터를 잃으면, 고객에게 안내한 쿠폰이 유실될 수 있습니다."},
		"en": {"name 추석 쿠폰", "quantity 5,000", "closes 2027-01-02 10:00:00 KST", "valid for 7 days from the issue", "pace as fast as possible", "waitlist " + "The line stays after the sell-out, and a voided coupon goes to the next user.", "WARN answered when as soon as the gate has decided If Redis loses data, coupons that customers were told of can be lost."},
	} {
		b.lang = lang
		got := b.post("/console/campaigns", form).text()
		for _, want := range says {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the check has no %q: %s", lang, want, got)
			}
		}
	}
	form.Set("step", "create")
	b.post("/console/campaigns", form)
	h.campaign("plain", 1)
	stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "a test", "plain", 0, func(t *firstcome.Terms) {
		t.Quantity, t.Benefit, t.ValidUntil = firstcome.Unlimited, []byte(`{"percent":30}`), time.Date(2026, 12, 31, 14, 59, 59, 0, time.UTC)
	})))
	for id, says := range map[string][2]string{
		"full": {
			"선착순 쿠폰 ‘추석 쿠폰’\n혜택: 30% 할인\n수량: 5,000장, 1인 1장\n시작: 12월 1일 오전 10시\n종료: 2027년 1월 2일 오전 10시\n사용 기한: 발급 시점부터 7일<",
			"“추석 쿠폰”: first come, first served\nWhat: 30% 할인\nHow many: 5,000, one each\nStarts: 10:00 am on 1 December (Seoul time)\nEnds: 10:00 am on 2 January 2027 (Seoul time)\nValid: for 7 days from when you get it<",
		},
		"plain": {
			"선착순 쿠폰 ‘추석 plain’\n수량: 제한 없음, 1인 1장\n사용 기한: 12월 31일 오후 11시 59분 59초까지<",
			"“추석 plain”: first come, first served\nHow many: no limit, one each\nValid: until 11:59:59 pm on 31 December (Seoul time)<",
		},
	} {
		got := b.get("/console/campaigns/" + id + "/terms")
		for n, want := range says {
			if lang := [...]string{"ko", "en"}[n]; !strings.Contains(got.body, `<pre class="quote" lang="`+lang+`" tabindex="0">`+want) {
				t.Errorf("%s: the announcement is not %q: %s", id, want, got.body)
			}
		}
	}
	for d, want := range map[time.Duration]string{36 * time.Hour: "for 36 hours from", time.Hour: "for 1 hour from", time.Second + time.Microsecond: "for 1 s 1 µs from"} {
		stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "a test", "plain", 0, func(t *firstcome.Terms) { t.ValidUntil, t.ValidFor = time.Time{}, d })))
		if got := b.get("/console/campaigns/plain/terms"); !strings.Contains(got.body, "Valid: "+want) {
			t.Errorf("for %v the announcement has no %q: %s", d, want, got.body)
		}
	}
}
