package docs_test

import (
	"go/ast"
	"path/filepath"
	"strings"
	"testing"
)

// inTests calls each with every file of tests, parsed: those of test, and all of _test.go.
func inTests(t *testing.T, each func(file string, parsed *ast.File)) {
	t.Helper()
	for _, file := range files(t, ".go") {
		if strings.HasPrefix(file, "test/") || strings.HasSuffix(file, "_test.go") {
			each(file, parse(t, file))
		}
	}
}

// callsOf returns the functions of other packages that a file calls: package.Function.
func callsOf(parsed ast.Node) map[string]bool {
	calls := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok {
			if of, ok := f.X.(*ast.Ident); ok {
				calls[of.Name+"."+f.Sel.Name] = true
			}
		}
		return true
	})
	return calls
}

// leakChecks are what looks for goroutines that the tests of a package leave behind.
var leakChecks = []string{"services.Main", "services.Leaks", "goleak.VerifyTestMain"}

func TestThePackagesTestsFailIfTheyLeaveGoroutines(t *testing.T) {
	looks := map[string]bool{}
	inTests(t, func(file string, parsed *ast.File) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		pkg := filepath.Dir(file)
		looks[pkg] = looks[pkg] || callsAny(callsOf(parsed), leakChecks...)
	})
	for pkg, does := range looks {
		if !does {
			t.Errorf("the tests of %s may leave goroutines: func TestMain(m *testing.M) { services.Main(m) }", pkg)
		}
	}
}

func callsAny(calls map[string]bool, names ...string) bool {
	for _, name := range names {
		if calls[name] {
			return true
		}
	}
	return false
}

// TestTheRandomChoicesOfTestsComeFromOneSeed holds that whoever fails can be made to choose the same
// again. Keys, and the ports of servers, are no choices.
func TestTheRandomChoicesOfTestsComeFromOneSeed(t *testing.T) {
	inTests(t, func(file string, parsed *ast.File) {
		if strings.HasPrefix(file, "test/seed/") || file == "test/services/port.go" {
			return
		}
		choosing, seeded := false, false
		for _, spec := range parsed.Imports {
			choosing = choosing || strings.HasPrefix(spec.Path.Value, `"math/rand`)
			seeded = seeded || strings.HasSuffix(spec.Path.Value, `/test/seed"`)
		}
		calls := callsOf(parsed)
		if calls["rapid.Check"] {
			t.Errorf("%s calls rapid.Check: seed.Check has the seed of FIRSTCOME_TEST_SEED", file)
		}
		for call := range calls {
			if name, of := strings.CutPrefix(call, "rand."); of && choosing && name != "New" && name != "NewPCG" {
				t.Errorf("%s calls %s, which nobody can make choose the same again: seed.Rand(t) does", file, call)
			}
		}
		if (calls["rand.New"] || calls["rand.NewPCG"]) && !seeded {
			t.Errorf("%s makes random choices that do not come from test/seed", file)
		}
	})
}
