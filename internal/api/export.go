package api

import (
	"bufio"
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// The media types of a whole campaign.
const (
	typeCSV    = "text/csv"
	typeNDJSON = "application/x-ndjson"
)

// export streams a campaign's coupons as they are at one instant. If that fails
// half-way the connection is cut, so that nobody takes a part for the whole.
func (s *Server) export(w http.ResponseWriter, r *http.Request, id firstcome.CampaignID, p ledger.Page, media string) error {
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	if r.Method == http.MethodHead {
		return nil // the rest would be read for nobody
	}
	select {
	case s.exports <- struct{}{}:
		defer func() { <-s.exports }()
	default:
		return unavailable(busy, "too many exports are under way. Ask again: it is safe")
	}
	p.Limit = 0
	out := bufio.NewWriterSize(&stream{ResponseWriter: w, control: http.NewResponseController(w), wait: s.Limits.Write}, 32<<10)
	write := s.lines(out)
	if media == typeCSV {
		write = s.cells(out)
	}
	err := s.Ledger.Coupons(r.Context(), id, p, func(c firstcome.Coupon) error {
		return write(r.Context(), &c)
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		s.metrics.warn(s.Log, "an export was cut", "campaign", id, "err", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// A stream is an answer without end in sight: each part that is written has the
// time of a whole answer, and is sent at once.
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

// extend gives a request that is answered for long more time. The deadline of
// reading is moved, too: at its end net/http would take the client for gone. A
// writer without deadlines, as in a test, has no need.
func extend(c *http.ResponseController, wait time.Duration) {
	until := time.Now().Add(wait)
	_ = c.SetWriteDeadline(until)
	_ = c.SetReadDeadline(until)
}

// lines returns what writes a coupon as a line of JSON.
func (s *Server) lines(out io.Writer) func(context.Context, *firstcome.Coupon) error {
	var line []byte
	return func(ctx context.Context, c *firstcome.Coupon) error {
		t, err := s.terms.get(ctx, c.Campaign, c.TermsVersion)
		if err != nil {
			return err
		}
		line = append(appendCoupon(line[:0], c, t), '\n')
		_, err = out.Write(line)
		return err
	}
}

// columns are those of a CSV export.
var columns = []string{"campaign_id", "number", "user_id", "code", "state", "benefit", "issued_at", "expires_at", "recorded"}

// cells returns what writes a coupon as a row of CSV, below a row of column names.
func (s *Server) cells(out io.Writer) func(context.Context, *firstcome.Coupon) error {
	table := csv.NewWriter(out)
	_ = table.Write(columns) // into the buffer: an error comes again with the flush
	table.Flush()
	return func(ctx context.Context, c *firstcome.Coupon) error {
		t, err := s.terms.get(ctx, c.Campaign, c.TermsVersion)
		if err != nil {
			return err
		}
		row := []string{
			string(c.Campaign), strconv.FormatInt(c.Number, 10), harmless(string(c.User)), c.Code, state(c), harmless(string(t.benefit)),
			cellTime(c.IssuedAt), cellTime(t.ExpiresAt(c.IssuedAt)), strconv.FormatBool(c.Recorded),
		}
		if err := table.Write(row); err != nil {
			return err
		}
		table.Flush()
		return table.Error()
	}
}

// harmless keeps a spreadsheet from taking a user's text for a formula. Some take the
// full-width signs of East Asian keyboards for the same.
func harmless(cell string) string {
	if cell != "" && strings.IndexAny(cell, "=+-@\t\r＝＋－＠") == 0 {
		return "'" + cell
	}
	return cell
}

// cellTime returns an instant as a cell; the zero time is empty.
func cellTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}
