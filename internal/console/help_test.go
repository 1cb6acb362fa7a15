package console_test

import (
	"html"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/docs/runbooks"
)

// TestTheHelpShowsTheCardForTheDay finds each row of the card on the page, word for word, and without any Markdown.
func TestTheHelpShowsTheCardForTheDay(t *testing.T) {
	h := openHouse(t, withKeys)
	plain, _ := h.key(firstcome.Viewer)
	b := h.login(plain)
	for lang, card := range map[string]string{"ko": runbooks.EventDayKorean, "en": runbooks.EventDay} {
		b.lang = lang
		got := b.get("/console/help")
		shown := without(html.UnescapeString(got.text()))
		title, _, _ := strings.Cut(strings.TrimPrefix(card, "# "), "\n")
		if !strings.Contains(got.body, ">"+title+"</h2>") {
			t.Errorf("%s: no title %q", lang, title)
		}
		rows := 0
		for line := range strings.Lines(card) {
			if !strings.HasPrefix(line, "| ") {
				continue
			}
			if rows++; !strings.Contains(shown, without(line)) {
				t.Errorf("%s: no %s in %s", lang, line, got.text())
			}
		}
		if rows < 15 || strings.Count(got.body, "<tr>") != rows {
			t.Errorf("%s: the card has %d rows, the page %d", lang, rows, strings.Count(got.body, "<tr>"))
		}
		if strings.ContainsAny(got.text(), "*`|[") || strings.Contains(got.body, ".md") {
			t.Errorf("%s: it is shown as Markdown: %s", lang, got.text())
		}
		for _, link := range []string{"https:", "http:", "//"} {
			if strings.Contains(got.body, `href="`+link) {
				t.Errorf("%s: a link leads away: %s", lang, got.body)
			}
		}
		if front := b.get("/console"); !strings.Contains(front.body, `href="/console/help"`) {
			t.Errorf("%s: no page leads to the help", lang)
		}
	}
}

// without returns a text without spaces and punctuation.
func without(text string) string {
	return strings.NewReplacer(" ", "", "\n", "", "|", "", "*", "", "`", "").Replace(text)
}
