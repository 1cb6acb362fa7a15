package docs_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

const module = "github.com/firstcome/firstcome"

// isCommon reports whether every package's tests may use a package.
func isCommon(pkg string) bool {
	return slices.Contains([]string{"test/browser", "test/conform", "test/seed", "test/services", "test/stage"}, pkg)
}

// allowed is a row of the table of packages.
type allowed struct {
	all      bool // it may import every package
	imports  []string
	tests    []string // what its tests also import
	standard bool     // and otherwise only the standard library
}

// packageTable reads the table in docs/ARCHITECTURE.md.
func packageTable(t *testing.T) map[string]allowed {
	t.Helper()
	all := map[string]allowed{}
	for _, row := range table(t, read(t, "docs/ARCHITECTURE.md"), "package") {
		r := allowed{standard: strings.Contains(row["what it holds"], "the standard library only")}
		switch may := row["may import"]; may {
		case "all":
			r.all = true
		case "nothing":
		default:
			for name := range strings.SplitSeq(may, ",") {
				if test, ok := strings.CutPrefix(strings.TrimSpace(name), "in tests "); ok {
					r.tests = append(r.tests, test)
					continue
				}
				r.imports = append(r.imports, strings.TrimSpace(name))
			}
		}
		all[row["package"]] = r
	}
	return all
}

func TestPackagesImportWhatTheTableAllows(t *testing.T) {
	table, seen := packageTable(t), map[string]bool{}
	for _, file := range files(t, ".go") {
		name := filepath.Dir(file)
		r, ok := table[name]
		if !ok {
			t.Errorf("%s is in a package that the table does not have: %s", file, name)
			continue
		}
		seen[name] = true
		for _, path := range imports(t, file) {
			if !r.allows(name, path, strings.HasSuffix(file, "_test.go")) {
				t.Errorf("%s imports %s, which the table does not allow", file, path)
			}
		}
	}
	for name, r := range table {
		if !seen[name] {
			t.Errorf("the table has the package %s, the tree does not", name)
		}
		for _, other := range slices.Concat(r.imports, r.tests) {
			if _, ok := table[other]; !ok {
				t.Errorf("%s may import %s, which is no package", name, other)
			}
		}
	}
}

// allows reports whether a file of the package with the given name may import a path.
func (r allowed) allows(name, path string, isTest bool) bool {
	other, ours := strings.CutPrefix(path, module)
	if !ours {
		return isTest || !r.standard || !strings.Contains(path, ".")
	}
	other = strings.TrimPrefix(other, "/")
	if other == "" {
		other = "."
	}
	return r.all || slices.Contains(r.imports, other) || isTest && (other == name || isCommon(other) || slices.Contains(r.tests, other))
}

func imports(t *testing.T, file string) []string {
	t.Helper()
	var paths []string
	for _, spec := range parse(t, file).Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		stage.Must(t, err)
		paths = append(paths, path)
	}
	return paths
}
