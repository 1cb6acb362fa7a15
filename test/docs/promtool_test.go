//go:build !check

package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/firstcome/firstcome/test/stage"
)

// promtool runs Prometheus's own checker, which .ci/install installs.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	c := exec.Command("promtool", args...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPromtoolTakesTheRulesAndTheirTests(t *testing.T) {
	promtool(t, "check", "config", "packaging/prometheus/prometheus.yaml")
	promtool(t, "check", "rules", rulesFile)
	promtool(t, "test", "rules", strings.Replace(rulesFile, ".yaml", ".test.yaml", 1))
}

func TestPromtoolTakesEveryQueryOfTheDashboard(t *testing.T) {
	type rule struct{ Record, Expr string }
	var rules []rule
	for _, queries := range panels(t) {
		for _, query := range queries {
			rules = append(rules, rule{fmt.Sprintf("dashboard:query_%d", len(rules)), grafana.Replace(query)})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	stage.Must(t, err)
	file := filepath.Join(t.TempDir(), "dashboard.rules.yaml")
	stage.Must(t, os.WriteFile(file, text, 0o600))
	promtool(t, "check", "rules", file)
}

func TestTheDashboardBeginsWithARowOfFigures(t *testing.T) {
	want := []string{"Issued", "Remaining", "Claims a second", "p95", "Unknown", "Backlog"}
	var got []string
	for _, p := range dashboard(t)[1:] { // behind the row's title
		if p.Type != "stat" {
			break
		}
		got = append(got, p.Title)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("the first row has %v, want %v", got, want)
	}
}
