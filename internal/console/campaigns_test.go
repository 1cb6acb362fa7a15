package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
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
