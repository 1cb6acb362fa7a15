package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commitID is a commit's; what was mended together with the first version of the page says so.
var commitID = regexp.MustCompile(`^([0-9a-f]{7}|with this page)$`)

// leastBugs is how many bugs docs/bugs.md has at least, so that none is forgotten.
const leastBugs = 57

// TestEveryBugNamesTheTestThatHoldsItsMend wants a test that exists, or why there is none.
func TestEveryBugNamesTheTestThatHoldsItsMend(t *testing.T) {
	tests := faultTests(t)
	var bugs []map[string]string
	for part := range strings.SplitSeq(read(t, "docs/bugs.md"), "\n## ") {
		if _, has, ok := strings.Cut(part, "\n| bug |"); ok {
			bugs = append(bugs, table(t, "| bug |"+has, "bug")...)
		}
	}
	if len(bugs) < leastBugs {
		t.Errorf("docs/bugs.md has %d bugs, and had %d", len(bugs), leastBugs)
	}
	for _, row := range bugs {
		if row["found by"] == "" || !commitID.MatchString(row["commit"]) {
			t.Errorf("%q does not say how it was found, or in which commit it was mended: %q", row["bug"], row["commit"])
		}
		if why, none := strings.CutPrefix(row["tests, by package"], "none: "); none {
			if why == "" {
				t.Errorf("%q has no test, and does not say why", row["bug"])
			}
			continue
		}
		for pkg, names := range named(row["tests, by package"]) {
			for _, name := range names {
				if !slices.Contains(tests[pkg], name) {
					t.Errorf("%q names %s, which %s does not have", row["bug"], name, pkg)
				}
			}
		}
	}
}
