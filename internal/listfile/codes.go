package listfile

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Codes are codes of another system, as a file has them.
type Codes struct {
	Codes []string
	Lines []int // of each code

	// Wrong are the mistakes, in the order of their lines, up to MostWrong. With mistakes, nothing should be imported.
	Wrong  []Mistake
	Missed int // mistakes that are not in Wrong

	seen map[string]int // the line of each code
}

// A Mistake is a line that cannot be imported. Its reason never contains the code, because reasons are logged.
type Mistake struct {
	Line   int    `json:"line"` // from 1, or 0 for the file as a whole
	Reason string `json:"reason"`
}

// MostWrong is the most mistakes of a file that are reported.
const MostWrong = 100

// MaxCode is the most bytes of a code.
const MaxCode = 128

// Heading is the heading of the column of codes.
const Heading = "code"

// CSV reads codes from a text as spreadsheets write it: the first line has headings, and one of them is code. Other columns are ignored.
func CSV(text []byte) *Codes {
	c := &Codes{seen: map[string]int{}}
	if isUTF16(text) {
		c.wrong(0, "the file is UTF-16: save it as CSV UTF-8")
		return c
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if !utf8.Valid(text) {
		c.wrong(lineOfBadUTF8(text), "the file is not UTF-8 from here on, but perhaps EUC-KR: save it as CSV UTF-8")
		return c
	}
	rows, empty, err := split(text)
	if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
		c.wrong(bad.StartLine, "quotation marks are wrong: put a cell with quotation marks in quotation marks, and double those inside")
		return c
	} else if err != nil {
		c.wrong(0, "%v", err)
		return c
	}
	for len(rows) > 0 && isEmpty(rows[len(rows)-1].cells) { // at the end they do no harm
		rows = rows[:len(rows)-1]
	}
	if len(rows) == 0 {
		c.wrong(0, "the file is empty")
		return c
	}
	at := slices.IndexFunc(rows[0].cells, isHeading)
	if at < 0 {
		c.wrong(rows[0].line, "no column has the heading code: write code above the codes")
		return c
	}
	if slices.ContainsFunc(rows[0].cells[at+1:], isHeading) {
		c.wrong(rows[0].line, "two columns have the heading code: rename the other")
		return c
	}
	width, rows := len(rows[0].cells), rows[1:]
	for n, r := range rows {
		for len(empty) > 0 && empty[0] < r.line {
			c.wrong(empty[0], emptyLine)
			empty = empty[1:]
		}
		switch last := n == len(rows)-1; {
		case isEmpty(r.cells):
			c.wrong(r.line, emptyLine)
		case last && n > 0 && isTotal(r.cells, rows[n-1].cells, at, n):
			c.wrong(r.line, "the line is a total, not a code: delete it")
		case len(r.cells) != width:
			c.wrong(r.line, "the line has %s, but the first line has %d: put a cell with a comma in quotation marks", counted(len(r.cells), "column"), width)
		default:
			c.take(r.line, r.cells[at])
		}
	}
	c.checkSome()
	return c
}

const emptyLine = "the line is empty: delete it, or put its code in"

// NDJSON reads codes from lines of JSON objects like {"code":"A-1"}. Other fields are ignored.
func NDJSON(text []byte) *Codes {
	c := &Codes{seen: map[string]int{}}
	lines := bytes.Split(bytes.TrimRight(text, "\r\n\t "), []byte("\n"))
	for n, line := range lines {
		var object struct {
			Code *string `json:"code"`
		}
		switch err := json.Unmarshal(line, &object); {
		case len(lines) == 1 && len(line) == 0:
		case len(bytes.TrimSpace(line)) == 0:
			c.wrong(n+1, emptyLine)
		case !utf8.Valid(line):
			c.wrong(n+1, "the line is not UTF-8")
		case err != nil || object.Code == nil:
			c.wrong(n+1, `the line is not an object like {"code":"…"}`)
		default:
			c.take(n+1, *object.Code)
		}
	}
	c.checkSome()
	return c
}

// wrong notes a mistake.
func (c *Codes) wrong(line int, reason string, args ...any) {
	if len(c.Wrong) == MostWrong {
		c.Missed++
		return
	}
	c.Wrong = append(c.Wrong, Mistake{line, fmt.Sprintf(reason, args...)})
}

// checkSome notes a mistake if the file has neither codes nor mistakes.
func (c *Codes) checkSome() {
	if len(c.Codes) == 0 && len(c.Wrong) == 0 {
		c.wrong(0, "the file has no codes")
	}
}

// take adds a code, or notes why it cannot be one.
func (c *Codes) take(line int, code string) {
	if why := mistake(code); why != "" {
		c.wrong(line, "%s", why)
		return
	}
	if earlier := c.seen[code]; earlier != 0 {
		c.wrong(line, "the code is also in line %d: delete one of them", earlier)
		return
	}
	c.seen[code] = line
	c.Codes, c.Lines = append(c.Codes, code), append(c.Lines, line)
}

// mistake returns why a cell is no code, and what to do, or an empty string.
func mistake(code string) string {
	switch {
	case code == "":
		return "the code is missing: delete the line, or put its code in"
	case len(code) > MaxCode:
		return fmt.Sprintf("the code has %d bytes: at most %d are allowed", len(code), MaxCode)
	case shortened.MatchString(code):
		return "the code was rounded by a spreadsheet, and cannot be recovered from the file: format the column as text, and paste the codes again"
	case strings.TrimSpace(code) != code:
		return "the code begins or ends with a blank: delete the blank"
	case strings.ContainsFunc(code, func(r rune) bool { return r < ' ' || r > '~' }):
		return "the code has a character that is not printable ASCII: codes have letters without accents, digits and signs only"
	case code[0] == '=' || code[0] == '\'':
		return "the code begins with the mark of a spreadsheet's formula or text: save the column as text without it"
	case strings.EqualFold(code, "null"), strings.HasPrefix(code, "#N/A"), strings.HasPrefix(code, "#REF!"), strings.HasPrefix(code, "#VALUE!"), strings.HasPrefix(code, "#NAME?"):
		return "the cell is empty or an error of the program that wrote the file: put its code in"
	case isHeading(code):
		return "the line is a heading, as if two files were joined: delete the line"
	}
	return ""
}

// isHeading reports whether a cell is the heading of the column of codes.
func isHeading(cell string) bool { return strings.EqualFold(strings.TrimSpace(cell), Heading) }

func isEmpty(cells []string) bool {
	return !slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) != "" })
}

// totals are words with which the last line of a sheet begins if it is a total.
var totals = []string{"total", "subtotal", "sum", "count", "합계", "총계", "소계", "총"}

// isTotal reports whether the last row is a total: a cell has one of its words, the code is missing, or it is how many codes there are, and is not as
// long as the code before.
func isTotal(cells, before []string, at, codes int) bool {
	for _, cell := range cells {
		word, _, _ := strings.Cut(strings.TrimSpace(strings.ToLower(cell)), " ")
		if slices.Contains(totals, strings.TrimRight(word, ":=")) {
			return true
		}
	}
	if at >= len(cells) || strings.TrimSpace(cells[at]) == "" {
		return true
	}
	n, err := strconv.Atoi(strings.ReplaceAll(cells[at], ",", ""))
	return err == nil && n == codes && at < len(before) && len(cells[at]) != len(before[at])
}

// lineOfBadUTF8 returns the first line that is not UTF-8.
func lineOfBadUTF8(text []byte) int {
	line := 1
	for part := range bytes.Lines(text) {
		if !utf8.Valid(part) {
			return line
		}
		line++
	}
	return line
}
