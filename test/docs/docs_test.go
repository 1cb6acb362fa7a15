package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the top of the tree, as seen from here.
const root = "../.."

// read returns a file of the tree.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	stage.Must(t, err)
	return string(text)
}

// files returns the names of the tree's files with a suffix, from its top.
func files(t *testing.T, suffix string) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d files end in %s: %v", len(found), suffix, err)
	}
	return found
}

// A block is a fenced part of a document.
type block struct{ Language, Text string }

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func blocks(text string) []block {
	var all []block
	for _, found := range fence.FindAllStringSubmatch(text, -1) {
		all = append(all, block{found[1], found[2]})
	}
	return all
}

// table returns the rows of the table whose first column has the given heading:
// a cell by the heading of its column.
func table(t *testing.T, text, heading string) []map[string]string {
	t.Helper()
	var rows []map[string]string
	var headings []string
	for line := range strings.SplitSeq(text, "\n") {
		cells := cellsOf(line)
		switch {
		case cells == nil:
			headings = nil
		case headings == nil:
			headings = cells
		case headings[0] == heading && strings.Trim(cells[0], "-") != "":
			row := map[string]string{}
			for n, cell := range cells {
				row[headings[n]] = cell
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("there is no table with the heading %q", heading)
	}
	return rows
}

// cellsOf returns the cells of a table's line, without the marks of code; nil if
// it is none.
func cellsOf(line string) []string {
	inner, ok := strings.CutPrefix(line, "|")
	if !ok {
		return nil
	}
	cells := strings.Split(strings.TrimSuffix(inner, "|"), "|")
	for n := range cells {
		cells[n] = strings.TrimSpace(strings.ReplaceAll(cells[n], "`", ""))
	}
	return cells
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestEveryRelativeLinkLeadsToAFile(t *testing.T) {
	for _, file := range files(t, ".md") {
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, file), ""), -1) {
			target, _, _ := strings.Cut(found[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(file), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", file, target)
			}
		}
	}
}

func TestTheKoreanReadmeHasTheSameBlocks(t *testing.T) {
	if diff := cmp.Diff(withoutComments(blocks(read(t, "README.md"))), withoutComments(blocks(read(t, "README.ko.md")))); diff != "" {
		t.Errorf("README.ko.md shows other commands or answers than README.md (-en +ko):\n%s", diff)
	}
}

// withoutComments drops what stands behind # on the lines of commands that are
// not run: it is prose, in the language of the document.
func withoutComments(all []block) []block {
	for n := range all {
		if all[n].Language == "bash" {
			all[n].Text = regexp.MustCompile(`(?m) +#.*$`).ReplaceAllString(all[n].Text, "")
		}
	}
	return all
}

var testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z0-9][A-Za-z0-9]+)`")

func TestEveryTestThatADocumentNamesExists(t *testing.T) {
	var code strings.Builder
	for _, file := range files(t, "_test.go") {
		code.WriteString(read(t, file))
	}
	for _, file := range files(t, ".md") {
		for _, found := range testName.FindAllStringSubmatch(read(t, file), -1) {
			if !strings.Contains(code.String(), "func "+found[1]+"(") {
				t.Errorf("%s names %s, which is no test", file, found[1])
			}
		}
	}
}

var placeName = regexp.MustCompile("`([A-Za-z.]+(?:/[A-Za-z_.]+)+|[A-Za-z]+\\.(?:go|md))`")

// Contributors follow docs/changing.md, so it must name what is there.
func TestTheListOfChangesNamesFilesThatExist(t *testing.T) {
	names := placeName.FindAllStringSubmatch(read(t, "docs/changing.md"), -1)
	if len(names) < 30 {
		t.Fatalf("docs/changing.md names %d files and packages", len(names))
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(root, name[1])); err != nil {
			t.Errorf("docs/changing.md names %s, which is not there", name[1])
		}
	}
}

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z_.-]*$`)
)

// A name in an item of the list stands in one of the files that the item has named before.
func TestTheListOfChangesNamesWhatItsFilesHave(t *testing.T) {
	checked := 0
	for line := range strings.Lines(read(t, "docs/changing.md")) {
		var files, texts []string
		for _, q := range quoted.FindAllStringSubmatch(line, -1) {
			switch name := q[1]; {
			case placeName.MatchString(q[0]) && filepath.Ext(name) != "":
				files, texts = append(files, name), append(texts, read(t, name))
			case strings.HasPrefix(line, "- ") && len(files) > 0 && identifier.MatchString(name):
				word := regexp.MustCompile(`\b` + regexp.QuoteMeta(name[strings.LastIndex(name, ".")+1:]) + `\b`)
				if checked++; !slices.ContainsFunc(texts, word.MatchString) {
					t.Errorf("docs/changing.md names %s, which none of the files %v has", name, files)
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("docs/changing.md has only %d names", checked)
	}
}
