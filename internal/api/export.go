package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
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

// A form is how a whole campaign is written.
type form struct {
	media string // empty: a page, not the whole campaign
	sheet
}

// Excel answers with all coupons of a campaign as CSV that Excel opens, with the instants of Seoul. The console has let
// the actor through.
func (s *Server) Excel(w http.ResponseWriter, r *http.Request, actor string, of ledger.Status) error {
	seoul, err := time.LoadLocation("Asia/Seoul")
	if err != nil {
		return err
	}
	return s.coupons.export(w, r, actor, of, ledger.Page{Voided: true}, form{typeCSV, sheet{excel: true, zone: seoul}})
}

// export streams a campaign's coupons as they are at one instant. If that fails
// half-way the connection is cut, so that nobody takes a part for the whole.
func (s *coupons) export(w http.ResponseWriter, r *http.Request, actor string, of ledger.Status, p ledger.Page, as form) error {
	w.Header().Set("Content-Type", as.media+"; charset=utf-8")
	if r.Method == http.MethodHead {
		return nil // nobody would read the rest
	}
	if !s.exports.Enter(actor) {
		return unavailable(busy, "you export a campaign already, or others export as many as may be at once. Ask again: it is safe")
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

// A stream is an answer of unknown length: each part has the time of a whole
// answer, and is sent at once.
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

// extend gives more time to a request whose answer takes long. It also moves
// the deadline of reading: at its end net/http would think that the client has
// gone. A writer without deadlines, such as a test's, does not need it.
func extend(c *http.ResponseController, wait time.Duration) {
	until := time.Now().Add(wait)
	_ = c.SetWriteDeadline(until)
	_ = c.SetReadDeadline(until)
}

// lines returns a function that writes a coupon as a line of JSON, and nothing for none.
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
		line = append(appendCoupon(line[:0], c, t), '\n')
		_, err = out.Write(line)
		return err
	}
}

// columns are those of a CSV export.
var columns = []string{
	"campaign_id", "number", "user_id", "code", "state", "benefit", "issued_at", "expires_at", "recorded", "voided_at", "void_reason",
	"generation", "ticket", "direct",
}

// A sheet is how a campaign is written as CSV (RFC 4180): exactly, for programs, or for Excel.
type sheet struct {
	excel bool           // with a byte order mark, texts kept as texts, and whole seconds
	zone  *time.Location // of the instants
}

// cells returns a function that writes a coupon as a row of CSV, below a row of column names.
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
			row = as.appendRow(row, as.ordered(
				as.text(string(c.Campaign)), strconv.FormatInt(c.Number, 10), as.text(string(c.User)), as.text(c.Code), state(c), as.safe(string(t.benefit)),
				as.instant(c.IssuedAt), as.instant(t.ExpiresAt(c.IssuedAt)), strconv.FormatBool(c.Recorded), as.instant(c.VoidedAt), as.safe(reason),
				place(c.Generation), place(c.Ticket), strconv.FormatBool(c.Direct))...)
		}
		_, err := out.Write(row)
		row = row[:0]
		return err
	}
}

// place returns part of a coupon's ticket as a cell, empty of one that was issued without a line.
func place(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// titles returns the names of the columns. Those of instants name the zone, unless the instants do.
func (s sheet) titles() []string {
	if !s.excel {
		return columns
	}
	titles := make([]string, len(columns))
	for n, name := range columns {
		if titles[n] = name; strings.HasSuffix(name, "_at") {
			titles[n] += " (" + s.zone.String() + ")"
		}
	}
	return titles
}

// ordered puts the number first for Excel. If Excel does not split lines at commas, it takes the whole line for
// the first cell, which must not begin like a formula.
func (s sheet) ordered(cells ...string) []string {
	if !s.excel {
		return cells
	}
	cells[0], cells[1] = cells[1], cells[0]
	return cells
}

// byteOrderMark tells Excel that a file is UTF-8: in Korea it would read it as CP949.
const byteOrderMark = "\ufeff"

// text returns a text as a cell. Excel takes 00123 for 123, 12E45 for a number and a campaign's id for a
// date, unless the cell is a formula of that text. It is at most 128 bytes, of the 255 characters that a formula's text may have.
func (s sheet) text(text string) string {
	if !s.excel {
		return text
	}
	return `="` + strings.ReplaceAll(harmless(text), `"`, `""`) + `"`
}

// safe returns a text as a cell that a spreadsheet does not run. For programs it is the text, byte by byte.
func (s sheet) safe(text string) string {
	if !s.excel {
		return text
	}
	return harmless(text)
}

// instant returns an instant as a cell; the zero time is empty. Excel takes no text with a zone or
// fractions of seconds for a date.
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

// harmless keeps a spreadsheet from taking a user's text for a formula, also where a spreadsheet that splits cells at
// semicolons, tabs or line ends begins a cell. Some accept the full-width signs of East Asian keyboards too.
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
			// Some spreadsheets skip blanks before a formula, and quotes where a cell was split.
			begins = begins && (r == ' ' || split && r == '"')
		}
		b.WriteRune(r)
	}
	return b.String()
}

const formulas = "=+-@\t\r＝＋－＠"

// disposition returns the header Content-Disposition of a campaign's file: its name as it is (RFC 5987), and
// its id for clients that do not read that.
func disposition(id firstcome.CampaignID, name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(`\/:*?"<>|`, r) {
			return '_' // file systems refuse these, and no name may lead elsewhere
		}
		return r
	}, name)
	name = strings.Trim(name, " .") + " (" + string(id) + ").csv"
	return `attachment; filename="` + string(id) + `.csv"; filename*=UTF-8''` + strings.ReplaceAll(url.PathEscape(name), "'", "%27")
}
