package console_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
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
		if !strings.Contains(got.body, `<html lang="`+lang+`" `) {
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
	if got := b.get("/console"); !strings.Contains(got.body, `<html lang="ko" `) {
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
		if got := h.browser().get(path); got.status != http.StatusNotFound || !strings.Contains(got.text(), "Not found") {
			t.Errorf("%s: %d %s", path, got.status, got.text())
		}
	}
}

func TestCampaignsAreListedOpenAndNextFirstAndFound(t *testing.T) {
	h := openHouse(t)
	for n := range 60 {
		h.campaign(fmt.Sprintf("old-%02d", n), 1)
		stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", firstcome.CampaignID(fmt.Sprintf("old-%02d", n)), 0, firstcome.ChangeClose)))
	}
	id := h.campaign("gone", 1)
	h.claim(id, "a")
	h.campaign("zeta", 10)
	b := h.browser()
	first := b.get("/console")
	ids := b.listed(first)
	if len(ids) != 62 || ids[0] != "zeta" || ids[1] != "gone" || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 62 {
		t.Errorf("%d are listed: %v", len(ids), ids)
	}
	for query, want := range map[string]string{"ZET": "zeta", "추석 gone": "gone", "old-07": "old-07"} {
		got := b.listed(b.get("/console?q=" + url.QueryEscape(query)))
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q finds %v", query, got)
		}
	}
	for _, query := range []string{"quantity", "%", "_", "'"} {
		if got := b.get("/console?q=" + url.QueryEscape(query)).text(); !strings.Contains(got, "There is no such campaign") {
			t.Errorf("%q finds %s", query, got)
		}
	}
}

// listed returns the campaigns on a page of the list and on all pages after it.
func (b *visitor) listed(page shown) (ids []string) {
	for {
		for _, found := range regexp.MustCompile(`href="/console/campaigns/([^"/]*)"`).FindAllStringSubmatch(page.body, -1) {
			if found[1] != "new" {
				ids = append(ids, found[1])
			}
		}
		next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page.body)
		if next == nil {
			return ids
		}
		page = b.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	}
}

// TestThousandsOfCampaignsAreListedAndFound has 3,000 campaigns with one name. Each is on exactly one page, and the open one comes first.
func TestThousandsOfCampaignsAreListedAndFound(t *testing.T) {
	h := openHouse(t)
	h.campaign("first", 10)
	copies := func(table, id string) {
		t.Helper()
		db := services.Beside(t, h.file)
		rows, err := db.QueryContext(t.Context(), `SELECT * FROM `+table+` LIMIT 0`)
		stage.Must(t, err)
		columns, err := rows.Columns()
		stage.Must(t, errors.Join(err, rows.Close()))
		values := strings.Join(columns, ", ")
		for column, value := range map[string]string{id: "'copy-' || n.value", "closed": "1", "closed_at": "created_at"} {
			values = regexp.MustCompile(`\b`+column+`\b`).ReplaceAllString(values, value)
		}
		_, err = db.ExecContext(t.Context(), `INSERT INTO `+table+` SELECT `+values+` FROM `+table+`, (WITH RECURSIVE n(value) AS (SELECT 1001 UNION ALL SELECT value + 1 FROM n WHERE value < 4000) SELECT value FROM n) n
			WHERE `+id+` = 'first'`)
		stage.Must(t, err)
	}
	copies("campaigns", "id")
	copies("changes", "campaign_id")
	b := h.browser()
	ids := b.listed(b.get("/console"))
	if len(ids) != 3001 || ids[0] != "first" || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 3001 {
		t.Errorf("%d are listed, %q first", len(ids), ids[0])
	}
	last := b.listed(b.get("/console?offset=2900&q=" + url.QueryEscape("추석")))
	if !slices.Equal(last, ids[2900:]) {
		t.Errorf("the last ones found by their name are %d: %v", len(last), last)
	}
	if got := b.listed(b.get("/console?q=copy-3999")); len(got) != 1 || got[0] != "copy-3999" {
		t.Errorf("found %v", got)
	}
}
