package api

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
)

// The largest bodies, in bytes.
const (
	maxBody     = 64 << 10
	maxUserIDs  = 1000
	maxIssue    = 512 << 10 // 1,000 user ids of 128 bytes, mostly escaped
	smallBuffer = 4 << 10   // what is kept for the next request
)

// A buffer is a request's body and then its answer.
type buffer struct{ bytes []byte }

func (s *Server) buffer() *buffer { return s.buffers.Get().(*buffer) }

// release takes a buffer back, unless one request made it large.
func (s *Server) release(b *buffer) {
	if cap(b.bytes) <= smallBuffer {
		s.buffers.Put(b)
	}
}

// read reads a request's body, which is JSON or empty, into the buffer.
func (b *buffer) read(w http.ResponseWriter, r *http.Request, most int64) error {
	if encoding := r.Header["Content-Encoding"]; encoding != nil && !isIdentity(encoding) {
		return newProblem(unsupportedMedia, "the body has a Content-Encoding: send it as it is")
	}
	if r.ContentLength > most {
		return unreadable(&http.MaxBytesError{Limit: most})
	}
	body := r.Body
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(innermost(w), body, most)
	}
	// It makes room for what arrives, and not for what is announced: announcing costs a client nothing.
	all := bytes.NewBuffer(b.bytes[:0])
	_, err := all.ReadFrom(body)
	b.bytes = all.Bytes()
	if err != nil {
		return unreadable(err)
	}
	if !isJSON(r.Header["Content-Type"], len(b.bytes) == 0) {
		return newProblem(unsupportedMedia, "the body must be application/json")
	}
	return nil
}

// innermost returns net/http's own writer. Told that a body is too large, it answers at once instead
// of waiting for the rest.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// unreadable says why a body was not read.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return newProblem(bodyTooLarge, "the body is too large")
	}
	return newProblem(malformedBody, "the body did not arrive whole")
}

func isIdentity(encoding []string) bool {
	return len(encoding) == 1 && strings.EqualFold(encoding[0], "identity")
}

// isJSON tells whether a Content-Type is JSON in UTF-8; an empty body needs none.
func isJSON(types []string, empty bool) bool {
	switch {
	case len(types) == 0:
		return empty
	case len(types) > 1:
		return false
	case types[0] == "application/json":
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, ok := params["charset"]
	return err == nil && media == "application/json" && (!ok || strings.EqualFold(charset, "utf-8"))
}

// claimant returns the user for whom a claim's body asks. With a user's own
// token it is the token's user, and the body may be empty.
func claimant(body []byte, c auth.Caller) (firstcome.UserID, error) {
	user, plain := plainClaimant(body)
	if !plain {
		if len(body) == 0 && c.User != "" {
			return c.User, nil
		}
		o, wrong, err := parseObject(body, "user_id")
		if err != nil {
			return "", err
		}
		raw, ok := o["user_id"]
		switch {
		case ok:
			user = wrong.readUser("user_id", raw)
		case c.User != "":
			user = c.User
		default:
			wrong.require("user_id")
		}
		if err := wrong.err(); err != nil {
			return "", err
		}
	}
	if c.User != "" && c.User != user {
		return "", notFound()
	}
	return user, nil
}

// plainClaimant reads the body that nearly every claim has, {"user_id":"…"} with
// nothing to unescape. Any other body is not plain.
func plainClaimant(body []byte) (user firstcome.UserID, plain bool) {
	const before, spaced, after = `{"user_id":"`, `{"user_id": "`, `"}`
	text := body
	switch {
	case len(text) < len(spaced)+len(after):
		return "", false
	case string(text[:len(before)]) == before:
		text = text[len(before):]
	case string(text[:len(spaced)]) == spaced:
		text = text[len(spaced):]
	default:
		return "", false
	}
	if string(text[len(text)-len(after):]) != after {
		return "", false
	}
	text = text[:len(text)-len(after)]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return "", false
		}
	}
	user, err := firstcome.ParseUserID(string(text))
	return user, err == nil
}
