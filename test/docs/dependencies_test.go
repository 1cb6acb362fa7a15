package docs_test

import (
	"strings"
	"testing"
)

// dependencies are modules by whether the binary has them.
type dependencies map[string]bool

// documentedDependencies reads the two tables of the decision about dependencies.
func documentedDependencies(t *testing.T) dependencies {
	t.Helper()
	binary, tests, ok := strings.Cut(read(t, "docs/adr/0007-dependencies.md"), "In tests only:")
	if !ok {
		t.Fatal("the two tables are not there")
	}
	all := dependencies{}
	for _, row := range table(t, binary, "module") {
		all[row["module"]] = true
	}
	for _, row := range table(t, tests, "module") {
		all[row["module"]] = false
	}
	return all
}

// of returns the module that an import is of.
func (d dependencies) of(path string) (module string, ok bool) {
	for module := range d {
		if path == module || strings.HasPrefix(path, module+"/") {
			return module, true
		}
	}
	return "", false
}

func TestEveryDependencyHasALineAndEveryLineIsADependency(t *testing.T) {
	documented, used := documentedDependencies(t), map[string]bool{}
	for _, file := range files(t, ".go") {
		isTest := strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/")
		for _, path := range imports(t, file) {
			if domain, _, _ := strings.Cut(path, "/"); !strings.Contains(domain, ".") || strings.HasPrefix(path, module) {
				continue
			}
			m, ok := documented.of(path)
			switch {
			case !ok:
				t.Errorf("%s imports %s, which has no line", file, path)
			case !isTest && !documented[m]:
				t.Errorf("%s imports %s, which is said to be in tests only", file, path)
			}
			used[m] = used[m] || !isTest || !documented[m]
		}
	}
	for m := range documented {
		if strings.Contains(m, "/") && !used[m] {
			t.Errorf("%s has a line, and nothing imports it there", m)
		}
	}
}
