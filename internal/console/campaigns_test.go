package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

func TestThePagesSpeakBothLanguages(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 10)
	h.claim(id, "mina", "jun")
	b := h.browser()
	for lang, words := range map[string][]string{"ko": {"캠페인", "추석 spring", "진행 중", "2 / 10"}, "en": {"Campaigns", "추석 spring", "open", "2 / 10"}} {
		b.lang = lang
		got := b.get("/console")
		if !strings.Contains(got.body, `<html lang="`+lang+`">`) {
			t.Errorf("%s: not its language", lang)
		}
		for _, word := range words {
			if !strings.Contains(got.text(), word) {
				t.Errorf("%s: no %q in %s", lang, word, got.text())
			}
		}
	}
	b.lang = "en"
	b.get("/console?lang=ko")
	if got := b.get("/console"); !strings.Contains(got.body, `<html lang="ko">`) {
		t.Error("the language that somebody chose is forgotten")
	}
}

func TestMarkupInNamesIsText(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "a test", "spring", 0, func(terms *firstcome.Terms) {
		terms.Name = `<script>alert(1)</script>"><img src=x onerror=alert(1)>`
	})))
	for _, path := range []string{"/console", "/console/campaigns/spring"} {
		if got := h.browser().get(path); strings.Contains(got.body, "<script>alert") || strings.Contains(got.body, "<img") {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}

func TestAStaleFormChangesNothing(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	page := b.get("/console/campaigns/spring")
	if got := b.post("/console/campaigns/spring/switch", url.Values{"to": {"pause"}, "version": {page.version()}}); got.status != http.StatusOK || !strings.Contains(got.text(), "paused") {
		t.Fatalf("paused: %d %s", got.status, got.text())
	}
	if got := b.post("/console/campaigns/spring/switch", url.Values{"to": {"resume"}, "version": {page.version()}}); got.status != http.StatusPreconditionFailed {
		t.Errorf("a stale form: %d %s", got.status, got.text())
	}
}

func TestWhatIsNotThereIs404(t *testing.T) {
	h := openHouse(t)
	for _, path := range []string{"/console/nothing", "/console/campaigns/none", "/console/campaigns/NOT%20AN%20ID"} {
		if got := h.browser().get(path); got.status != http.StatusNotFound || !strings.Contains(got.text(), "There is no such thing") {
			t.Errorf("%s: %d %s", path, got.status, got.text())
		}
	}
}

func TestCampaignsAreListedOpenAndNextFirstAndFound(t *testing.T) {
	h := openHouse(t)
	for n := range 60 {
		h.campaign(fmt.Sprintf("old-%02d", n), 1)
		stage.Must(t, stage.Err(h.config.Operator.Switch(t.Context(), "a test", firstcome.CampaignID(fmt.Sprintf("old-%02d", n)), 0, ledger.Close)))
	}
	id := h.campaign("gone", 1)
	h.claim(id, "a")
	h.campaign("zeta", 10)
	b := h.browser()
	first := b.get("/console")
	order := regexp.MustCompile(`href="/console/campaigns/((?:old|gone|zeta)[^"]*)"`)
	var ids []string
	for page := first; ; {
		for _, found := range order.FindAllStringSubmatch(page.body, -1) {
			ids = append(ids, found[1])
		}
		next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page.body)
		if next == nil {
			break
		}
		page = b.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	}
	if len(ids) != 62 || ids[0] != "zeta" || ids[1] != "gone" || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 62 {
		t.Errorf("%d are listed: %v", len(ids), ids)
	}
	for query, want := range map[string]string{"ZET": "zeta", "추석 gone": "gone", "old-07": "old-07"} {
		got := order.FindAllStringSubmatch(b.get("/console?q="+url.QueryEscape(query)).body, -1)
		if len(got) != 1 || got[0][1] != want {
			t.Errorf("%q finds %v", query, got)
		}
	}
	for _, query := range []string{"quantity", "%", "_", "'"} {
		if got := b.get("/console?q=" + url.QueryEscape(query)).text(); !strings.Contains(got, "There is no such campaign") {
			t.Errorf("%q finds %s", query, got)
		}
	}
}
