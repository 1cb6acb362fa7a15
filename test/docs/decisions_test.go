package docs_test

import (
	"fmt"
	"path"
	"strings"
	"testing"
)

// TestEveryDecisionIsInTheIndex holds numbers, titles and statuses of the decisions
// against the index beside them.
func TestEveryDecisionIsInTheIndex(t *testing.T) {
	index := read(t, "docs/adr/README.md")
	next := 1
	for _, file := range files(t, ".md") {
		if path.Dir(file) != "docs/adr" || path.Base(file) == "README.md" {
			continue
		}
		heading, rest, _ := strings.Cut(read(t, file), "\n")
		title, ok := strings.CutPrefix(heading, fmt.Sprintf("# %d. ", next))
		if !ok || !strings.HasPrefix(path.Base(file), fmt.Sprintf("%04d-", next)) {
			t.Errorf("%s: %q is not the heading of number %d", file, heading, next)
		}
		if line := fmt.Sprintf("| [%d](%s) | %s", next, path.Base(file), title); !strings.Contains(index, line) {
			t.Errorf("docs/adr/README.md has no line %q", line)
		}
		if !strings.HasPrefix(rest, "\nStatus: accepted") && !strings.HasPrefix(rest, "\nStatus: superseded by ") {
			t.Errorf("%s says no status", file)
		}
		next++
	}
	if next == 1 {
		t.Error("there are no decisions")
	}
}
