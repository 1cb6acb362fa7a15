package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/ledger"
)

// The media types of a whole campaign.
const (
	typeCSV    = "text/csv"
	typeNDJSON = "application/x-ndjson"
)

// A form is the format of an export.
type form struct {
	media string // empty if the caller asks for a page, not an export
	sheet
}

// Excel answers with all coupons of a campaign as CSV for Excel, with times in a zone, in Korean or in English. The caller, the
// console, must have authorized the actor.
func (s *Server) Excel(w http.ResponseWriter, r *http.Request, actor string, of ledger.Status, zone *time.Location, korean bool) error {
	return s.coupons.export(w, r, actor, of, ledger.Page{Voided: true}, form{typeCSV, sheet{excel: true, korean: korean, zone: zone}})
}

// export streams a snapshot of a campaign's coupons. If it fails halfway, it cuts the connection, so that clients do not
// mistake a part for the whole.
func (s *coupons) export(w http.ResponseWriter, r *http.Request, actor string, of ledger.Status, p ledger.Page, as form) error {
	w.Header().Set("Content-Type", as.media+"; charset=utf-8")
	if r.Method == http.MethodHead {
		return nil // the answer has no body
	}
	if !s.exports.Enter(actor) {
		return unavailable(busy, "this caller is already exporting a campaign, or too many exports are running. Ask again: it is safe")
	}
	defer s.exports.Leave(actor)
	if as.excel {
		w.Header().Set("Content-Disposition", disposition(of.ID, of.Terms.Name))
	}
	p.Limit = 0
	out := bufio.NewWriterSize(&stream{ResponseWriter: w, control: http.NewResponseController(w), wait: s.PartTime}, 32<<10)
	write := s.lines(out)
	if as.media == typeCSV {
		write = s.cells(out, as.sheet)
	}
	err := write(r.Context(), nil, "")
	if err == nil {
		err = s.Ledger.Export(r.Context(), of.ID, p, func(c firstcome.Coupon, reason string) error {
			return write(r.Context(), &c, reason)
		})
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		s.Observer.Warn("an export was cut", "campaign", of.ID, "err", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// A stream writes an answer of unknown length. It flushes each part, and each part may take wait.
type stream struct {
	http.ResponseWriter
	control *http.ResponseController
	wait    time.Duration
}

func (s *stream) Write(part []byte) (int, error) {
	extend(s.control, s.wait)
	n, err := s.ResponseWriter.Write(part)
	if err != nil {
		return n, err
	}
	return n, s.control.Flush()
}

// extend moves the deadlines of a request to wait from now. It also moves the read deadline: when that passes, net/http
// cancels the request as if the client had disconnected. Errors of writers without deadlines, such as tests', are ignored.
func extend(c *http.ResponseController, wait time.Duration) {
	until := time.Now().Add(wait)
	_ = c.SetWriteDeadline(until)
	_ = c.SetReadDeadline(until)
}

// lines returns a function that writes a coupon as a line of JSON. For nil it writes nothing.
func (s *coupons) lines(out io.Writer) func(context.Context, *firstcome.Coupon, string) error {
	var line []byte
	return func(ctx context.Context, c *firstcome.Coupon, _ string) error {
		if c == nil {
			return nil
		}
		t, err := s.Terms.get(ctx, c.Campaign, c.TermsVersion)
		if err != nil {
			return err
		}
		s.revealIfGood(ctx, c, t)
		line = append(appendCoupon(line[:0], c, t), '\n')
		_, err = out.Write(line)
		return err
	}
}

// columns are the columns of a CSV export.
var columns = []string{
	"campaign_id", "number", "user_id", "code", "state", "benefit", "issued_at", "expires_at", "recorded", "voided_at", "void_reason",
	"generation", "ticket", "direct", "rank", "prize_id", "prize_name",
}

// A sheet is the format of a CSV export (RFC 4180): exact, for programs, or for Excel.
type sheet struct {
	excel  bool           // with a byte order mark, ids and codes as text formulas, and times in whole seconds
	korean bool           // the names of the columns and the words are Korean
	zone   *time.Location // of the times
}

// koreanColumns are the columns in Korean.
var koreanColumns = []string{
	"캠페인 ID", "번호", "고객 ID", "코드", "상태", "혜택", "발급 시각", "만료 시각", "원장에 기록됨", "회수 시각", "회수 사유",
	"대기열 회차", "순번", "직접 발급", "순위", "경품 ID", "경품",
}

// koreanWords are the words in the cells of an export.
var koreanWords = map[string]string{"true": "예", "false": "아니요", "in_force": "유효", "voided": "회수됨"}

// word returns a word of our own as a cell.
func (s sheet) word(word string) string {
	if s.korean {
		return koreanWords[word]
	}
	return word
}

// cells returns a function that writes a coupon as a row of CSV. Its first call also writes the row of column names. For a
// nil coupon it writes no other row.
func (s *coupons) cells(out io.Writer, as sheet) func(context.Context, *firstcome.Coupon, string) error {
	var row []byte
	if as.excel {
		row = append(row, byteOrderMark...)
	}
	row = as.appendRow(row, as.ordered(as.titles()...)...)
	return func(ctx context.Context, c *firstcome.Coupon, reason string) error {
		if c != nil {
			t, err := s.Terms.get(ctx, c.Campaign, c.TermsVersion)
			if err != nil {
				return err
			}
			s.revealIfGood(ctx, c, t)
			rank := t.Rank(c.Number)
			var prize firstcome.Prize
			if n := t.PrizeOf(rank); n >= 0 {
				prize = t.Prizes[n]
			}
			row = as.appendRow(row, as.ordered(
				as.text(string(c.Campaign)), strconv.FormatInt(c.Number, 10), as.text(string(c.User)), as.text(c.Code), as.word(state(c)), as.safe(string(t.prizeOf(rank).benefit)),
				as.instant(c.IssuedAt), as.instant(t.ExpiresAt(c.IssuedAt)), as.word(strconv.FormatBool(c.Recorded)), as.instant(c.VoidedAt), as.safe(reason),
				place(c.Generation), place(c.Ticket), as.word(strconv.FormatBool(c.Direct)),
				strconv.FormatInt(rank, 10), as.text(string(prize.ID)), as.safe(prize.Name))...)
		}
		_, err := out.Write(row)
		row = row[:0]
		return err
	}
}

// place returns part of a coupon's ticket as a cell, which is empty if the coupon was issued without a line.
func place(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// titles returns the names of the columns. For Excel, the names of time columns include the zone, because the cells do not.
func (s sheet) titles() []string {
	if !s.excel {
		return columns
	}
	titles := slices.Clone(columns)
	if s.korean {
		titles = slices.Clone(koreanColumns)
	}
	for n, name := range columns {
		if strings.HasSuffix(name, "_at") {
			titles[n] += " (" + s.zone.String() + ")"
		}
	}
	return titles
}

// ordered puts the number first for Excel. Where Excel does not split lines at commas, the whole line is the first cell,
// which must not begin like a formula.
func (s sheet) ordered(cells ...string) []string {
	if !s.excel {
		return cells
	}
	cells[0], cells[1] = cells[1], cells[0]
	return cells
}

// byteOrderMark marks a file as UTF-8 for Excel. Without it, Excel in Korea would read CP949.
const byteOrderMark = "\ufeff"

// text returns a text as a cell. For Excel it is a formula that returns the text. Otherwise Excel would read 00123 as 123,
// 12E45 as a number, and some campaign ids as dates. Excel allows 255 characters of text in a formula; these texts have at
// most 128 bytes.
func (s sheet) text(text string) string {
	if !s.excel || text == "" {
		return text
	}
	return `="` + strings.ReplaceAll(harmless(text), `"`, `""`) + `"`
}

// safe returns a text as a cell that spreadsheets do not run as a formula. For programs it returns the text unchanged.
func (s sheet) safe(text string) string {
	if !s.excel {
		return text
	}
	return harmless(text)
}

// instant returns a time as a cell, which is empty for the zero time. For Excel it omits the zone and the fraction: Excel
// does not recognize dates with them.
func (s sheet) instant(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case s.excel:
		return t.In(s.zone).Format("2006-01-02 15:04:05")
	case s.zone == time.UTC:
		return t.UTC().Format(client.TimeLayout)
	}
	return t.In(s.zone).Format("2006-01-02T15:04:05.000000-07:00")
}

// appendRow appends a line of cells.
func (s sheet) appendRow(b []byte, cells ...string) []byte {
	for n, cell := range cells {
		if n > 0 {
			b = append(b, ',')
		}
		if strings.ContainsAny(cell, ",;\"\t\r\n") || strings.HasPrefix(cell, " ") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		b = append(b, cell...)
	}
	if s.excel {
		b = append(b, '\r')
	}
	return append(b, '\n')
}

// harmless adds an apostrophe wherever a spreadsheet could read a formula: at the beginning of a text, and after
// semicolons, tabs and line ends, where some spreadsheets split cells. Some also accept the full-width signs of East Asian
// keyboards.
func harmless(cell string) string {
	if !strings.ContainsAny(cell, formulas) {
		return cell
	}
	var b strings.Builder
	begins, split := true, false
	for _, r := range cell {
		if begins && strings.ContainsRune(formulas, r) {
			b.WriteByte('\'')
		}
		if strings.ContainsRune(";\t\r\n", r) {
			begins, split = true, true
		} else {
			// Some spreadsheets skip blanks before a formula, and quotes after a split.
			begins = begins && (r == ' ' || split && r == '"')
		}
		b.WriteRune(r)
	}
	return b.String()
}

const formulas = "=+-@\t\r＝＋－＠"

// disposition returns the Content-Disposition of a campaign's file: the campaign's name (RFC 5987), and its id for
// clients that do not support RFC 5987.
func disposition(id firstcome.CampaignID, name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(`\/:*?"<>|`, r) {
			return '_' // file systems refuse these characters, and a slash could change the folder
		}
		return r
	}, name)
	name = strings.Trim(name, " .") + " (" + string(id) + ").csv"
	return `attachment; filename="` + string(id) + `.csv"; filename*=UTF-8''` + strings.ReplaceAll(url.PathEscape(name), "'", "%27")
}
