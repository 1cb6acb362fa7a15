package docs_test

import (
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

// faultPoints returns the points of internal/point: their values by their names in Go.
func faultPoints(t *testing.T) map[string]string {
	t.Helper()
	points := map[string]string{}
	ast.Inspect(parse(t, "internal/point/point.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		stage.Must(t, err)
		points[spec.Names[0].Name] = value
		return true
	})
	return points
}

// TestEveryFaultPointIsPassedAtOnePlaceAndHasARow compares the points with the program, where a package passes each at one place, with
// the table in docs/faults.md, and with the tests that put a fault at each.
func TestEveryFaultPointIsPassedAtOnePlaceAndHasARow(t *testing.T) {
	places := map[string]map[string]int{} // of each point, by package: there are two journals
	for _, file := range files(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "test/") {
			for _, part := range strings.Split(read(t, file), "point.Reach(point.")[1:] {
				name, _, _ := strings.Cut(part, ")")
				if places[name] == nil {
					places[name] = map[string]int{}
				}
				places[name][filepath.Dir(file)]++
			}
		}
	}
	points, tried := faultPoints(t), ""
	for _, file := range files(t, "_test.go") {
		if strings.HasPrefix(file, "test/e2e/") {
			tried += read(t, file)
		}
	}
	for name := range points {
		if len(places[name]) == 0 {
			t.Errorf("the point %s is passed nowhere", name)
		}
		for pkg, count := range places[name] {
			if count != 1 {
				t.Errorf("the point %s is passed at %d places of %s, want one", name, count, pkg)
			}
		}
		if !strings.Contains(tried, "point."+name) {
			t.Errorf("no test of test/e2e has a fault at %s", name)
		}
		delete(places, name)
	}
	for name := range places {
		t.Errorf("the program passes %s, which internal/point does not have", name)
	}
	var documented []string
	for _, row := range table(t, read(t, "docs/faults.md"), "fault point") {
		documented = append(documented, row["fault point"])
	}
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Sorted(maps.Values(points)), documented); diff != "" {
		t.Errorf("docs/faults.md has other fault points than internal/point (-program +docs):\n%s", diff)
	}
}
