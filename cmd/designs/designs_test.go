//go:build !check && (!race || soak)

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/designs/verdict"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// TestAQuickComparisonShowsEachContestant compares two designs and firstcome.
func TestAQuickComparisonShowsEachContestant(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "all.json"), filepath.Join(dir, "all.html")
	var out, problems strings.Builder
	names := []string{"row-lock", "lua-list", "firstcome-sqlite"}
	if status := run(t.Context(), []string{"--quick", "--only", strings.Join(names, ","), "--json", file, "--report", page}, &out, &problems); status != exitOK {
		t.Fatalf("exit %d: %s\n%s", status, problems.String(), out.String())
	}
	var rep report
	text, err := os.ReadFile(file)
	stage.Must(t, err)
	stage.Must(t, json.Unmarshal(text, &rep))
	html, err := os.ReadFile(page)
	stage.Must(t, err)
	for _, name := range names {
		if !strings.Contains(out.String(), "\n"+name+" ") || !strings.Contains(string(html), "<th>"+name+"</th>") {
			t.Errorf("no line of %s in\n%s", name, out.String())
		}
		for _, quick := range quickly {
			all := rep.of(name, quick.Name)
			if len(all) != 1 {
				t.Fatalf("%d results of %s, %s", len(all), name, quick.Name)
			}
			res := all[0]
			if res.Verdict.Wrong() != 0 || res.Verdict.Stored == 0 || res.Winners == 0 || res.Service == 0 {
				t.Errorf("%s, %s: %s", name, quick.Name, res.line())
			}
			if quick.quantity != endless && res.Verdict.Stored != quick.quantity {
				t.Errorf("%s, %s: %d rows of %d", name, quick.Name, res.Verdict.Stored, quick.quantity)
			}
			if told := res.Curve[len(res.Curve)-1]; int64(told.Stored) != res.Verdict.Stored || !slices.IsSorted(res.Latencies) {
				t.Errorf("%s, %s: the curve ends at %v, the latencies are %v", name, quick.Name, told, res.Latencies)
			}
		}
	}
	for _, other := range contestants() {
		if !slices.Contains(names, other.name) && !slices.Contains(rep.LeftOut, other.name+" (not in --only)") {
			t.Errorf("%s is left out silently", other.name)
		}
	}
}

// TestResultsAreShownAgain makes the table, the picture and the report of a file of results.
func TestResultsAreShownAgain(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	rep := &report{}
	for name, stored := range map[string]float64{"lua-list": 30_000, "row-lock": 700, "firstcome-sqlite": 20_000} {
		for _, trial := range []string{"exact", "speed-64", underFault.Name} {
			lost := verdict.Verdict{}
			if name == "lua-list" && trial == underFault.Name {
				lost.Lost = 1162
			}
			res := &result{Contestant: name, Trial: trial, Verdict: lost, Winners: stored, Latencies: []float64{0, .001}, Curve: []moment{{}, {Second: 1, Told: 2, Stored: 1}}}
			if trial == underFault.Name {
				res.Fault = "killed"
			}
			rep.Results = append(rep.Results, res)
		}
	}
	text, err := json.Marshal(rep)
	stage.Must(t, err)
	stage.Must(t, os.WriteFile(file("all.json"), text, 0o600))
	var out, problems strings.Builder
	for _, args := range [][]string{{"--table", file("table.md"), "--picture", file("all.svg"), "--report", file("all.html")}, {"--table", file("table.ko.md")}} {
		if status := run(t.Context(), append(args, "--from", file("all.json")), &out, &problems); status != exitOK {
			t.Fatalf("exit %d: %s\n%s", status, problems.String(), out.String())
		}
	}
	for name, wants := range map[string][]string{
		"table.md":    {"| `lua-list` | yes | kept | 0 | 30,000 | 0.0 ms | 1,162 told and not stored (killed) |\n", "| `row-lock` | yes | kept | 0 | 700 | 0.0 ms | exact |\n"},
		"table.ko.md": {"| `lua-list` | 예 | 지켜짐 | 0 | 30,000 | 0.0 ms | 발급 안내 후 미저장 1,162명(killed) |\n"},
		"all.svg":     {`<rect class="no" x="190" y="37" width="400.0"`, `<rect class="ok" x="190" y="61" width="266.7"`, `class="f">firstcome-sqlite`, ">30,000 ✗</text>", ">700 ✓</text>"},
		"all.html":    {"<th>lua-list</th>", "1,162 told and not stored"},
	} {
		text, err := os.ReadFile(file(name))
		stage.Must(t, err)
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(string(text), "zset-rank") {
			t.Errorf("%s shows zset-rank, which has no results", name)
		}
	}
}

// TestThePictureCallsExactWhatWasExactInEveryRun also where the table has no column for the run.
func TestThePictureCallsExactWhatWasExactInEveryRun(t *testing.T) {
	plain, steady, fault := result{Trial: "exact"}, result{Trial: "steady"}, result{Trial: underFault.Name, Fault: "killed"}
	overtaken, unfinished, harmless := steady, plain, fault
	overtaken.Verdict.Order.Overtaken, unfinished.Unfinished, harmless.Nothing = 1, "1 of 2 stored", "the load ended before it"
	for name, test := range map[string]struct {
		runs  []result
		exact bool
	}{
		"all exact":                  {[]result{plain, steady, fault}, true},
		"out of order while steady":  {[]result{plain, overtaken, fault}, false},
		"not finished":               {[]result{unfinished, fault}, false},
		"without faults":             {[]result{plain, steady}, false},
		"a fault that did no harm":   {[]result{plain, harmless}, false},
		"wrong, but somebody else's": {[]result{plain, fault, {Contestant: "other", Verdict: verdict.Verdict{Lost: 1}}}, true},
	} {
		rep := &report{}
		for _, res := range test.runs {
			rep.Results = append(rep.Results, &res)
		}
		if rep.exact("") != test.exact {
			t.Errorf("%s: exact is %v", name, !test.exact)
		}
	}
}

// TestAComparisonFailsByFirstcomeAlone wants the exit status to tell whether firstcome was wrong: a design may be.
func TestAComparisonFailsByFirstcomeAlone(t *testing.T) {
	wrong := verdict.Verdict{Lost: 1}
	for name, fails := range map[string]bool{"lua-list": false, "firstcome-redis": true} {
		rep := &report{Results: []*result{{Contestant: name, Trial: "exact", Verdict: wrong, Latencies: []float64{0}, Curve: []moment{{}}}}}
		if err := show(&strings.Builder{}, files{}, rep, nil); (err != nil) != fails {
			t.Errorf("%s with a lost winner: %v", name, err)
		}
	}
	if err := show(&strings.Builder{}, files{}, &report{Failures: []string{"lua-list did not run"}}, nil); err == nil {
		t.Error("a contestant that did not run is no failure")
	}
}

// TestMistakesAreRefusedBeforeAnythingStarts wants status 2, and what to do.
func TestMistakesAreRefusedBeforeAnythingStarts(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.json")
	stage.Must(t, os.WriteFile(empty, []byte("{}"), 0o600))
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"a contestant that there is not": {[]string{"--only", "zset"}, `no contestant is called "zset": see --list`},
		"nothing left":                   {[]string{"--only", "list-lock-kafka", "--without", "kafka"}, "nothing is left to run"},
		"a fault that there is not":      {[]string{"--only", "zset-rank", "--faults", "fire"}, `no fault is called "fire"`},
		"no rounds":                      {[]string{"--rounds", "-1"}, "rounds"},
		"quick, with faults":             {[]string{"--quick", "--faults", "all"}, "leave out --rounds and --faults"},
		"a file of no results":           {[]string{"--from", empty}, "has no results"},
		"results that are not there":     {[]string{"--from", "/nowhere/file"}, "/nowhere/file"},
		"a file that cannot be made":     {[]string{"--only", "row-lock", "--json", "/nowhere/file"}, "/nowhere/file"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, problems strings.Builder
			if status := run(t.Context(), test.args, &out, &problems); status != exitUsage || !strings.Contains(problems.String(), test.says) {
				t.Errorf("exit %d: %s", status, problems.String())
			}
		})
	}
}
