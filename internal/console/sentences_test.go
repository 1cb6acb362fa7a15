//go:build !race || soak

package console_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

var update = flag.Bool("update", false, "write testdata/sentences.txt anew: read what has changed in it before you commit it")

// TestEverySentenceOfThePagesIsListed holds the sentences of the pages and of their code against testdata/sentences.txt, each in both languages and
// in its place. So a sentence that nobody looked at fails it, and so do two that changed places. When one is new, ask in which states it can be
// read, and give each an expectation in TestWhatIsSaidIsTrueInEveryState or in its page's own test.
func TestEverySentenceOfThePagesIsListed(t *testing.T) {
	var text strings.Builder
	for _, pattern := range []string{"pages/*.html", "pages/parts/*.html", "*.go"} {
		files, err := filepath.Glob(pattern)
		stage.Must(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			stage.Must(t, err)
			pairs := ofTemplate(string(source))
			if strings.HasSuffix(file, ".go") {
				pairs = ofCode(t, file, source)
			}
			if len(pairs) > 0 {
				fmt.Fprintf(&text, "%s\n", file)
			}
			for _, pair := range pairs {
				fmt.Fprintf(&text, "\t%s\n\t\t%s\n", pair[0], pair[1])
				if said := english.FindString(command.ReplaceAllString(pair[0], "")); said != "" {
					t.Errorf("%s: a Korean sentence says %q", file, said)
				}
				if hangul.MatchString(pair[1]) {
					t.Errorf("%s: an English sentence says %q", file, pair[1])
				}
			}
		}
	}
	list := filepath.Join("testdata", "sentences.txt")
	if *update {
		stage.Must(t, os.WriteFile(list, []byte(text.String()), 0o600))
	}
	want, err := os.ReadFile(list)
	stage.Must(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("the sentences (-listed +there); go test ./internal/console -run Listed -update lists them again:\n%s", diff)
	}
}

var (
	hangul     = regexp.MustCompile(`[가-힣]`)
	inTemplate = regexp.MustCompile(`[{(]t "([^"]*)" "([^"]*)"`)
)

// ofTemplate returns the sentences of a template, Korean and English.
func ofTemplate(source string) (pairs [][2]string) {
	for _, found := range inTemplate.FindAllStringSubmatch(source, -1) {
		pairs = append(pairs, [2]string{found[1], found[2]})
	}
	return pairs
}

// ofCode returns the sentences of Go code: wherever a Korean text stands before another one.
func ofCode(t *testing.T, file string, source []byte) (pairs [][2]string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, 0)
	stage.Must(t, err)
	beside := func(list []ast.Expr) {
		for n := 0; n+1 < len(list); n++ {
			ko, en := textOf(list[n]), textOf(list[n+1])
			if hangul.MatchString(ko) && en != "" {
				pairs = append(pairs, [2]string{ko, en})
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			beside(n.Args)
		case *ast.CompositeLit:
			beside(n.Elts)
		}
		return true
	})
	return pairs
}

// textOf returns a text that stands in code, or nothing.
func textOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}
