package mutants_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) { services.Main(m) }

// root is the repository's.
const root = "../.."

// whole is the package of which each build takes half a minute: its bugs are planted in as much of a soak as SOAK says. At least an eighth of the
// others is planted, by chance.
const everything = "./cmd/firstcome"

// A mutant is one bug: in file, old is replaced by new, and the test of the package has to fail.
type mutant struct {
	bug       string
	file      string
	old, new  string
	pkg, test string
}

// mutants are all bugs.
var mutants = slices.Concat(claimsBugs, gatesBugs, recoveryBugs, pagesBugs)

// TestEachBugCanBePlanted keeps the list true in every run: what each bug replaces is there, and so is its test. A soak
// plants the bugs.
func TestEachBugCanBePlanted(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.bug, func(t *testing.T) {
			m.source(t)
			test, _, _ := strings.Cut(m.test, "/")
			if !slices.ContainsFunc(m.tests(t), regexp.MustCompile(test).MatchString) {
				t.Errorf("%s has no test %s", m.pkg, test)
			}
		})
	}
}

var function = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// tests returns the names of the tests of the bug's package, in every tier.
func (m mutant) tests(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			names = append(names, found[1])
		}
	}
	return names
}

// source returns the file in which the bug is planted. It has what the bug replaces once.
func (m mutant) source(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("%s has %d times what the bug replaces: %s", m.file, n, m.old)
	}
	return string(source)
}
