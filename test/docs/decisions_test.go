package docs_test

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"
)

// TestEveryDecisionIsInTheIndex holds numbers, titles and statuses of the decisions
// against the index beside them.
func TestEveryDecisionIsInTheIndex(t *testing.T) {
	index := read(t, "docs/adr/README.md")
	last := 0 // they rise, and some may be on their way
	for _, file := range files(t, ".md") {
		if path.Dir(file) != "docs/adr" || path.Base(file) == "README.md" {
			continue
		}
		heading, rest, _ := strings.Cut(read(t, file), "\n")
		number, _ := strconv.Atoi(path.Base(file)[:len("0001")])
		title, ok := strings.CutPrefix(heading, fmt.Sprintf("# %d. ", number))
		if !ok || number <= last {
			t.Errorf("%s: %q is not the heading of its number, or follows %d", file, heading, last)
		}
		if line := fmt.Sprintf("| [%d](%s) | %s", number, path.Base(file), title); !strings.Contains(index, line) {
			t.Errorf("docs/adr/README.md has no line %q", line)
		}
		if !strings.HasPrefix(rest, "\nStatus: accepted") && !strings.HasPrefix(rest, "\nStatus: superseded by ") {
			t.Errorf("%s says no status", file)
		}
		last = number
	}
	if last == 0 {
		t.Error("there are no decisions")
	}
}
