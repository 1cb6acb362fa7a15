package docs_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firstcome/firstcome/test/stage"
)

const (
	rulesFile     = "packaging/prometheus/firstcome.rules.yaml"
	dashboardFile = "packaging/grafana/firstcome.json"
)

// An alert is one of the rules for Prometheus.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, rulesFile)))
	decoder.KnownFields(true)
	stage.Must(t, decoder.Decode(&rules))
	var all []alert
	for _, group := range rules.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	return all
}

// A panel is a part of the dashboard.
type panel struct {
	Type, Title string
	Targets     []struct{ Expr string }
}

// dashboard returns the panels in the order in which they are shown.
func dashboard(t *testing.T) []panel {
	t.Helper()
	var all struct{ Panels []panel }
	stage.Must(t, json.Unmarshal([]byte(read(t, dashboardFile)), &all))
	return all.Panels
}

// panels returns the queries of the dashboard by the titles of their panels.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	queries := map[string][]string{}
	for _, p := range dashboard(t) {
		for _, target := range p.Targets {
			queries[p.Title] = append(queries[p.Title], target.Expr)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q asks nothing", p.Title)
		}
	}
	return queries
}

// ofEveryProcess finds what Prometheus's own library says of a process.
var ofEveryProcess = regexp.MustCompile(`\b(up|go_[a-z_]+|process_[a-z_]+)\{`)

var metricName = regexp.MustCompile(`firstcome_[a-z_]+`)

// checkQuery holds a query against the metrics that there are, and notes those it has.
func checkQuery(t *testing.T, where, query string, served, used map[string]bool) {
	t.Helper()
	names := metricName.FindAllString(query, -1)
	if len(names) == 0 && !ofEveryProcess.MatchString(query) {
		t.Errorf("%s asks for no metric: %s", where, query)
	}
	for _, name := range names {
		if !served[name] {
			name = strings.TrimSuffix(name, "_bucket")
		}
		if !served[name] {
			t.Errorf("%s asks for %s, which no server has", where, name)
		}
		used[name] = true
	}
}

func TestDashboardAndAlertsAskForMetricsThatThereAre(t *testing.T) {
	served, shown := servedMetrics(t), map[string]bool{}
	for title, queries := range panels(t) {
		for _, query := range queries {
			checkQuery(t, "the panel "+title, query, served, shown)
		}
	}
	for _, a := range alerts(t) {
		checkQuery(t, "the alert "+a.Alert, a.Expr, served, map[string]bool{})
	}
	for name := range served {
		if !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// runbookParts are what each runbook says, in this order.
var runbookParts = []string{"**Symptom.**", "**What it means.**", "**Look at**", "**Do**", "**Over when.**"}

// endsInCommand is the last thing that a runbook has somebody do: there is always a command to type.
var endsInCommand = regexp.MustCompile("^- .*`firstcome [^`]+`$")

// lastDone returns the last of the things that a runbook has somebody do.
func lastDone(text string) (last string) {
	_, do, _ := strings.Cut(text, "**Do**")
	do, _, _ = strings.Cut(do, "**Over when.**")
	for line := range strings.Lines(do) {
		if strings.HasPrefix(line, "- ") {
			last = strings.TrimSpace(line)
		}
	}
	return last
}

func TestEveryAlertHasItsRunbookAndEveryRunbookItsAlert(t *testing.T) {
	const folder = "docs/runbooks/"
	all, wanted := alerts(t), map[string]bool{}
	for _, a := range all {
		page := folder + filepath.Base(a.Annotations["runbook_url"])
		wanted[page] = true
		if !strings.HasSuffix(a.Annotations["runbook_url"], "/"+page) || a.Annotations["summary"] == "" {
			t.Errorf("%s does not lead to a page of %s, or says nothing: %v", a.Alert, folder, a.Annotations)
		}
		if severity := a.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", a.Alert, severity)
		}
		if _, err := time.ParseDuration(a.For); err != nil {
			t.Errorf("%s: %v", a.Alert, err)
		}
		text := read(t, page)
		heading, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		of := strings.Split(heading, ", ")
		if !slices.Contains(of, a.Alert) || of[0]+".md" != filepath.Base(page) {
			t.Errorf("the heading of %s does not name %s, or the page has not the name of its first alert: %s", page, a.Alert, heading)
		}
		for _, name := range of {
			if !slices.ContainsFunc(all, func(a alert) bool { return a.Alert == name }) {
				t.Errorf("the heading of %s names %s, which is no alert", page, name)
			}
		}
		for _, part := range runbookParts {
			_, rest, found := strings.Cut(text, part)
			if !found {
				t.Errorf("%s does not say %s, or not in order", page, part)
			}
			text = rest
		}
		if last := lastDone(read(t, page)); !endsInCommand.MatchString(last) {
			t.Errorf("%s does not end in one command: %s", page, last)
		}
	}
	for _, page := range files(t, ".md") {
		ofAlert := !strings.HasPrefix(filepath.Base(page), "event-day.")
		if filepath.Dir(page)+"/" == folder && ofAlert && !wanted[page] {
			t.Errorf("%s is of no alert", page)
		}
	}
	if documented := read(t, "docs/operate.md"); !strings.Contains(documented, rulesFile) || !strings.Contains(documented, dashboardFile) {
		t.Error("docs/operate.md does not name the rules and the dashboard")
	}
}

// grafana has what Grafana puts in the place of its variables.
var grafana = strings.NewReplacer("$job", ".*", "$__rate_interval", "1m", "$__range", "30m")
