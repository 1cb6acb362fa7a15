package docs_test

import (
	"go/build/constraint"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	faultID      = regexp.MustCompile(`F\d\d`)
	command      = regexp.MustCompile(`go test( -tags soak)? -run (\S+)((?: \.\S*)+)`)
)

// faultTests returns the tests of each room; a script is a test below TestScripts or TestScriptsOnRedis.
func faultTests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, file := range files(t, "_test.go") {
		room := filepath.Dir(file)
		for _, f := range testFunction.FindAllStringSubmatch(read(t, file), -1) {
			found[room] = append(found[room], f[1])
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

// named returns the tests of a cell by their rooms: room: test, test; room: test.
func named(cell string) map[string][]string {
	rooms := map[string][]string{}
	for part := range strings.SplitSeq(cell, "; ") {
		room, tests, _ := strings.Cut(part, ": ")
		rooms[room] = strings.Split(tests, ", ")
	}
	return rooms
}

// runs reports whether one of a cell's commands runs a room's test. One that only a soak runs needs its tag.
func runs(cell, room, test string, soak bool) bool {
	for _, c := range command.FindAllStringSubmatch(strings.ReplaceAll(cell, ",", " "), -1) {
		if soak && c[1] == "" {
			continue
		}
		there := slices.ContainsFunc(strings.Fields(c[3]), func(path string) bool { return filepath.Clean(path) == room })
		patterns, names := strings.Split(c[2], "/"), strings.Split(test, "/")
		matches := len(patterns) == len(names)
		for n := range min(len(patterns), len(names)) {
			matches = matches && strings.Contains(names[n], patterns[n])
		}
		if there && matches {
			return true
		}
	}
	return false
}

func TestEveryFaultThatIsPlannedHasItsTestsAndTheirCommands(t *testing.T) {
	tests, soak := faultTests(t), soakOnly(t)
	var ids []string
	for _, row := range table(t, read(t, "docs/faults.md"), "id") {
		id := row["id"]
		ids = append(ids, id)
		if row["what is done"] == "" || row["what must be seen"] == "" {
			t.Errorf("%s does not say what is done, or what must be seen", id)
		}
		rooms := named(row["tests, by room"])
		if !strings.Contains(row["tests, by room"], id) {
			t.Errorf("%s has no test with its id in the name", id)
		}
		for room, names := range rooms {
			for _, name := range names {
				if !slices.Contains(tests[room], name) {
					t.Errorf("%s names %s, which %s does not have", id, name, room)
				}
				if !runs(row["commands"], room, name, soak[name]) {
					t.Errorf("%s has no command that runs %s of %s", id, name, room)
				}
			}
		}
	}
	var planned []string
	for id := range documentedPlan(t) {
		planned = append(planned, id)
	}
	slices.Sort(planned)
	slices.Sort(ids)
	if diff := cmp.Diff(planned, ids); diff != "" {
		t.Errorf("docs/faults.md has not the same rows in its plan and among its tests (-plan +tests):\n%s", diff)
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
	soak := soakOnly(t)
	for _, row := range table(t, read(t, "docs/faults.md"), "id") {
		shown, tier := false, "make test"
		for _, names := range named(row["tests, by room"]) {
			for _, name := range names {
				if soak[name] {
					tier = "make soak"
				}
				shown = shown || !soak[name] && strings.Contains(name, row["id"])
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

// A promise is a row of the plan: a fault, and what is expected of firstcome under it.
type promise struct{ Fault, Expected string }

// documentedPlan returns the plan as docs/faults.md has it.
func documentedPlan(t *testing.T) map[string]promise {
	t.Helper()
	plan := map[string]promise{}
	for _, row := range table(t, read(t, "docs/faults.md"), "planned") {
		if _, twice := plan[row["planned"]]; twice || !faultID.MatchString(row["planned"]) {
			t.Errorf("the plan of docs/faults.md has %s twice, or it is no id", row["planned"])
		}
		plan[row["planned"]] = promise{row["fault"], row["expected"]}
	}
	return plan
}

// leastPlanned is how many rows the plan has at least, so that none is lost unnoticed.
const leastPlanned = 63

func TestEveryRowOfThePlanSaysItsFaultAndWhatIsExpected(t *testing.T) {
	plan := documentedPlan(t)
	if len(plan) < leastPlanned {
		t.Errorf("the plan has %d rows, and had %d", len(plan), leastPlanned)
	}
	for id, p := range plan {
		if p.Fault == "" || p.Expected == "" {
			t.Errorf("%s says no fault, or not what is expected: %+v", id, p)
		}
	}
}

func TestEveryTestOfAFaultIsInItsTable(t *testing.T) {
	rows := map[string]map[string][]string{}
	for _, row := range table(t, read(t, "docs/faults.md"), "id") {
		rows[row["id"]] = named(row["tests, by room"])
	}
	tests := faultTests(t)
	for _, room := range slices.Sorted(maps.Keys(tests)) {
		for _, test := range tests[room] {
			for _, id := range faultID.FindAllString(test, -1) {
				if !slices.Contains(rows[id][room], test) {
					t.Errorf("docs/faults.md does not name %s of %s for %s", test, room, id)
				}
			}
		}
	}
}
