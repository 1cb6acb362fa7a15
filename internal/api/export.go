package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/firstcome/firstcome"
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
	return s.export(w, r, actor, of, ledger.Page{Voided: true}, form{typeCSV, sheet{excel: true, zone: seoul}})
}

// export streams a campaign's coupons as they are at one instant. If that fails
// half-way the connection is cut, so that nobody takes a part for the whole.
func (s *Server) export(w http.ResponseWriter, r *http.Request, actor string, of ledger.Status, p ledger.Page, as form) error {
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
func (s *Server) lines(out io.Writer) func(context.Context, *firstcome.Coupon, string) error {
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
