package listfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/internal/listfile"
)

// TestAFileOfCodesIsReadAsProgramsWriteIt wants exactly the codes with their lines, whatever other columns there are.
func TestAFileOfCodesIsReadAsProgramsWriteIt(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Excel, CSV UTF-8":               {"\ufeffcode\r\nA-1\r\nA-2\r\n", "2:A-1 3:A-2"},
		"another column":                 {"no,Code,memo\n1,A-1,\"a, b\"\n2,A-2,\n", "2:A-1 3:A-2"},
		"Excel, where commas are points": {"code;memo\nA-1;x\nA-2;y\n", "2:A-1 3:A-2"},
		"text between tabs":              {"code\tmemo\nA-1\tx\n", "2:A-1"},
		"a cell with line ends":          {"code,memo\nA-1,\"x\n\ny\"\nA-2,z\n", "2:A-1 5:A-2"},
		"empty lines at the end":         {"code,memo\nA-1,x\n\n,\n\n", "2:A-1"},
		"leading zeros and signs":        {"code\n00123\n\"A,\"\"1\"\n", "2:00123 3:A,\"1"},
		"numbers":                        {"code\n0\n1\n2\n", "2:0 3:1 4:2"},
		"of 128 bytes":                   {"code\n" + strings.Repeat("a", 128) + "\n", "2:" + strings.Repeat("a", 128)},
	} {
		t.Run(name, func(t *testing.T) { wantCodes(t, listfile.CSV([]byte(c.text)), c.want) })
	}
	wantCodes(t, listfile.NDJSON([]byte("{\"code\":\"A-1\"}\n{\"code\":\"A-2\",\"x\":1}\r\n\n")), "1:A-1 2:A-2")
}

func wantCodes(t *testing.T, got *listfile.Codes, want string) {
	t.Helper()
	var all []string
	for n, code := range got.Codes {
		all = append(all, fmt.Sprint(got.Lines[n], ":", code))
	}
	if text := strings.Join(all, " "); text != want || len(got.Wrong) > 0 {
		t.Errorf("the codes are %q with the mistakes %v, want %q", text, got.Wrong, want)
	}
}

// TestADoubtfulLineOfAFileOfCodesIsAMistake wants the line and what to do: otherwise a winner would get a code that is none.
func TestADoubtfulLineOfAFileOfCodesIsAMistake(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		want string
	}{
		"rounded":                      {"code\nA-1\n1.23E+15\nA-3\n", 3, "rounded by a spreadsheet"},
		"UTF-16":                       {"\xff\xfec\x00o\x00d\x00e\x00", 0, "UTF-16: save it as CSV UTF-8"},
		"EUC-KR":                       {"code,memo\nA-1,x\nA-2,\xb1\xe8\n", 3, "not UTF-8"},
		"an empty line in the middle":  {"code\nA-1\n\nA-2\n", 3, "empty"},
		"empty cells in the middle":    {"code,memo\nA-1,x\n,\nA-2,y\n", 3, "empty"},
		"a missing code in the middle": {"code,memo\nA-1,x\n,y\nA-2,z\n", 3, "missing"},
		"a total":                      {"code,price\nA-1,10\nA-2,20\n,30\n", 4, "total"},
		"a total in words":             {"code\nA-1\n합계: 1\n", 3, "total"},
		"how many there are":           {"code\nA-1\nA-2\n2\n", 4, "total"},
		"twice":                        {"code\nA-1\nA-2\nA-1\n", 4, "also in line 2"},
		"no heading":                   {"A-1\nA-2\n", 1, "no column has the heading code"},
		"two headings":                 {"code,code\nA-1,B-1\n", 1, "two columns"},
		"two files in one":             {"code\nA-1\ncode\nA-2\n", 3, "two files were joined"},
		"a blank at the end":           {"code\nA-1 \nA-2\n", 2, "delete the blank"},
		"too long":                     {"code\n" + strings.Repeat("a", 129) + "\nA-1\n", 2, "at most 128"},
		"Korean":                       {"code\n가나\nA-1\n", 2, "printable"},
		"a formula":                    {"code\n\"=\"\"00123\"\"\"\nA-1\n", 2, "formula"},
		"NULL":                         {"code\nNULL\nA-1\n", 2, "error of the program"},
		"an error of Excel":            {"code\n#N/A\nA-1\n", 2, "error of the program"},
		"a comma without quotes":       {"code\nA,1\nA-1\n", 2, "2 columns"},
		"a quote without an end":       {"code\nA-1\n\"A-2\nA-3\n", 3, "quotation marks"},
		"nothing":                      {"", 0, "empty"},
		"only the heading":             {"code\n", 0, "no codes"},
	} {
		t.Run(name, func(t *testing.T) { wantMistake(t, listfile.CSV([]byte(c.text)), c.line, c.want) })
	}
	wantMistake(t, listfile.NDJSON([]byte("{\"code\":\"A-1\"}\n{\"cod\":1}\n")), 2, "not an object like")
	wantMistake(t, listfile.NDJSON([]byte("{\"code\":\"A-1\"}\n{\"code\":\"A-1\"}\n")), 2, "also in line 1")
	wantMistake(t, listfile.NDJSON(nil), 0, "no codes")
	many := listfile.CSV([]byte("code\n" + strings.Repeat("a b \n", 130)))
	if len(many.Wrong) != listfile.MostWrong || many.Missed != 30 {
		t.Errorf("of 130 mistakes it has %d, and misses %d", len(many.Wrong), many.Missed)
	}
}

// wantMistake wants one mistake, which does not have the code: reasons are logged.
func wantMistake(t *testing.T, got *listfile.Codes, line int, want string) {
	t.Helper()
	if len(got.Wrong) != 1 || got.Wrong[0].Line != line || !strings.Contains(got.Wrong[0].Reason, want) {
		t.Errorf("the mistakes are %v, want %q in line %d", got.Wrong, want, line)
		return
	}
	if diff := cmp.Diff(false, strings.Contains(got.Wrong[0].Reason, "A-")); diff != "" {
		t.Errorf("the reason has a code: %s", got.Wrong[0].Reason)
	}
}
