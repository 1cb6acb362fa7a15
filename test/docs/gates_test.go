package docs_test

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOneFileOfTheProgramNamesAGate wants everything else of cmd/firstcome to know a gate by small interfaces.
func TestOneFileOfTheProgramNamesAGate(t *testing.T) {
	for _, file := range files(t, ".go") {
		if filepath.Dir(file) != "cmd/firstcome" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		names := slices.Contains(imports(t, file), module+"/internal/redis")
		if own := filepath.Base(file) == "gate_redis.go"; names != own {
			t.Errorf("%s imports internal/redis: %v, want %v", file, names, own)
		}
	}
}

// mostMethods is how many methods an interface has at most.
const mostMethods = 6

// large has the interfaces that may have more methods: each is all that its package needs of one other type. A part of it has a name only if
// something needs that part alone.
var large = []string{"api.Ledger", "console.Ledger", "firstcome.inspectedGate", "recovery.Gate", "recovery.Ledger"}

// TestInterfacesAreSmall counts the methods of each interface of the product, those of what it embeds among them. One that only embeds others is their
// sum, and has no limit.
func TestInterfacesAreSmall(t *testing.T) {
	all := map[string]*ast.InterfaceType{}
	for _, file := range files(t, ".go") {
		folder := filepath.ToSlash(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(folder, "test/") || strings.Contains(folder, "designs") {
			continue
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if spec, is := n.(*ast.TypeSpec); is {
				if i, is := spec.Type.(*ast.InterfaceType); is {
					all[filepath.Base(folder)+"."+spec.Name.Name] = i
				}
			}
			return true
		})
	}
	if len(all) < 50 {
		t.Fatalf("the product has %d interfaces", len(all))
	}
	var count func(pkg string, i *ast.InterfaceType) (own, methods int)
	count = func(pkg string, i *ast.InterfaceType) (own, methods int) {
		for _, field := range i.Methods.List {
			own += len(field.Names)
			name := ""
			switch embedded := field.Type.(type) {
			case *ast.Ident:
				name = pkg + "." + embedded.Name
			case *ast.SelectorExpr:
				name = embedded.X.(*ast.Ident).Name + "." + embedded.Sel.Name
			}
			if part := all[name]; part != nil {
				_, more := count(strings.Split(name, ".")[0], part)
				methods += more
			}
		}
		return own, own + methods
	}
	for name, i := range all {
		own, methods := count(strings.Split(name, ".")[0], i)
		if is := own > 0 && methods > mostMethods; is != slices.Contains(large, name) {
			t.Errorf("%s has %d methods, and %d are the most; named in large: %t", name, methods, mostMethods, !is)
		}
	}
}
