package docs_test

import (
	"go/ast"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// mostMethodsOfAType is how many methods a type of the product may have. A reader holds no more in mind: divide the type by its jobs.
	mostMethodsOfAType = 35
	// mostFiles is how many files a package of the product may have, unless its row in docs/ARCHITECTURE.md has the reason why it has more.
	mostFiles = 25
)

func TestTypesAndPackagesAreSmall(t *testing.T) {
	methods, goFiles := map[string]int{}, map[string]int{}
	for _, file := range files(t, ".go") {
		pkg := filepath.ToSlash(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(pkg, "test/") || strings.HasPrefix(pkg, "designs") {
			continue
		}
		goFiles[pkg]++
		for _, d := range parse(t, file).Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[pkg+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	for name, n := range methods {
		if n > mostMethodsOfAType {
			t.Errorf("%s has %d methods, and may have %d", name, n, mostMethodsOfAType)
		}
	}
	reasons := map[string]bool{}
	for _, row := range table(t, read(t, "docs/ARCHITECTURE.md"), "package") {
		reasons[row["package"]] = strings.Contains(row["what it holds"], "It has more files than others")
	}
	for pkg, n := range goFiles {
		if (n > mostFiles) != reasons[pkg] {
			t.Errorf("%s has %d files; more than %d need a reason in docs/ARCHITECTURE.md, which has one: %t", pkg, n, mostFiles, reasons[pkg])
		}
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
