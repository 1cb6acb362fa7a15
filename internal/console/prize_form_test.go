package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// typePrizes fills in the rows of a form's prizes: id, name, quantity and benefit. Empty fields are left as they are.
func typePrizes(p screen, rows ...[4]string) {
	for n, row := range rows {
		for f, name := range []string{"id", "name", "quantity", "benefit"} {
			if row[f] != "" {
				p.Type(fmt.Sprintf("[name='prizes.%d.%s']", n, name), row[f])
			}
		}
	}
}

// threePrizes are the prizes that tests type: the first 100, the next 900, and everybody else.
var threePrizes = []firstcome.Prize{
	{ID: "drink", Name: "음료", Quantity: 100, Benefit: []byte(`"아메리카노 한 잔"`)}, {ID: "discount", Name: "20% 할인", Quantity: 900}, {ID: "prize-3", Name: "무료 배송", Benefit: []byte(`{"shipping":0}`)},
}

// makesPrizes creates a campaign with prizes by the buttons of the form, with script or without.
func (h *house) makesPrizes(p screen) {
	h.t.Helper()
	const add = "button[value=add]"
	p.Go(h.url + "/console/campaigns/new")
	p.Type("[name=name]", "여름")
	p.Type("[name=id]", "summer")
	p.Type("[name=quantity]", "5,000")
	p.Press(add)
	typePrizes(p, [4]string{"drink", "음료", "", "아메리카노 한 잔"}) // the last prize has no quantity
	p.Press(add)
	p.Gone("[name='prizes.0.quantity'][type=hidden]")
	typePrizes(p, [4]string{"", "", "100", ""}, [4]string{"discount", "20% 할인", "", ""})
	p.Press(add)
	p.Gone("[name='prizes.1.quantity'][type=hidden]")
	typePrizes(p, [4]string{}, [4]string{"", "", "900", ""}, [4]string{"", "무료 배송", "", `{"shipping":0}`})
	p.Press("button[value=down-0]")
	p.Await("901 to 1,000")
	p.Press("button[value=up-1]")
	p.Await("101 to 1,000")
	p.Await("the rest: 4,000")
	p.Press(add)
	p.Gone("[name='prizes.2.quantity'][type=hidden]")
	typePrizes(p, [4]string{}, [4]string{}, [4]string{"", "", "7", ""})
	p.Press("button[value=remove-3]")
	p.Gone("[name='prizes.3.id']")
	p.Press("button[value=check]")
	p.Await("the first 100: 음료 (아메리카노 한 잔); the next 900: 20% 할인; the next 4,000: 무료 배송")
	p.Press("button[value=create]")
	p.Await("Campaign created.")
	want := firstcome.Terms{Name: "여름", Quantity: 5000, Answer: firstcome.Recorded, Benefit: []byte("null"), Prizes: slices.Clone(threePrizes)}
	want.Prizes[2].ID = h.status("summer").Prizes[2].ID // the form chose it
	stage.Same(h.t, "the terms", want, h.status("summer").Terms)
}

func TestPrizesAreMadeByTheButtonsOfTheForm(t *testing.T) {
	h := openHouse(t)
	h.makesPrizes(h.reader())
}

// TestTheKeyEnterMovesNoPrize: a browser presses the first button of a form.
func TestTheKeyEnterMovesNoPrize(t *testing.T) {
	h := openHouse(t)
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "summer", firstcome.Terms{Name: "여름", Quantity: 5000, Answer: firstcome.Recorded, Prizes: threePrizes})))
	b := h.browser()
	for path, action := range map[string]string{"/console/campaigns/new?clone=summer": "/console/campaigns", "/console/campaigns/summer/terms": "/console/campaigns/summer/terms"} {
		form := parse(t, b.get(path).body).all("form[action=" + action + "]")[0]
		if button := form.all("button:not([popovertarget])")[0]; button.attr["name"] != "" || button.said() != "Check" {
			t.Errorf("%s: Enter presses %v", path, button.attr)
		}
	}
}

// TestEachMistakeInPrizesStandsAtItsField, in both languages.
func TestEachMistakeInPrizesStandsAtItsField(t *testing.T) {
	h := openHouse(t)
	b := h.browser()
	for what, c := range map[string]struct {
		field, value string
		at           string // the field that is wrong; field if empty
		ko, en       string
	}{
		"no quantity":          {"prizes.0.quantity", "", "", "1 이상의 정수로 입력하세요.", "Write a whole number from 1 up."},
		"a quantity of 0":      {"prizes.1.quantity", "0", "", "1 이상의 정수여야 합니다", "must be 1 to 1000000000000: only the last prize has none"},
		"no number":            {"prizes.1.quantity", "many", "", "1 이상의 정수로 입력하세요.", "Write a whole number from 1 up."},
		"no id":                {"prizes.2.id", "", "", "영어 소문자, 숫자, 하이픈(-)만 1~63자로 쓸 수 있으며, 경품마다 달라야 합니다", "is 1 to 63 lower-case letters, digits and hyphens"},
		"an id twice":          {"prizes.2.id", "drink", "", "영어 소문자, 숫자, 하이픈(-)만 1~63자로 쓸 수 있으며, 경품마다 달라야 합니다", "is the id of an earlier prize: choose another one"},
		"no name":              {"prizes.0.name", "", "", "1자 이상, 200바이트까지 입력할 수 있습니다", "must have 1 to 200 bytes"},
		"a name twice in JSON": {"prizes.0.benefit", `{"a":1,"a":2}`, "", "JSON에 같은 이름이 두 번 있거나", "A name is there twice"},
		"more than there is":   {"quantity", "999", "", "경품 수량의 합 이상인 정수여야 합니다", "must be at least 1000, the sum of the prizes"},
		"a benefit beside":     {"benefit", "a drink", "", "경품과 함께 쓸 수 없습니다", "must be empty beside prizes: each prize has its own benefit"},
		"benefits too long":    {"prizes.2.benefit", strings.Repeat("a", firstcome.MaxBenefit), "prizes", "혜택은 모두 합해 16 KiB까지 입력할 수 있습니다", "must have benefits of at most 16384 bytes in all"},
	} {
		form := url.Values{"id": {"summer"}, "name": {"여름"}, "quantity": {"5000"}, "answer": {"recorded"}, "step": {"create"}}
		for n, p := range threePrizes {
			form.Set(fmt.Sprintf("prizes.%d.id", n), string(p.ID))
			form.Set(fmt.Sprintf("prizes.%d.name", n), p.Name)
			form.Set(fmt.Sprintf("prizes.%d.quantity", n), fmt.Sprint(p.Quantity))
			form.Set(fmt.Sprintf("prizes.%d.benefit", n), string(p.Benefit))
		}
		form.Set(c.field, c.value)
		for lang, want := range map[string]string{"ko": c.ko, "en": c.en} {
			b.lang = lang
			got := b.post("/console/campaigns", form)
			page := parse(t, got.body)
			wrong := page.all(".wrong")
			if got.status != http.StatusUnprocessableEntity || len(wrong) != 1 || !strings.Contains(wrong[0].said(), want) {
				t.Errorf("%s, %s: %d, not %q: %s", lang, what, got.status, want, got.text())
				continue
			}
			if at := page.all("[aria-invalid=true]"); c.at == "" && (len(at) != 1 || at[0].attr["name"] != c.field || at[0].attr["aria-describedby"] != wrong[0].attr["id"]) {
				t.Errorf("%s, %s: it stands at %v", lang, what, at)
			}
		}
	}
	if _, err := h.ledger.Reads.Campaign(t.Context(), "summer"); err == nil {
		t.Error("the campaign was created")
	}
}

// TestPrizesAreAtMostSixteen also sends the longest form with as many.
func TestPrizesAreAtMostSixteen(t *testing.T) {
	h := openHouse(t)
	b := h.browser()
	form := url.Values{"id": {"summer"}, "name": {strings.Repeat("여", firstcome.MaxName/3)}, "quantity": {""}, "answer": {"recorded"}, "step": {"create"}}
	for n := range firstcome.MaxPrizes + 1 {
		form.Set(fmt.Sprintf("prizes.%d.id", n), fmt.Sprintf("%s-%02d", strings.Repeat("a", 60), n))
		form.Set(fmt.Sprintf("prizes.%d.name", n), strings.Repeat("상", firstcome.MaxPrizeName/3))
		form.Set(fmt.Sprintf("prizes.%d.quantity", n), "1,000")
		form.Set(fmt.Sprintf("prizes.%d.benefit", n), strings.Repeat("혜", (firstcome.MaxBenefit-1000)/3/16))
	}
	for lang, want := range map[string]string{"ko": "경품은 16개까지 정할 수 있으며", "en": "must have 1 to 16 prizes"} {
		b.lang = lang
		if got := b.post("/console/campaigns", form); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text(), want) {
			t.Errorf("17 prizes: %d %s", got.status, got.text())
		}
	}
	for _, name := range []string{"id", "name", "quantity", "benefit"} {
		form.Del(fmt.Sprintf("prizes.%d.%s", firstcome.MaxPrizes, name))
	}
	form.Set("prizes", "add")
	if got := b.post("/console/campaigns", form); got.status != http.StatusOK || strings.Contains(got.body, "prizes.16.id") || strings.Contains(got.body, `value="add"`) {
		t.Errorf("another row after 16: %d %s", got.status, got.text())
	}
	form.Del("prizes")
	if got := b.post("/console/campaigns", form); got.path != "/console/campaigns/summer" || len(h.status("summer").Prizes) != firstcome.MaxPrizes {
		t.Errorf("the longest form is answered %d %s", got.status, got.text())
	}
}

// TestPrizesChangeUntilTheFirstNumber, and their names and benefits after it. A benefit that was not edited stays byte by byte.
func TestPrizesChangeUntilTheFirstNumber(t *testing.T) {
	h := openHouse(t)
	want := firstcome.Terms{Name: "여름", Quantity: 5000, Answer: firstcome.Recorded, Prizes: []firstcome.Prize{
		{ID: "drink", Name: "음료", Quantity: 100, Benefit: []byte(`"caf\u00e9"`)}, {ID: "rest", Name: "무료 배송"},
	}}
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "summer", want)))
	want = h.status("summer").Terms
	p := h.reader()
	change := func(says ...string) {
		t.Helper()
		p.Press("form[action$='/terms'] button")
		for _, text := range says {
			p.Await(text)
		}
		stage.Same(t, "the terms before it was confirmed", want, h.status("summer").Terms)
		p.Type("[name=typed]", "summer")
		p.Press(".card.danger button")
	}
	p.Go("/console/campaigns/summer/terms")
	p.Press("form[action$='/terms'] button")
	p.Await("Nothing would change.")
	p.Type("[name='prizes.0.quantity']", "200")
	change(`prize 1 ranks 1 to 100: 음료 (drink), café → ranks 1 to 200: 음료 (drink), café`, "prize 2 ranks from 101 on: 무료 배송 (rest) → ranks from 201 on: 무료 배송 (rest)")
	want.Prizes[0].Quantity = 200
	p.Await("Changed: prize 1, prize 2")
	stage.Same(t, "the terms with more drinks", want, h.status("summer").Terms)
	p.Go("/console/campaigns/summer/terms")
	p.Press("button[value=remove-1]")
	change("prize 2 ranks from 201 on: 무료 배송 (rest) → none")
	p.Await("Changed: prize 1, prize 2")
	p.Go("/console/campaigns/summer/changes")
	p.Await("prize 2 ranks from 201 on: 무료 배송 (rest) → none")
	if got := h.status("summer").Prizes; len(got) != 1 || got[0].Quantity != 0 || string(got[0].Benefit) != `"caf\u00e9"` {
		t.Errorf("the last prize is %+v", got)
	}
	p.Go("/console/campaigns/summer/terms")
	open := p.page
	h.claim("summer", "mina")
	p.Go("/console/campaigns/summer/terms")
	p.Await("A coupon has been issued, so only names and benefits can be changed. Ids, order and quantities stay, so that each coupon keeps its prize.")
	if text := p.one("[data-rest]").said(); text != "the rest" {
		t.Errorf("the last prize has %s, and also the stock of voided coupons", text)
	}
	if len(p.root.all("button[name=prizes]")) > 0 || len(p.root.all("input[name='prizes.0.id']")) != 1 || p.one("input[name='prizes.0.id']").attr["type"] != "hidden" {
		t.Errorf("the form lets prizes be moved: %s", p.page.body)
	}
	want = h.status("summer").Terms
	p.Type("[name='prizes.0.name']", "커피")
	change(`음료 (drink), café → ranks from 1 on: 커피 (drink)`)
	want.Prizes[0].Name = "커피"
	stage.Same(t, "the terms with another name", want, h.status("summer").Terms)
	// a tab that was opened before the first claim
	form := url.Values{"version": {parse(t, open.body).all("[name=version]")[0].attr["value"]}, "name": {"여름"}, "quantity": {"5000"}, "typed": {"summer"}, "prizes.0.id": {"other"}, "prizes.0.name": {"커피"}, "prizes.0.benefit": {"café"}}
	form.Set("version", fmt.Sprint(h.status("summer").Version))
	b := h.browser()
	for lang, says := range map[string]string{
		"ko": "경품을 변경할 수 없습니다 이미 발급된 쿠폰이 있어 경품의 ID와 순서, 수량은 그대로 유지됩니다. 이름과 혜택은 변경할 수 있습니다. 아무것도 변경되지 않았습니다.",
		"en": "The prizes cannot be changed A coupon has been issued, so ids, order and quantities of the prizes stay. Names and benefits can still be changed. Nothing was changed.",
	} {
		b.lang = lang
		if got := b.post("/console/campaigns/summer/terms", form); got.status != http.StatusConflict || !strings.Contains(got.text(), says) {
			t.Errorf("%s: %d %s", lang, got.status, got.text())
		}
	}
	h.campaign("spring", 5)
	h.claim("spring", "mina")
	b.lang = "en"
	if got := b.get("/console/campaigns/spring/terms"); !strings.Contains(got.text(), "A coupon has been issued, so no prizes can be added.") || strings.Contains(got.body, `name="prizes"`) {
		t.Errorf("prizes can be added: %s", got.text())
	}
}

// TestTheQuantityStaysAtLeastThatOfItsPrizes on the page Operate.
func TestTheQuantityStaysAtLeastThatOfItsPrizes(t *testing.T) {
	h := openHouse(t)
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "summer", firstcome.Terms{Name: "여름", Quantity: 5000, Answer: firstcome.Recorded, Prizes: threePrizes})))
	b := h.browser()
	for lang, says := range map[string]string{"ko": "수량은 경품 수량의 합인 1,000장 이상이어야 합니다.", "en": "The quantity must be at least 1,000, the sum of the prizes' quantities."} {
		b.lang = lang
		more := map[string]string{"ko": "늘어난 쿠폰의 경품은 마지막 경품인 ‘무료 배송’입니다.", "en": "Added coupons have the last prize: 무료 배송."}[lang]
		if got := b.post("/console/campaigns/summer/quantity", url.Values{"version": {"1"}, "quantity": {"5001"}}); !strings.Contains(got.text(), more) {
			t.Errorf("%s: more coupons: %s", lang, got.text())
		}
		if got := b.post("/console/campaigns/summer/quantity", url.Values{"version": {"1"}, "quantity": {"999"}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, strings.ReplaceAll(says, "'", "&#39;")) {
			t.Errorf("%s: %d %s", lang, got.status, got.text())
		}
	}
	if got := b.post("/console/campaigns/summer/quantity", url.Values{"version": {"1"}, "quantity": {"1000"}, "typed": {"summer"}}); got.status != http.StatusOK || h.status("summer").Quantity != 1000 {
		t.Errorf("1,000 is answered %d %s", got.status, got.text())
	}
}

// TestTheCheckAndTheAnnouncementSayThePrizes, also if nothing is left for the last one, and of an unlimited campaign.
func TestTheCheckAndTheAnnouncementSayThePrizes(t *testing.T) {
	h := openHouse(t, func(h *house) { h.stands(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)) })
	b := h.browser()
	for quantity, says := range map[string][2][2]string{
		"5000": {
			{"정상 경품 선착순 100명 음료 (아메리카노 한 잔), 다음 900명 20% 할인, 다음 4,000명 무료 배송", "경품: 선착순 100명 음료 (아메리카노 한 잔), 다음 900명 20% 할인, 다음 4,000명 무료 배송\n수량: 5,000장, 1인 1장"},
			{"OK prizes the first 100: 음료 (아메리카노 한 잔); the next 900: 20% 할인; the next 4,000: 무료 배송", "Prizes: the first 100: 음료 (아메리카노 한 잔); the next 900: 20% 할인; the next 4,000: 무료 배송\nHow many: 5,000, one each"},
		},
		"1000": {
			{"주의 경품 선착순 100명 음료 (아메리카노 한 잔), 다음 900명 20% 할인 마지막 경품 ‘무료 배송’의 몫이 없습니다. 회수된 쿠폰의 재고가 다시 발급될 때만 나갑니다.", "경품: 선착순 100명 음료 (아메리카노 한 잔), 다음 900명 20% 할인\n"},
			{"WARN prizes the first 100: 음료 (아메리카노 한 잔); the next 900: 20% 할인 Nothing is left for the last prize, 무료 배송. It is given only when stock of voided coupons is issued again.", "Prizes: the first 100: 음료 (아메리카노 한 잔); the next 900: 20% 할인\n"},
		},
		"": {
			{"다음 900명 20% 할인, 그 뒤 모두 무료 배송", "다음 900명 20% 할인, 그 뒤 모두 무료 배송\n수량: 제한 없음"},
			{"the next 900: 20% 할인; everybody after that: 무료 배송", "the next 900: 20% 할인; everybody after that: 무료 배송\nHow many: no limit"},
		},
	} {
		id := "summer-" + quantity + "q"
		form := url.Values{"id": {id}, "name": {"여름"}, "quantity": {quantity}, "answer": {"recorded"}}
		for n, p := range threePrizes {
			form.Set(fmt.Sprintf("prizes.%d.id", n), string(p.ID))
			form.Set(fmt.Sprintf("prizes.%d.name", n), p.Name)
			form.Set(fmt.Sprintf("prizes.%d.quantity", n), fmt.Sprint(p.Quantity))
			form.Set(fmt.Sprintf("prizes.%d.benefit", n), string(p.Benefit))
		}
		for n, lang := range []string{"ko", "en"} {
			b.lang = lang
			form.Set("step", "check")
			if got := b.post("/console/campaigns", form).text(); !strings.Contains(got, says[n][0]) || strings.Contains(got, "혜택이 비어") || strings.Contains(got, "does not say what it is good for") {
				t.Errorf("%s, %q: the check does not say %q: %s", lang, quantity, says[n][0], got)
			}
			form.Set("step", "create")
			b.post("/console/campaigns", form)
			if got := b.get("/console/campaigns/" + id + "/terms"); !strings.Contains(got.body, says[n][1]) {
				t.Errorf("%s, %q: the announcement does not say %q: %s", lang, quantity, says[n][1], got.body)
			}
		}
	}
	only := firstcome.Terms{Name: "여름", Quantity: firstcome.Unlimited, Answer: firstcome.Recorded, Prizes: threePrizes[2:]}
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "only", only)))
	for _, want := range []string{"경품: 모두 무료 배송\n", "Prizes: everybody: 무료 배송\n"} {
		if got := b.get("/console/campaigns/only/terms"); !strings.Contains(got.body, want) {
			t.Errorf("the announcement does not say %q: %s", want, got.body)
		}
	}
}
