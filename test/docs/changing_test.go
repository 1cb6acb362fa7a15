package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
)

// TestASectionOfChangingNamesEveryPlace holds the sections of docs/changing.md that promise all places against the files that have them: those of
// an outcome are the files that name every outcome, and those of a term the files that name one which is only stored and shown.
func TestASectionOfChangingNamesEveryPlace(t *testing.T) {
	var outcomes []*regexp.Regexp
	for _, o := range firstcome.Outcomes() {
		outcomes = append(outcomes, wordOf(o.String()))
	}
	for title, known := range map[string]func(text string) bool{
		"Add an outcome": func(text string) bool {
			return !slices.ContainsFunc(outcomes, func(word *regexp.Regexp) bool { return !word.MatchString(text) })
		},
		"Add a term of a campaign": wordOf("valid_until").MatchString,
	} {
		places, besides := placesOf(t, title)
		var found []string
		for _, kind := range []string{".go", ".lua", ".js", ".css", ".html", ".sql"} {
			for _, file := range files(t, kind) {
				if isProduct(file) && !slices.Contains(besides, file) && !slices.Contains(elsewhere, file) && known(read(t, file)) {
					found = append(found, file)
				}
			}
		}
		slices.Sort(found)
		if diff := cmp.Diff(places, found); diff != "" {
			t.Errorf("the section %q names other files (-) than those with such a thing (+): name them, or better let one file have it:\n%s", title, diff)
		}
	}
}

// elsewhere are the files that name every outcome, too, and need no change for another one.
var elsewhere = []string{
	"internal/console/pages/live.html", // legends and marks name some, and one has the colour of another
	"internal/sqlgate/serve.go",        // some refuse who joins, some end a line, and some are how a ticket ended
}

// wordOf matches a name as JSON, Go and Lua write it.
func wordOf(name string) *regexp.Regexp {
	parts := strings.Split(name, "_")
	for n, part := range parts {
		parts[n] = strings.ToUpper(part[:1]) + part[1:]
	}
	return regexp.MustCompile(`\b(` + name + `|` + strings.Join(parts, "") + `|` + strings.ToUpper(name) + `)\b`)
}

// isProduct reports whether a file is no test, no migration and no other design.
func isProduct(file string) bool {
	return !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "test/") && !strings.Contains(file, "designs/") && !strings.Contains(file, "/testdata/") &&
		!strings.Contains(file, "/migrations/") && !strings.HasPrefix(file, ".ci/")
}

// placesOf returns the files that a section names before the word Besides, in order, and those after it.
func placesOf(t *testing.T, title string) (places, besides []string) {
	t.Helper()
	_, section, ok := strings.Cut(read(t, "docs/changing.md"), "\n## "+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	first, rest, both := strings.Cut(section, "Besides")
	if !ok || !both {
		t.Fatalf("docs/changing.md has no section %q, or that names nothing besides", title)
	}
	named := func(text string) (all []string) {
		for _, name := range placeName.FindAllStringSubmatch(text, -1) {
			if filepath.Ext(name[1]) != "" {
				all = append(all, name[1])
			}
		}
		slices.Sort(all)
		return all
	}
	return named(first), named(rest)
}
