//go:build soak

package mutants_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// TestEveryPlantedBugIsFound wants each test to fail with its bug. Without the bug it passes in make test.
func TestEveryPlantedBugIsFound(t *testing.T) {
	random := seed.Rand(t)
	for _, m := range mutants {
		planted := random.Float64() < m.share()
		t.Run(m.bug, func(t *testing.T) {
			if !planted {
				return
			}
			out, err := m.run(t, m.source(t))
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
	if m.pkg == everything {
		least = 0
	}
	return least + stage.Soak()*(1-least)
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
	test := exec.Command("go", "test", "-tags", "soak", "-count=1", "-failfast", "-vet=off", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-run", m.test, m.pkg)
	test.Dir = root
	return test.CombinedOutput()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
