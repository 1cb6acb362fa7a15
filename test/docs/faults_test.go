package docs_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// planned are the faults of the test plan that one machine, or many, must survive. The
// table may show more.
var planned = []string{
	"F06", "F07", "F08", "F09", "F10", "F11", "F12", "F13", "F14", "F15", "F16", "F17", "F19", "F20",
	"F21", "F22", "F23", "F24", "F25", "F26", "F27", "F28", "F29", "F30", "F31", "F32", "F33", "F34",
	"F41", "F42", "F43", "F44", "F45", "F49", "F51", "F52", "F53", "F55", "F56", "F57",
	"F61", "F62", "F63", "F64", "F65",
}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	faultID      = regexp.MustCompile(`F\d\d`)
	command      = regexp.MustCompile(`go test -run (\S+)((?: \.\S*)+)`)
)

// faultTests returns the tests of each room; a script is a test below TestScripts.
func faultTests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, file := range files(t, "_test.go") {
		room := filepath.Dir(file)
		for _, f := range testFunction.FindAllStringSubmatch(read(t, file), -1) {
			found[room] = append(found[room], f[1])
		}
	}
	const scripts = "cmd/firstcome/testdata/script"
	names, err := fs.Glob(os.DirFS(filepath.Join(root, scripts)), "*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		found["cmd/firstcome"] = append(found["cmd/firstcome"], "TestScripts/"+strings.TrimSuffix(name, ".txtar"))
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

// runs tells whether one of a cell's commands runs a room's test.
func runs(cell, room, test string) bool {
	for _, c := range command.FindAllStringSubmatch(strings.ReplaceAll(cell, ",", " "), -1) {
		there := slices.ContainsFunc(strings.Fields(c[2]), func(path string) bool { return filepath.Clean(path) == room })
		patterns, names := strings.Split(c[1], "/"), strings.Split(test, "/")
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
	tests := faultTests(t)
	var ids []string
	for _, row := range table(t, read(t, "docs/faults.md"), "id") {
		id := row["id"]
		ids = append(ids, id)
		rooms := named(row["tests, by room"])
		for room, names := range rooms {
			for _, name := range names {
				if !slices.Contains(tests[room], name) {
					t.Errorf("%s names %s, which %s does not have", id, name, room)
				}
				if !runs(row["commands"], room, name) {
					t.Errorf("%s has no command that runs %s of %s", id, name, room)
				}
			}
		}
	}
	for _, id := range planned {
		if !slices.Contains(ids, id) {
			t.Errorf("docs/faults.md has no row %s", id)
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
