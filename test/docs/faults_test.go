package docs_test

import (
	"go/build/constraint"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	faultID      = regexp.MustCompile(`F\d\d`)
)

// faultTests returns the tests of each package; a script is a test below TestScripts or TestScriptsOnRedis.
func faultTests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, file := range files(t, "_test.go") {
		pkg := filepath.Dir(file)
		for _, f := range testFunction.FindAllStringSubmatch(read(t, file), -1) {
			found[pkg] = append(found[pkg], f[1])
		}
	}
	for test, scripts := range map[string]string{"TestScripts/": "script", "TestScriptsOnRedis/": "redis"} {
		names, err := fs.Glob(os.DirFS(filepath.Join(root, "cmd/firstcome/testdata", scripts)), "*.txtar")
		stage.Must(t, err)
		for _, name := range names {
			found["cmd/firstcome"] = append(found["cmd/firstcome"], test+strings.TrimSuffix(name, ".txtar"))
		}
	}
	return found
}

// named returns the tests of a cell by their packages: package: test, test; package: test.
func named(cell string) map[string][]string {
	packages := map[string][]string{}
	for part := range strings.SplitSeq(cell, "; ") {
		pkg, tests, _ := strings.Cut(part, ": ")
		packages[pkg] = strings.Split(tests, ", ")
	}
	return packages
}

// withID returns the tests that have a row's id in their names.
func withID(tests map[string][]string, id string) (names []string) {
	for _, all := range tests {
		for _, name := range all {
			if strings.Contains(name, id) {
				names = append(names, name)
			}
		}
	}
	return names
}

// leastFaults is how many rows the table has at least, so that none is lost unnoticed.
const leastFaults = 63

func TestEveryFaultSaysWhatMustBeSeenAndHasTests(t *testing.T) {
	tests, rows := faultTests(t), map[string]bool{}
	for _, row := range table(t, read(t, "docs/faults.md"), "id") {
		id := row["id"]
		if rows[id] || !faultID.MatchString(id) || row["fault"] == "" || row["what must be seen"] == "" {
			t.Errorf("%s is there twice, is no id, or does not say the fault and what must be seen", id)
		}
		rows[id] = true
		if least, err := strconv.Atoi(row["tests"]); err != nil || len(withID(tests, id)) < least {
			t.Errorf("%s has %d tests with its id in the name, and docs/faults.md says that it has at least %q", id, len(withID(tests, id)), row["tests"])
		}
		if row["also"] == "" {
			continue
		}
		for pkg, names := range named(row["also"]) {
			for _, name := range names {
				if !slices.Contains(tests[pkg], name) || strings.Contains(name, id) {
					t.Errorf("%s names %s, which %s does not have, or which has the id in its name", id, name, pkg)
				}
			}
		}
	}
	if len(rows) < leastFaults {
		t.Errorf("docs/faults.md has %d rows, and had %d", len(rows), leastFaults)
	}
	for pkg, names := range tests {
		for _, name := range names {
			for _, id := range faultID.FindAllString(name, -1) {
				if !rows[id] {
					t.Errorf("%s of %s is of the row %s, which docs/faults.md does not have", name, pkg, id)
				}
			}
		}
	}
}

// soakOnly returns the tests that only a soak runs, by the build tag of their files.
func soakOnly(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, file := range files(t, "_test.go") {
		text := read(t, file)
		line, _, _ := strings.Cut(text, "\n")
		if !constraint.IsGoBuild(line) {
			continue
		}
		tags, err := constraint.Parse(line)
		stage.Must(t, err)
		if !tags.Eval(func(tag string) bool { return tag == "linux" }) {
			for _, f := range testFunction.FindAllStringSubmatch(text, -1) {
				found[f[1]] = true
			}
		}
	}
	return found
}

// TestEveryFaultIsShownInMakeTest also compares the tier in which a row's tests run in full with the build tags of their files.
func TestEveryFaultIsShownInMakeTest(t *testing.T) {
	tests, soak := faultTests(t), soakOnly(t)
	for _, row := range table(t, read(t, "docs/faults.md"), "id") {
		shown, tier := false, "make test"
		for _, name := range withID(tests, row["id"]) {
			if soak[name] {
				tier = "make soak"
			} else {
				shown = true
			}
		}
		if !shown {
			t.Errorf("%s has no test in make test with its id in the name", row["id"])
		}
		if row["in full"] != tier {
			t.Errorf("%s runs in full in %s, and docs/faults.md says %s", row["id"], tier, row["in full"])
		}
	}
}
