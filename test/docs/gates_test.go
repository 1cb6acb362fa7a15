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

// TestTheInterfacesOfAGateAreSmall counts the methods of each, those of what it embeds among them. One that only embeds others is their sum, and
// has no limit.
func TestTheInterfacesOfAGateAreSmall(t *testing.T) {
	all := map[string]*ast.InterfaceType{}
	for _, file := range files(t, ".go") {
		if filepath.Dir(file) == "internal/gate" {
			ast.Inspect(parse(t, file), func(n ast.Node) bool {
				if spec, is := n.(*ast.TypeSpec); is {
					if i, is := spec.Type.(*ast.InterfaceType); is {
						all[spec.Name.Name] = i
					}
				}
				return true
			})
		}
	}
	if len(all) < 5 {
		t.Fatalf("a gate has %d interfaces", len(all))
	}
	var count func(i *ast.InterfaceType) (own, methods int)
	count = func(i *ast.InterfaceType) (own, methods int) {
		for _, field := range i.Methods.List {
			own += len(field.Names)
			if embedded, is := field.Type.(*ast.Ident); is {
				_, more := count(all[embedded.Name])
				methods += more
			}
		}
		return own, own + methods
	}
	for name, i := range all {
		if own, methods := count(i); own > 0 && methods > mostMethods {
			t.Errorf("gate.%s has %d methods, want %d at most", name, methods, mostMethods)
		}
	}
}
