package mutants_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// root is the repository's.
const root = "../.."

// A mutant is one bug: in file, old is replaced by new, and the test of the package has to fail.
type mutant struct {
	bug       string
	file      string
	old, new  string
	pkg, test string
}

// whole is the package of which each build takes half a minute: its bugs are planted in a soak only. Of the others an eighth is planted each
// time, by chance: all of them take as long as the longest of all tests.
const whole = "./cmd/firstcome"

// TestEveryPlantedBugIsFound wants each test to pass on the sources as they are, where another test runs it, and
// to fail with its bug. What a bug replaces has to be in the sources, planted or not.
func TestEveryPlantedBugIsFound(t *testing.T) {
	random := seed.Rand(t)
	for _, m := range mutants {
		planted := random.Float64() < m.share()
		t.Run(m.bug, func(t *testing.T) {
			source := m.source(t)
			if !planted {
				return
			}
			out, err := m.run(t, source)
			switch text := string(out); {
			case err == nil && strings.Contains(text, "no tests to run"):
				t.Errorf("%s has no test %s", m.pkg, m.test)
			case err == nil:
				t.Errorf("%s of %s passes with this bug in %s", m.test, m.pkg, m.file)
			case !strings.Contains(text, "--- FAIL") || strings.Contains(text, "[build failed]"):
				t.Errorf("the bug does not make a test fail:\n%s", text)
			}
		})
	}
}

// share is the probability that the bug is planted.
func (m mutant) share() float64 {
	least := 1. / 8
	if m.pkg == whole {
		least = 0
	}
	return least + stage.Soak()*(1-least)
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

// run runs the mutant's test with its bug.
func (m mutant) run(t *testing.T, source string) ([]byte, error) {
	t.Helper()
	dir := t.TempDir()
	planted := filepath.Join(dir, "planted"+filepath.Ext(m.file))
	original, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: planted}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, planted, strings.Replace(source, m.old, m.new, 1))
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	// Most of the time goes into building: vet has nothing to say of a bug, and nobody debugs it.
	test := exec.Command("go", "test", "-count=1", "-failfast", "-vet=off", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-run", m.test, m.pkg)
	test.Dir = root
	return test.CombinedOutput()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
