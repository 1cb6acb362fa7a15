//go:build !check

package docs_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

// behindTheDoor are the methods that only internal/operate calls, by their packages and types. A node that calls one elsewhere may
// repeat from memory what the change has ended.
var behindTheDoor = map[string]map[string][]string{
	"internal/ledger": {"Campaigns": {"Create", "SetTerms", "ChangeState", "Void"}, "Recorder": {"VoidLetter", "Replay"}},
	"internal/issue":  {"Issuer": {"Change"}},
	"internal/gate":   {"Changer": {"Do"}},
}

// A listed package is one as go list tells of it.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listPackages returns the module's packages and what they import, with what the compiler exports of them.
func listPackages(t *testing.T) map[string]listedPackage {
	t.Helper()
	c := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as the tests of other packages have it compiled
	out, err := c.Output()
	stage.Must(t, err)
	all := map[string]listedPackage{}
	for from := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		err := from.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		stage.Must(t, err)
		all[p.ImportPath] = p
	}
}

// A checker resolves the names in packages.
type checker struct {
	*testing.T
	fset     *token.FileSet
	importer types.Importer
}

// guarded returns the methods behind the door, by their names.
func (c *checker) guarded() map[string]types.Type {
	all := map[string]types.Type{}
	for pkg, named := range behindTheDoor {
		from, err := c.importer.Import(module + "/" + pkg)
		stage.Must(c, err)
		for name, methods := range named {
			of := types.NewMethodSet(types.NewPointer(from.Scope().Lookup(name).Type()))
			for _, method := range methods {
				found := of.Lookup(from, method)
				if found == nil {
					c.Fatalf("%s.%s has no method %s", pkg, name, method)
				}
				all[method] = found.Obj().Type()
			}
		}
	}
	return all
}

// methods calls each with every method that a package calls or takes as a value, and with where.
func (c *checker) methods(p listedPackage, each func(at token.Position, m types.Object)) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		stage.Must(c, err)
		files = append(files, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: c.importer}
	stage.Must(c, stage.Err(config.Check(p.ImportPath, c.fset, files, info)))
	for at, selected := range info.Selections {
		if selected.Kind() != types.FieldVal {
			each(c.fset.Position(at.Pos()), selected.Obj())
		}
	}
}

// isOperators tells whether a method is the Operator's own, which everybody may call.
func isOperators(m types.Object) bool {
	receiver := m.Type().(*types.Signature).Recv().Type()
	return strings.TrimPrefix(receiver.String(), "*") == module+"/internal/operate.Operator"
}

// TestOnlyOperateCallsWhatChangesACampaign looks for calls through interfaces too: a method of the same name and signature is
// taken for the same.
func TestOnlyOperateCallsWhatChangesACampaign(t *testing.T) {
	packages := listPackages(t)
	c := &checker{T: t, fset: token.NewFileSet()}
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) })
	guarded := c.guarded()
	var through []string
	for path, p := range packages {
		pkg, ours := strings.CutPrefix(path, module+"/")
		if _, defines := behindTheDoor[pkg]; !ours || defines || strings.HasPrefix(pkg, "test/") {
			continue
		}
		c.methods(p, func(at token.Position, m types.Object) {
			if signature, ok := guarded[m.Name()]; !ok || !types.Identical(signature, m.Type()) || isOperators(m) {
				return
			}
			if pkg != "internal/operate" {
				t.Errorf("%s calls %s, which only internal/operate may", at, m.Name())
			}
			through = append(through, m.Name())
		})
	}
	for name := range guarded {
		if !slices.Contains(through, name) {
			t.Errorf("internal/operate does not call %s: take it off the list", name)
		}
	}
}
