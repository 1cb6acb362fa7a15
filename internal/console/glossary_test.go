//go:build !race || soak

package console_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestEachWordOfTheGlossaryIsExplainedWhereItStands opens every page in both languages. The help has each word that a page explains, with the same
// explanation, and a page explains each word of the help. A template with a word that the glossary lacks makes its page fail, so every word in a
// template is shown here.
func TestEachWordOfTheGlossaryIsExplainedWhereItStands(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	b := h.login(plain)
	for _, b.lang = range []string{"ko", "en"} {
		explained, shown := map[string]string{}, map[string]bool{}
		for _, path := range pagesToLookAt(t, h) {
			page := parse(t, b.get(path).body)
			for _, button := range page.all("button[popovertarget]") {
				id := button.attr["popovertarget"]
				tips := page.all("[id=" + id + "]")
				if _, pops := tips[0].attr["popover"]; len(tips) != 1 || !pops || button.attr["type"] != "button" {
					t.Fatalf("%s: %s leads to %d explanations", path, id, len(tips))
				}
				explained[button.said()], shown[id] = tips[0].said(), true
			}
		}
		listed := map[string]string{}
		for _, row := range parse(t, b.get("/console/help").body).all("dl div") {
			listed[row.all("dt")[0].said()] = row.all("dd")[0].said()
		}
		stage.Same(t, "the words of the help and those that pages explain, "+b.lang, listed, explained)
		for word, what := range listed {
			if hangul.MatchString(what) != (b.lang == "ko") || what == "" {
				t.Errorf("%s: %s is explained by %q", b.lang, word, what)
			}
		}
		for _, id := range termsOfTemplates(t) {
			if !shown["tip-"+id] {
				t.Errorf("%s: no page shows the word %s", b.lang, id)
			}
		}
	}
}

// termsOfTemplates returns the ids of the words in templates.
func termsOfTemplates(t *testing.T) (ids []string) {
	files, err := filepath.Glob("pages/*.html")
	stage.Must(t, err)
	parts, err := filepath.Glob("pages/parts/*.html")
	stage.Must(t, err)
	for _, file := range slices.Concat(files, parts) {
		source, err := os.ReadFile(file)
		stage.Must(t, err)
		for _, found := range regexp.MustCompile(`\btip "([^"]*)"`).FindAllStringSubmatch(string(source), -1) {
			ids = append(ids, found[1])
		}
	}
	return ids
}
