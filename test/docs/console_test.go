package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

// Pictures are kept small: everybody who clones has them.
const (
	pictureLimit     = 150_000
	allPicturesLimit = 1_000_000
)

func TestEveryPictureIsShownAndEachIsSmall(t *testing.T) {
	shown := map[string]string{} // the page that shows it
	link := regexp.MustCompile(`(?:\]\(|src="|srcset=")([^")]+\.(?:webp|png|svg))`)
	for _, page := range files(t, ".md") {
		for _, found := range link.FindAllStringSubmatch(read(t, page), -1) {
			shown[filepath.Join(filepath.Dir(page), found[1])] = page
		}
	}
	all := int64(0)
	stage.Must(t, filepath.WalkDir(filepath.Join(root, "docs/pictures"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		stage.Must(t, err)
		if shown[name] == "" {
			t.Errorf("no page shows %s", name)
		}
		delete(shown, name)
		info, err := e.Info()
		if err == nil && info.Size() > pictureLimit {
			t.Errorf("%s has %d bytes, which is more than %d", name, info.Size(), pictureLimit)
		}
		all += info.Size()
		return err
	}))
	if all == 0 || all > allPicturesLimit {
		t.Errorf("the pictures have %d bytes of at most %d", all, allPicturesLimit)
	}
	for name, page := range shown {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("%s shows %s, which is not there", page, name)
		}
	}
}

// TestTheEventDayCardsNameWhatTheConsoleShows finds what they have in italics on a page, in the card's own language.
func TestTheEventDayCardsNameWhatTheConsoleShows(t *testing.T) {
	words := map[string][]string{}
	said := regexp.MustCompile(`\{?\{?\(?\bt "([^"]*)" "([^"]*)"`)
	for _, page := range files(t, ".html") {
		if !strings.HasPrefix(page, "internal/console/") {
			continue
		}
		for _, found := range said.FindAllStringSubmatch(read(t, page), -1) {
			words["event-day.ko.md"] = append(words["event-day.ko.md"], found[1])
			words["event-day.md"] = append(words["event-day.md"], found[2])
		}
	}
	inGo := regexp.MustCompile(`sentence\{"([^"]*)", "([^"]*)"\}, sentence`).FindAllStringSubmatch(read(t, "internal/console/language.go"), -1)
	outcomes := regexp.MustCompile(`words: sentence\{"([^"]*)", "([^"]*)"\}`).FindAllStringSubmatch(read(t, "internal/console/outcomes.go"), -1)
	for _, found := range slices.Concat(inGo, outcomes) {
		words["event-day.ko.md"] = append(words["event-day.ko.md"], found[1])
		words["event-day.md"] = append(words["event-day.md"], found[2])
	}
	rows := map[string]int{}
	for _, card := range []string{"event-day.md", "event-day.ko.md"} {
		text := read(t, "docs/runbooks/"+card)
		_, table, _ := strings.Cut(text, "|---|")
		names := regexp.MustCompile(`\*([^*\n]+)\*`).FindAllStringSubmatch(table, -1)
		if len(names) < 20 {
			t.Errorf("%s names only %d things of the console", card, len(names))
		}
		for _, name := range names {
			if !slices.Contains(words[card], name[1]) {
				t.Errorf("%s names %q, which no page of the console shows", card, name[1])
			}
		}
		rows[card] = strings.Count(table, "\n|")
	}
	if rows["event-day.md"] != rows["event-day.ko.md"] {
		t.Errorf("the cards have so many rows: %v", rows)
	}
}
