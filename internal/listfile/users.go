package listfile

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

// Users is a file of users' ids: CSV as written by Excel, Sheets, psql and firstcome coupon export, text between tabs as written by mysql --batch
// and Excel, or one id a line.
//
// A wrong id would become a user who is issued a coupon. So each cell that is not clearly an id is a mistake, which is reported with its line.
type Users struct {
	Name   string // of the file, for people
	Column string // the heading of the column of ids, or its number from 1 on; empty to find the column
	Exact  bool   // take each whole line as an id
	From   string // set by Read: describes the column of ids, for people

	ids    []string
	errs   []error
	missed int // number of mistakes that are not in errs
}

// mostMistakes is the most mistakes of a file that are reported: about a screen.
const mostMistakes = 20

// wrong notes a mistake.
func (f *Users) wrong(line int, text string, args ...any) {
	if len(f.errs) == mostMistakes {
		f.missed++
		return
	}
	f.errs = append(f.errs, fmt.Errorf("%s line %d: %w", f.Name, line, fmt.Errorf(text, args...)))
}

// Read reads the ids. Its error has every mistake, up to mostMistakes. Read may be called once.
func (f *Users) Read(in io.Reader) ([]string, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name, err)
	}
	if isUTF16(text) {
		return nil, fmt.Errorf("%s is UTF-16: save it as CSV UTF-8", f.Name)
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if f.Exact {
		f.readExact(text)
	} else {
		f.readRows(text)
	}
	if f.missed > 0 {
		f.errs = append(f.errs, fmt.Errorf("%s has %s more", f.Name, counted(f.missed, "mistake")))
	}
	if len(f.ids) == 0 && len(f.errs) == 0 {
		f.errs = append(f.errs, fmt.Errorf("%s has no user ids", f.Name))
	}
	return f.ids, errors.Join(f.errs...)
}

// readExact takes each whole line as an id.
func (f *Users) readExact(text []byte) {
	f.From = "each line"
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		if id := strings.TrimSuffix(lines.Text(), "\r"); id != "" {
			f.take(n, id)
		}
	}
}

// take adds an id, or notes a mistake if it is no user id.
func (f *Users) take(line int, id string) {
	if _, err := firstcome.ParseUserID(id); err != nil {
		f.wrong(line, "%w", err)
		return
	}
	f.ids = append(f.ids, id)
}

// readRows takes the ids from the column of ids.
func (f *Users) readRows(text []byte) {
	rows, _, err := split(text)
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		f.wrong(bad.StartLine, "%w", bad.Err)
	} else if err != nil {
		f.errs = append(f.errs, err)
	}
	if len(rows) == 0 || len(f.errs) > 0 {
		return
	}
	exported := slices.Equal(rows[0].cells[:min(3, len(rows[0].cells))], []string{"campaign_id", "number", "user_id"})
	width := len(rows[0].cells)
	at, headed := f.find(rows)
	if at < 0 {
		return
	}
	f.From = "column " + strconv.Itoa(at+1)
	first := rows[0].cells[at]
	if headed {
		f.From = "column " + first
		rows = rows[1:]
	}
	for _, r := range rows {
		switch {
		case len(r.cells) != width:
			f.wrong(r.line, "has %s, but the first line has %d: quote ids that contain a comma", counted(len(r.cells), "column"), width)
		case exported: // coupon export writes ids exactly
			f.take(r.line, r.cells[at])
		case headed && r.cells[at] == first, r.line > 1 && slices.Contains(headings, heading(r.cells[at])):
			f.wrong(r.line, "%q is a heading, as if two files were joined: delete the line; if it is a user's id, use a file of ids only, one a line, with --exact", r.cells[at])
		default:
			if why := doubt(r.cells[at]); why != "" {
				f.wrong(r.line, "%q %s", r.cells[at], why)
				continue
			}
			f.take(r.line, r.cells[at])
		}
	}
}

// headings has the usual headings of columns of user ids, without blanks, hyphens and underscores. The clearest headings come first.
var headings = []string{
	"userid", "usersid", "memberid", "customerid", "accountid", "mbid", "memberno", "userno", "customerno", "uid",
	"회원id", "회원아이디", "회원번호", "사용자id", "사용자아이디", "사용자번호", "고객id", "고객번호", "아이디", "유저id", "user", "member", "customer", "id",
}

// lastWords are the last words of headings of columns about users. Few users' ids end like this. koreanEnds are the ends of Korean headings.
var (
	lastWords = strings.Fields(`id ids uid uuid guid sub no num number key code account accounts alias handle address contact
		name nick nickname username loginname fullname accountname membername customername screenname login logon mail email
		phone mobile mobilephone tel telephone user users member members customer customers winner winners buyer buyers recipient recipients`)
	koreanEnds = strings.Fields(`아이디 번호 메일 이름 성명 성함 닉네임 별명 연락처 전화 휴대폰 핸드폰 계정 코드 식별자
		회원 고객 사용자 이용자 구매자 당첨자 대상자 유저 회원명 고객명 사용자명 이용자명 구매자명 당첨자명 대상자명 유저명`)
)

// mayHead reports whether a cell looks like a heading: its last word is one of lastWords, as in shopper_no and kakaoTalkId, or it ends with one of
// koreanEnds.
func mayHead(cell string) bool {
	if strings.ContainsFunc(cell, unicode.IsDigit) {
		return false
	}
	last := cell
	for n, before := 0, ' '; n < len(cell); {
		r, size := utf8.DecodeRuneInString(cell[n:])
		if strings.ContainsRune(" _.-", r) {
			last = cell[n+size:]
		} else if unicode.IsUpper(r) && !unicode.IsUpper(before) {
			last = cell[n:]
		}
		n, before = n+size, r
	}
	return slices.Contains(lastWords, strings.ToLower(last)) || slices.ContainsFunc(koreanEnds, func(end string) bool { return strings.HasSuffix(last, end) })
}

var noBlanks = strings.NewReplacer(" ", "", "-", "", "_", "")

// heading returns a cell in the form of headings.
func heading(cell string) string { return strings.ToLower(noBlanks.Replace(cell)) }

// find returns the index of the column of ids, and whether the first row has headings. After a mistake the index is -1.
func (f *Users) find(rows []row) (at int, headed bool) {
	first := rows[0]
	if n, err := strconv.Atoi(f.Column); err == nil {
		if n < 1 || n > len(first.cells) {
			f.wrong(first.line, "has no column %d", n)
			return -1, false
		}
		return n - 1, f.hasHeading(rows, n-1)
	}
	if f.Column != "" {
		for n, cell := range first.cells {
			if cell == f.Column && at == 0 {
				at, headed = n+1, true
			} else if cell == f.Column {
				f.wrong(first.line, "has two columns %q: give --column the number of one", cell)
				return -1, false
			}
		}
		if !headed {
			f.wrong(first.line, "has no column %q, but %q", f.Column, first.cells)
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
		f.wrong(first.line, "has %d columns, and none has the heading user_id: name the column of ids with --column, by its heading or its number", len(first.cells))
		return -1, false
	}
	return 0, f.hasHeading(rows, 0)
}

// hasHeading reports whether the first cell of a column is a heading. A cell that only looks like one is a mistake.
func (f *Users) hasHeading(rows []row, at int) bool {
	first := rows[0].cells[at]
	if slices.Contains(headings, heading(first)) {
		return true
	}
	if mayHead(strings.TrimSpace(first)) || standsOut(rows, at) {
		f.wrong(rows[0].line, "%q looks like a heading: if it is one, use --column %q; if it is a user's id, use a file of ids only, one a line, with --exact", first, first)
	}
	return false
}

// standsOut reports whether the first cell of a column has no digit, and lacks a kind of character that all cells below it have.
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

// kindsOf returns a cell without blanks, and with each digit replaced by 0, each ASCII letter by a, and each other letter by 가.
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

// shortened matches the form in which Excel writes a number with more digits than it stores.
var shortened = regexp.MustCompile(`^[0-9](\.[0-9]+)?[eE]\+[0-9]+$`)

// doubt returns why a cell is not clearly a user's id, or an empty string. With --exact such ids are accepted.
func doubt(cell string) string {
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || r == utf8.RuneError || strings.ContainsRune("\"'`‘’“”,;<>()[]{}\\", r)
	}
	switch {
	case cell == "":
		return "is no user id"
	case shortened.MatchString(cell):
		return "is a number that a spreadsheet shortened: format the column as text, and paste the ids again"
	case !utf8.ValidString(cell):
		return "is not UTF-8: save the file as CSV UTF-8"
	case strings.EqualFold(cell, "null"), cell[0] == '#', cell[0] == '=', !strings.ContainsFunc(cell, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		return "is probably no user id: delete it, or use --exact if each whole line is an id"
	case strings.ContainsFunc(cell, odd):
		return "has blanks, quotes or brackets: delete them, or use --exact if each whole line is an id"
	}
	return ""
}
