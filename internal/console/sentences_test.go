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
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

var update = flag.Bool("update", false, "write testdata/sentences.txt anew: read what has changed in it before you commit it")

// TestEverySentenceOfThePagesIsListed compares the sentences of the pages and of their code with testdata/sentences.txt, each in both languages and
// in its place. So a new sentence fails it until somebody has looked at it, and so do two sentences that changed places.
func TestEverySentenceOfThePagesIsListed(t *testing.T) {
	var text strings.Builder
	for _, of := range sentences(t) {
		fmt.Fprintf(&text, "%s\n", of.file)
		for _, pair := range of.pairs {
			fmt.Fprintf(&text, "\t%s\n\t\t%s\n", pair[0], pair[1])
			if said := english.FindString(command.ReplaceAllString(pair[0], "")); said != "" {
				t.Errorf("%s: a Korean sentence says %q", of.file, said)
			}
			if hangul.MatchString(pair[1]) {
				t.Errorf("%s: an English sentence says %q", of.file, pair[1])
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

// TestEverySentenceOfThePagesIsExpected fails unless a test of the pages quotes each sentence, in either language and as far as its text is fixed.
// The walk quotes it if it depends on a campaign's state, otherwise its page's own test. A sentence that no test quotes must be in
// testdata/reasons.txt, below a line that begins with # and says why. No flag writes that file: for a new sentence, ask in which states people can
// read it, and expect it there.
func TestEverySentenceOfThePagesIsExpected(t *testing.T) {
	quoted, reasons := quotes(t), map[string]bool{}
	text, err := os.ReadFile(filepath.Join("testdata", "reasons.txt"))
	stage.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); line != "" && line[0] != '#' {
			reasons[line] = false
		}
	}
	for _, of := range sentences(t) {
		for _, pair := range of.pairs {
			name := strings.TrimSpace(pair[1])
			if name == "" {
				name = strings.TrimSpace(pair[0])
			}
			_, excused := reasons[name]
			if reasons[name] = true; !excused && !quoted.has(pair[0]) && !quoted.has(pair[1]) {
				delete(reasons, name)
				t.Errorf("%s: no test expects %q, and no reason says why: %s", of.file, pair[0], name)
			}
		}
	}
	for name, there := range reasons {
		if !there {
			t.Errorf("testdata/reasons.txt has %q, which no page says", name)
		}
	}
}

// A quoted text is a text in a test.
type quoted []string

// quotes returns the texts in the tests of this package.
func quotes(t *testing.T) (all quoted) {
	files, err := filepath.Glob("*_test.go")
	stage.Must(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		stage.Must(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if text, ok := n.(ast.Expr); ok {
				all = append(all, textOf(text))
			}
			return true
		})
	}
	return all
}

var filledIn = regexp.MustCompile(`%(\[\d\])?[a-z]`)

// leastQuoted is how many bytes of a sentence a test must quote, unless its longest fixed part is shorter.
const leastQuoted = 12

// has reports whether a test quotes the longest fixed part of a sentence, or enough of it.
func (q quoted) has(sentence string) bool {
	longest := ""
	for _, part := range filledIn.Split(sentence, -1) {
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	return longest != "" && slices.ContainsFunc(q, func(text string) bool {
		return strings.Contains(text, longest) || slices.ContainsFunc(filledIn.Split(text, -1), func(part string) bool {
			part = strings.TrimSpace(part)
			return len(part) >= leastQuoted && strings.Contains(sentence, part)
		})
	})
}

// A said file is a file with sentences, in Korean and in English.
type said struct {
	file  string
	pairs [][2]string
}

// sentences returns the sentences of the pages and of their code. A sentence without an English version has an empty English text.
func sentences(t *testing.T) (all []said) {
	t.Helper()
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
				all = append(all, said{file, pairs})
			}
		}
	}
	return all
}

var (
	hangul     = regexp.MustCompile(`[가-힣]`)
	inTemplate = regexp.MustCompile(`[{(]t "([^"]*)" "([^"]*)"`)
)

// ofTemplate returns the sentences of a template, in Korean and in English.
func ofTemplate(source string) (pairs [][2]string) {
	for _, found := range inTemplate.FindAllStringSubmatch(source, -1) {
		pairs = append(pairs, [2]string{found[1], found[2]})
	}
	return pairs
}

// ofCode returns the sentences in Go code: each Korean text that is followed by another text, or that is the only text of a composite literal.
func ofCode(t *testing.T, file string, source []byte) (pairs [][2]string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, 0)
	stage.Must(t, err)
	beside := func(list []ast.Expr, alone bool) {
		for n := range list {
			ko, en := textOf(list[n]), ""
			if n+1 < len(list) {
				en = textOf(list[n+1])
			}
			if hangul.MatchString(en) {
				en = ""
			}
			if hangul.MatchString(ko) && (en != "" || alone) {
				pairs = append(pairs, [2]string{ko, en})
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			beside(n.Args, false)
		case *ast.CompositeLit:
			beside(n.Elts, true)
		case *ast.KeyValueExpr:
			beside([]ast.Expr{n.Value}, true)
		}
		return true
	})
	return pairs
}

// textOf returns the text of a string literal, or "".
func textOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}
