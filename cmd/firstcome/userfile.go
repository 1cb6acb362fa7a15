package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
)

// A userFile is a file of users' ids: CSV as Excel, Sheets, psql and firstcome coupon export write it, text between tabs as
// mysql --batch and Excel write it, or one id a line.
//
// A wrong id would become a user who is issued a coupon. So any cell that is not plainly an id is a mistake, and is told
// with its line.
type userFile struct {
	name   string
	column string // the heading of the column of ids, or its number from 1 on; empty: the file tells
	exact  bool   // each line is an id, as it is

	ids    []string
	from   string // the column that the ids are from, for people
	errs   []error
	missed int // mistakes that are not in errs
}

// mostMistakes is how many mistakes of a file are told: a screen of them.
const mostMistakes = 20

// wrong notes a mistake.
func (f *userFile) wrong(line int, text string, args ...any) {
	if len(f.errs) == mostMistakes {
		f.missed++
		return
	}
	f.errs = append(f.errs, fmt.Errorf("%s line %d: %w", f.name, line, fmt.Errorf(text, args...)))
}

// read reads the ids. Its error has every mistake, up to mostMistakes.
func (f *userFile) read(in io.Reader) ([]string, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.name, err)
	}
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, fmt.Errorf("%s is UTF-16: save it as CSV UTF-8", f.name)
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if f.exact {
		f.readExact(text)
	} else {
		f.readRows(text)
	}
	if f.missed > 0 {
		f.errs = append(f.errs, fmt.Errorf("%s has %s more", f.name, counted(int64(f.missed), "mistake", "s")))
	}
	if len(f.ids) == 0 && len(f.errs) == 0 {
		f.errs = append(f.errs, fmt.Errorf("%s has no user ids", f.name))
	}
	return f.ids, errors.Join(f.errs...)
}

// readExact takes each line for an id.
func (f *userFile) readExact(text []byte) {
	f.from = "each line"
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		if id := strings.TrimSuffix(lines.Text(), "\r"); id != "" {
			f.take(n, id)
		}
	}
}

// take adds an id that may be one.
func (f *userFile) take(line int, id string) {
	if _, err := firstcome.ParseUserID(id); err != nil {
		f.wrong(line, "%w", err)
		return
	}
	f.ids = append(f.ids, id)
}

// A row is a line of cells. One with line ends in its cells has the number of its first line.
type row struct {
	line  int
	cells []string
}

// rows splits a text into rows, by the character that its first line is split by.
func (f *userFile) rows(text []byte) (all []row) {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.ContainsRune(first, '\t') { // mysql --batch quotes nothing, so a quote is a quote
		for n, line := range strings.Split(string(text), "\n") {
			if line = strings.TrimSuffix(line, "\r"); line != "" {
				all = append(all, row{n + 1, strings.Split(line, "\t")})
			}
		}
		return all
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.FieldsPerRecord = -1
	if !bytes.ContainsRune(first, ',') && bytes.ContainsRune(first, ';') { // Excel, where the comma is for decimals
		reader.Comma = ';'
	}
	for {
		cells, err := reader.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return all
		case errors.As(err, &bad):
			f.wrong(bad.StartLine, "%w", bad.Err)
			return all // what comes after a quote that is missing is anybody's guess
		case err != nil:
			f.errs = append(f.errs, err)
			return all
		}
		line, _ := reader.FieldPos(0)
		all = append(all, row{line, cells})
	}
}

// readRows takes the ids from the column that has them.
func (f *userFile) readRows(text []byte) {
	rows := f.rows(text)
	if len(rows) == 0 || len(f.errs) > 0 {
		return
	}
	exported := slices.Equal(rows[0].cells[:min(3, len(rows[0].cells))], []string{"campaign_id", "number", "user_id"})
	width := len(rows[0].cells)
	at, headed := f.find(rows)
	if at < 0 {
		return
	}
	f.from = "column " + strconv.Itoa(at+1)
	first := rows[0].cells[at]
	if headed {
		f.from = "column " + first
		rows = rows[1:]
	}
	for _, r := range rows {
		switch {
		case len(r.cells) != width:
			f.wrong(r.line, "has %s, and the first line %d: quote an id with a comma in it", counted(int64(len(r.cells)), "column", "s"), width)
		case exported: // it is written as it is
			f.take(r.line, r.cells[at])
		case headed && r.cells[at] == first, r.line > 1 && slices.Contains(headings, heading(r.cells[at])):
			f.wrong(r.line, "%q is a heading, as where two files were joined: take the line out; if it is a user, give the ids alone, one a line, with --exact", r.cells[at])
		default:
			if why := doubt(r.cells[at]); why != "" {
				f.wrong(r.line, "%q %s", r.cells[at], why)
				continue
			}
			f.take(r.line, r.cells[at])
		}
	}
}

// headings are those of columns of user ids, without blanks, hyphens and underscores: the surer ones first.
var headings = []string{
	"userid", "usersid", "memberid", "customerid", "accountid", "mbid", "memberno", "userno", "customerno", "uid",
	"회원id", "회원아이디", "회원번호", "사용자id", "사용자아이디", "사용자번호", "고객id", "고객번호", "아이디", "유저id", "user", "member", "customer", "id",
}

// likely are words that head columns of users, and that few users are named. A file that has one in its first line is not read
// before somebody says which it is.
var likely = regexp.MustCompile(`^(?i:(?:e[ -]?)?mail|log[io]n|name|nick|handle|account|accounts|alias|key|code|number|no|uuid|guid|sub|ids|users|members|customers|` +
	`phone|mobile|tel|telephone|winners?|buyers?|recipients?|contact|(?:user|login|nick|full|account|member|customer|screen)name|mobilephone|` +
	`[\p{L} _.-]*[ _.-](?:[iu]d|ids|uid|uuid|no|num|number|name|login|account|key|code|e?mail|address|phone|mobile))$|` +
	`^[A-Za-z]*[a-z](?:I[dD]|IDs?|U[iI][dD]|UUID|No|Num|Number|Name|Login|Account|Key|Code|E?[mM]ail|Address|Phone|Mobile)$|` +
	`^[\p{Hangul} _-]*(?:(?i:id)|아이디|번호|메일|이름|성명|성함|닉네임|별명|연락처|전화|휴대폰|핸드폰|계정|코드|식별자|(?:회원|고객|사용자|이용자|구매자|당첨자|대상자|유저)명?)$`)

var noBlanks = strings.NewReplacer(" ", "", "-", "", "_", "")

// heading returns a cell as headings has it.
func heading(cell string) string { return strings.ToLower(noBlanks.Replace(cell)) }

// find returns which column has the ids, and whether the first row has headings; -1 after a mistake.
func (f *userFile) find(rows []row) (at int, headed bool) {
	first := rows[0]
	if n, err := strconv.Atoi(f.column); err == nil {
		if n < 1 || n > len(first.cells) {
			f.wrong(first.line, "has no column %d", n)
			return -1, false
		}
		return n - 1, f.hasHeading(rows, n-1)
	}
	if f.column != "" {
		for n, cell := range first.cells {
			if cell == f.column && at == 0 {
				at, headed = n+1, true
			} else if cell == f.column {
				f.wrong(first.line, "has two columns %q: give --column the number of one", cell)
				return -1, false
			}
		}
		if !headed {
			f.wrong(first.line, "has no column %q, but %q", f.column, first.cells)
		}
		return at - 1, headed
	}
	for _, known := range headings {
		for n, cell := range first.cells {
			if heading(cell) == known {
				return n, true
			}
		}
	}
	if len(first.cells) > 1 {
		f.wrong(first.line, "has %d columns, and none is headed user_id: say which has the ids with --column, by its heading or its number", len(first.cells))
		return -1, false
	}
	return 0, f.hasHeading(rows, 0)
}

// hasHeading reports whether the first cell of a column is a heading. A cell that only looks like one is a mistake.
func (f *userFile) hasHeading(rows []row, at int) bool {
	first := rows[0].cells[at]
	if slices.Contains(headings, heading(first)) {
		return true
	}
	if likely.MatchString(strings.TrimSpace(first)) || standsOut(rows, at) {
		f.wrong(rows[0].line, "%q looks like a heading: if it is one, give --column %q; if it is a user, give the ids alone, one a line, with --exact", first, first)
	}
	return false
}

// standsOut reports whether the first cell of a column has no digit, and lacks a kind of characters that all cells below it have.
func standsOut(rows []row, at int) bool {
	own := kindsOf(rows[0].cells[at])
	if len(rows) == 1 || strings.ContainsRune(own, '0') {
		return false
	}
	shared := kindsOf(rows[1].cells[min(at, len(rows[1].cells)-1)])
	for _, r := range rows[1:] {
		has := ""
		if at < len(r.cells) {
			has = kindsOf(r.cells[at])
		}
		shared = strings.Map(func(kind rune) rune {
			if strings.ContainsRune(has, kind) && !strings.ContainsRune(own, kind) {
				return kind
			}
			return -1
		}, shared)
		if shared == "" {
			return false
		}
	}
	return true
}

// kindsOf returns a cell with 0 for each digit, a for each letter of ASCII, 가 for each other letter, and without blanks.
func kindsOf(cell string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsDigit(r):
			return '0'
		case unicode.IsLetter(r) && r < utf8.RuneSelf:
			return 'a'
		case unicode.IsLetter(r):
			return '가'
		case unicode.IsSpace(r):
			return -1
		}
		return r
	}, cell)
}

// shortened is how Excel writes a number of more digits than it keeps.
var shortened = regexp.MustCompile(`^[0-9](\.[0-9]+)?[eE]\+[0-9]+$`)

// doubt returns why a cell is not plainly a user's id, or "". Those who mean it as it is have --exact.
func doubt(cell string) string {
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || r == utf8.RuneError || strings.ContainsRune("\"'`‘’“”,;<>()[]{}\\", r)
	}
	switch {
	case cell == "":
		return "is no user id"
	case shortened.MatchString(cell):
		return "is a number that a spreadsheet shortened: format the column as text, and paste the ids anew"
	case !utf8.ValidString(cell):
		return "is not UTF-8: save the file as CSV UTF-8"
	case strings.EqualFold(cell, "null"), cell[0] == '#', cell[0] == '=', !strings.ContainsFunc(cell, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		return "is hardly a user id: take it out, or give --exact if each line is an id as it is"
	case strings.ContainsFunc(cell, odd):
		return "has blanks, quotes or brackets: take them out, or give --exact if each line is an id as it is"
	}
	return ""
}
