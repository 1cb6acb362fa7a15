package docs_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

var (
	flagLine    = regexp.MustCompile(`^ {2,}(?:-\w, +)?(--[a-z-]+)(?:=(\S+))?(?: {2,}(.*))?$`)
	defaultText = regexp.MustCompile(`\(default: (.*?)\)`)
)

// defaults returns the default of each flag in a help text; none if it says
// nothing of one.
func defaults(help string) map[string]string {
	_, help, _ = strings.Cut(help, "\nFlags:\n")
	texts, name := map[string]string{}, ""
	for line := range strings.SplitSeq(help, "\n") {
		if found := flagLine.FindStringSubmatch(line); found != nil {
			name, line = found[1], found[3]
		}
		texts[name] += " " + strings.TrimSpace(line)
	}
	delete(texts, "--help")
	delete(texts, "")
	for name, text := range texts {
		texts[name] = "none"
		if found := defaultText.FindStringSubmatch(text); found != nil {
			texts[name] = found[1]
		}
	}
	return texts
}

// servedMetrics returns the names of the metrics that the server has.
func servedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	served := map[string]bool{}
	for _, file := range files(t, ".go") {
		if filepath.Dir(file) != "internal/ops" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(literal.Value, `"firstcome_`) {
				served[strings.Trim(literal.Value, `"`)] = true
			}
			return true
		})
	}
	return served
}

func TestEveryMetricIsInTheTable(t *testing.T) {
	served, documented := servedMetrics(t), map[string]bool{}
	for _, row := range table(t, read(t, "docs/operate.md"), "metric") {
		documented[row["metric"]] = true
	}
	if diff := cmp.Diff(served, documented); diff != "" {
		t.Errorf("docs/operate.md has other metrics than the server (-server +operate.md):\n%s", diff)
	}
}

func TestEveryLimitWithAConstantIsTheConstants(t *testing.T) {
	constants := map[string]string{}
	for _, file := range files(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			addConstants(parse(t, file), constants)
		}
	}
	for _, row := range table(t, read(t, "docs/limits.md"), "limit") {
		name := row["constant"]
		if name == "" {
			continue
		}
		expression, ok := constants[name]
		if !ok {
			t.Errorf("%s: there is no constant %s", row["limit"], name)
			continue
		}
		if got, want := value(t, row["value"]), evaluate(t, expression); got != want {
			t.Errorf("%s is documented as %s, %s is %d", row["limit"], row["value"], name, want)
		}
	}
}

// sources are the files that were parsed: several tests look at all of them, one after the other.
var sources = map[string]*ast.File{}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	if sources[file] == nil {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		stage.Must(t, err)
		sources[file] = parsed
	}
	return sources[file]
}

// addConstants adds the expressions of a file's constants, by package.name.
func addConstants(file *ast.File, into map[string]string) {
	for _, d := range file.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			s := spec.(*ast.ValueSpec)
			for n, v := range s.Values {
				into[file.Name.Name+"."+s.Names[n].Name] = types.ExprString(v)
			}
		}
	}
}

// units are what follows a number: bytes, characters, or nanoseconds.
var units = map[string]int64{
	"": 1, "bytes": 1, "characters": 1, "KiB": 1 << 10, "MiB": 1 << 20,
	"ms": int64(time.Millisecond), "s": int64(time.Second), "min": int64(time.Minute), "h": int64(time.Hour),
}

// value returns the number that a cell like 16 KiB or 200 ms says.
func value(t *testing.T, cell string) int64 {
	t.Helper()
	number, unit, _ := strings.Cut(cell, " ")
	n, err := strconv.ParseInt(strings.ReplaceAll(number, ",", ""), 10, 64)
	if err != nil || units[unit] == 0 {
		t.Fatalf("%q is not a number with a unit", cell)
	}
	return n * units[unit]
}

// evaluate returns the value of a constant expression of numbers and durations.
func evaluate(t *testing.T, expression string) int64 {
	t.Helper()
	for unit, length := range map[string]time.Duration{
		"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour,
	} {
		expression = strings.ReplaceAll(expression, unit, strconv.FormatInt(int64(length), 10))
	}
	result, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	stage.Must(t, err)
	n, exact := constant.Int64Val(constant.ToInt(result.Value))
	if !exact {
		t.Fatalf("%s is no whole number", expression)
	}
	return n
}

// TestEveryHelpTextSaysTheDefaultThatTheFlagHas lets the other tests believe what
// --help says.
func TestEveryHelpTextSaysTheDefaultThatTheFlagHas(t *testing.T) {
	flags := 0
	for _, file := range files(t, ".go") {
		if filepath.Dir(file) != "cmd/firstcome" {
			continue
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}
			tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
			has := tag.Get("default")
			if has == "" || strings.Trim(has, "0s") == "" {
				return true // the help says in words what that means
			}
			flags++
			if !regexp.MustCompile(`\(default: ` + regexp.QuoteMeta(has) + `[),;]`).MatchString(tag.Get("help")) {
				t.Errorf("%s: the default is %q, and the help says %q", file, has, tag.Get("help"))
			}
			return true
		})
	}
	if flags == 0 {
		t.Error("no flag has a default")
	}
}
