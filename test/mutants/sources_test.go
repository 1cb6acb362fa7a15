package mutants_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) { services.Main(m) }

// root is the repository's.
const root = "../.."

// whole is the package of which each build takes half a minute: its bugs are planted in as much of a soak as SOAK says. At least an eighth of the
// others is planted, by chance.
const whole = "./cmd/firstcome"

// A mutant is one bug: in file, old is replaced by new, and the test of the package has to fail.
type mutant struct {
	bug       string
	file      string
	old, new  string
	pkg, test string
}

// TestEachBugCanBePlanted keeps the list true in every run. A soak plants the bugs.
func TestEachBugCanBePlanted(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.bug, func(t *testing.T) { m.source(t) })
	}
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
