package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/codes"
	"github.com/firstcome/firstcome/internal/listfile"
)

// codeLists serves the lists of codes that other systems made.
type codeLists struct {
	*core
	imports auth.Room // one at a time, because a node has the whole file in memory
}

const (
	// MaxImport is the most bytes of an import.
	MaxImport = 150 << 20
	// importWait is how long the ledger may take for an import.
	importWait = 10 * time.Minute
)

// importAll answers POST /v1/campaigns/{id}/codes and POST /v1/campaigns/{id}/prizes/{prize}/codes.
func (s *codeLists) importAll(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	if !s.imports.Enter(c.Name) {
		return unavailable(busy, "another import is running on this node. Ask again: it is safe")
	}
	defer s.imports.Leave(c.Name)
	file, err := s.readFile(w, r)
	if err != nil {
		return err
	}
	if len(file.Codes) > codes.MaxImport {
		return newProblem(bodyTooLarge, fmt.Sprintf("the file has more than %d codes: import it in parts", codes.MaxImport))
	}
	if len(file.Wrong) > 0 {
		return wrongLines(file.Wrong, file.Missed)
	}
	control := http.NewResponseController(w)
	extend(control, importWait)
	done, err := s.Codes.Import(r.Context(), c.Name, id, firstcome.PrizeID(r.PathValue("prize")), file.Codes)
	extend(control, s.PartTime)
	var twice *codes.DuplicateError
	if errors.As(err, &twice) {
		var wrong []listfile.Mistake
		for _, d := range twice.Codes {
			wrong = append(wrong, listfile.Mistake{Line: file.Lines[d.Index], Reason: placeText(d)})
		}
		return wrongLines(wrong, 0)
	}
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if done.Added == 0 {
		status = http.StatusOK
	}
	return writeJSON(w, status, client.ImportedList{Added: done.Added, Entries: done.Entries})
}

// placeText says where the ledger has a code already.
func placeText(d codes.Duplicate) string {
	list := "of the campaign " + string(d.Campaign)
	if d.Prize != "" {
		list = "of the prize " + string(d.Prize) + " " + list
	}
	if d.Entry == 0 {
		return "the code is in an import that has not ended, into the list " + list
	}
	return fmt.Sprintf("the code is entry %d of the list %s already", d.Entry, list)
}

// wrongLines returns the 422 for a file with mistakes.
func wrongLines(wrong []listfile.Mistake, missed int) *client.Problem {
	p := newProblem(notAllowedCode, "nothing was imported: see lines")
	if missed > 0 {
		p.Detail = fmt.Sprintf("nothing was imported: see lines, which has the first %d of %d mistakes", len(wrong), len(wrong)+missed)
	}
	for _, m := range wrong {
		p.Lines = append(p.Lines, client.LineError{Line: m.Line, Reason: m.Reason})
	}
	return p
}

// readFile reads a request's body, which must be CSV or NDJSON.
func (s *codeLists) readFile(w http.ResponseWriter, r *http.Request) (*listfile.Codes, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, newProblem(unsupportedMedia, "the body has a Content-Encoding: send it as it is")
	}
	if r.ContentLength == 0 {
		return listfile.CSV(nil), nil // which is a mistake
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != typeCSV && media != typeNDJSON {
		return nil, newProblem(unsupportedMedia, "the body must be text/csv with the heading code, or application/x-ndjson")
	}
	if r.ContentLength > MaxImport {
		return nil, unreadable(&http.MaxBytesError{Limit: MaxImport})
	}
	var text bytes.Buffer
	control := http.NewResponseController(w)
	if _, err := io.Copy(&text, &patientReader{http.MaxBytesReader(innermost(w), r.Body, MaxImport), control, s.PartTime}); err != nil {
		return nil, unreadable(err)
	}
	if media == typeNDJSON {
		return listfile.NDJSON(text.Bytes()), nil
	}
	return listfile.CSV(text.Bytes()), nil
}

// A patientReader reads a large body, each part of which may take wait.
type patientReader struct {
	io.Reader
	control *http.ResponseController
	wait    time.Duration
}

func (p *patientReader) Read(part []byte) (int, error) {
	extend(p.control, p.wait)
	return p.Reader.Read(part)
}

// reveal replaces a coupon's code by the one that the shop's system knows: the imported one, if there is a list of them. Until the coupon is recorded,
// it has none. An error means that an operator must look at the list.
func (s *core) reveal(ctx context.Context, c *firstcome.Coupon, t *terms) (err error) {
	if !t.hide(c) || !c.Recorded {
		return nil
	}
	c.Code, err = s.Codes.CodeOf(ctx, c, &t.Terms)
	return err
}

// revealTo is reveal for a caller who asks for one user's coupon. Support does not see imported codes.
func (s *core) revealTo(ctx context.Context, caller auth.Caller, c *firstcome.Coupon, t *terms) error {
	if auth.Support.Has(caller) {
		t.hide(c)
		return nil
	}
	return s.reveal(ctx, c, t)
}

// revealIfGood is reveal for answers with many coupons: one whose code cannot be read has none, so that the others have theirs.
func (s *core) revealIfGood(ctx context.Context, c *firstcome.Coupon, t *terms) {
	if err := s.reveal(ctx, c, t); err != nil {
		s.Observer.Warn("a coupon is shown without its imported code", "campaign", c.Campaign, "number", c.Number, "err", err)
	}
}

// hide removes a coupon's code if the campaign's own system does not make it, and reports whether it did.
func (t *terms) hide(c *firstcome.Coupon) bool {
	if !t.imported {
		return false
	}
	if _, entry := t.Entry(c.Number); entry == 0 {
		return false
	}
	c.Code = ""
	return true
}

// codesShown returns the lists of imported codes of a campaign, or nil if it has none.
func (s *core) codesShown(ctx context.Context, id firstcome.CampaignID, t *firstcome.Terms) (all []client.CodeList, err error) {
	needs := t.CodeLists()
	if len(needs) == 0 {
		return nil, nil
	}
	entries, err := s.Codes.Entries(ctx, id)
	for _, list := range needs {
		all = append(all, client.CodeList{Prize: string(list.Prize), Entries: entries[list.Prize], Needed: list.Needs})
	}
	return all, err
}

// isCodeTrouble reports whether an error means that an imported code cannot be read.
func isCodeTrouble(err error) bool {
	return errors.Is(err, codes.ErrDamaged) || errors.Is(err, codes.ErrNoEntry)
}
