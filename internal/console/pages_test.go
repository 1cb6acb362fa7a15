package console_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
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
	stage.Must(t, stage.Err(op.ChangeState(ctx, "a test", "shut", 0, firstcome.ChangeClose)))
	return h
}

// withTrouble gives the house a gate that decides nothing for some campaigns.
func withTrouble(h *house) {
	for id, why := range map[firstcome.CampaignID]error{"spring": gate.ErrGone, "line": gate.ErrUnverified, "shut": &gate.LedgerRolledBackError{Campaign: "shut"}} {
		h.mender.breaks(id, why)
	}
	lag := func(context.Context) ([]record.Lag, error) {
		return []record.Lag{{Campaign: "spring", Numbers: 12_345, Oldest: time.Minute}}, nil
	}
	h.config.Journal = &console.Journal{Lag: lag, Recorder: func() record.Stats { return record.Stats{Retries: 7, Breaker: "open"} }, Troubles: h.mender.all}
}

// pagesToLookAt are the paths of all pages, for the campaigns spring and line.
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

// loginIn logs in on a page.
func (h *house) loginIn(p screen, plain string) {
	h.t.Helper()
	p.Go(h.url + "/console")
	p.Type("input[name=key]", plain)
	p.Press("main button")
	p.Await("mina of admin")
}

// statusOf returns the status of the answer to a GET of a page.
func statusOf(path string) int {
	if strings.HasSuffix(path, "/none") || strings.HasSuffix(path, "-nothing") {
		return http.StatusNotFound
	}
	return http.StatusOK
}

// proved verifies a campaign.
func (h *house) proved(plain, id string) {
	h.t.Helper()
	b := h.login(plain)
	b.post("/console/campaigns/"+id+"/proof", url.Values{})
	b.await("/console/campaigns/"+id+"/proof", "Every promise that was checked was kept")
}

// named are the names that people chose in furnished, and the link to the other language.
var named = strings.NewReplacer("추석 spring", "", "추석 shut", "", "대기열이 있는 아주 긴 이름의 추석 한정 선착순 쿠폰 이벤트", "", "한국어", "")

// inKorean matches Korean text that may be in an English page: the Korean announcement.
var inKorean = regexp.MustCompile(`(?s)<pre class="quote" lang="ko".*?</pre>`)

// TestEveryPageIsWholeInBothLanguages checks each page as it is sent: its language, its only heading, a name for everything that can be filled in or
// pressed, and links that lead somewhere.
func TestEveryPageIsWholeInBothLanguages(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	h.proved(plain, "spring")
	b := h.login(plain)
	leads := map[string]bool{} // links, and whether they lead somewhere
	for _, b.lang = range []string{"ko", "en"} {
		for _, path := range pagesToLookAt(t, h) {
			got := b.get(path)
			page := parse(t, got.body)
			if lang, headings := page.all("html")[0].attr["lang"], len(page.all("h1")); got.status != statusOf(path) || lang != b.lang || headings != 1 {
				t.Errorf("%s: status %d, language %s and %d headings", path, got.status, lang, headings)
			}
			if strings.Contains(got.body, "ZgotmplZ") {
				t.Errorf("%s: a template could not write what it was to write", path)
			}
			if korean := regexp.MustCompile(`\p{Hangul}+`).FindString(named.Replace(html.UnescapeString(shown{body: inKorean.ReplaceAllString(got.body, "")}.text()))); b.lang == "en" && korean != "" {
				t.Errorf("%s: Korean on an English page: %s", path, korean)
			}
			for _, what := range page.unnamed() {
				t.Errorf("%s: %s", path, what)
			}
			for _, link := range page.all("a[href]:not([hreflang])") {
				to := link.attr["href"]
				if _, known := leads[to]; !known && !strings.HasPrefix(to, "#") && !strings.HasSuffix(to, ".csv") {
					lost := b.get(to).status == http.StatusNotFound && statusOf(path) == http.StatusOK
					leads[to] = !lost
					if lost {
						t.Errorf("%s: a link leads to %s, which is not there", path, to)
					}
				}
			}
		}
	}
}

// TestTheOtherLanguageIsThereBehindAForm follows the link to the other language from the answer to a form, whose address shows no page.
func TestTheOtherLanguageIsThereBehindAForm(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	for form, want := range map[string]string{
		"/console/campaigns/spring/quantity": "/console/campaigns/spring", "/console/campaigns/spring/coupons/void": "/console/campaigns/spring/coupons",
		"/console/campaigns/spring/terms": "/console/campaigns/spring/terms", "/console/recording/dead-letters": "/console/recording", "/console/campaigns": "/console",
	} {
		got := b.post(form, url.Values{})
		links := parse(t, got.body).all("a[hreflang]")
		if got.status == http.StatusOK || len(links) != 1 {
			t.Fatalf("%s: status %d, %d links to the other language: %s", form, got.status, len(links), got.text())
		}
		if other := b.get(links[0].attr["href"]); other.status != http.StatusOK || other.path != want {
			t.Errorf("%s: the other language is at %s, %d", form, other.path, other.status)
		}
	}
}

// unnamed returns the elements for which a screen reader has no name, and ids that two elements have.
func (e *element) unnamed() (wrong []string) {
	for _, field := range append(e.all("input:not([type=hidden])"), append(e.all("textarea"), e.all("select")...)...) {
		if label := field.within("label"); field.attr["aria-label"] == "" && (label == nil || label.said() == "") {
			wrong = append(wrong, "no label at the field "+field.attr["name"])
		}
	}
	for _, pressed := range append(e.all("button"), e.all("a[href]")...) {
		if pressed.said() == "" && pressed.attr["aria-label"] == "" {
			wrong = append(wrong, "nothing is written on "+pressed.name+" "+pressed.attr["href"])
		}
	}
	ids := map[string]bool{}
	for _, one := range e.all("[id]") {
		if id := one.attr["id"]; ids[id] {
			wrong = append(wrong, "two elements have the id "+id)
		} else {
			ids[id] = true
		}
	}
	return wrong
}

// said returns the text of an element and of its children, without the content of fields.
func (e *element) said() string {
	text := e.text
	for _, child := range e.children {
		if child.name != "select" && child.name != "textarea" {
			text += child.said()
		}
	}
	return strings.TrimSpace(text)
}
