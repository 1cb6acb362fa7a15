package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
)

// The largest bodies, in bytes.
const (
	maxBody     = 64 << 10
	maxUserIDs  = 1000
	maxIssue    = 512 << 10 // 1,000 user ids of 128 bytes, mostly escaped
	smallBuffer = 4 << 10   // larger buffers are not reused
)

// A buffer holds a request's body, and then the answer.
type buffer struct{ bytes []byte }

func (s *core) buffer() *buffer { return s.buffers.Get().(*buffer) }

// release returns a buffer to the pool, unless a request made it large.
func (s *core) release(b *buffer) {
	if cap(b.bytes) <= smallBuffer {
		s.buffers.Put(b)
	}
}

// read reads a request's body into the buffer. The body must be JSON or empty, and at most most bytes.
func (b *buffer) read(w http.ResponseWriter, r *http.Request, most int64) error {
	if encoding := r.Header["Content-Encoding"]; encoding != nil && (len(encoding) != 1 || !strings.EqualFold(encoding[0], "identity")) {
		return newProblem(unsupportedMedia, "the body has a Content-Encoding: send it as it is")
	}
	if r.ContentLength > most {
		return unreadable(&http.MaxBytesError{Limit: most})
	}
	body := r.Body
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(innermost(w), body, most)
	}
	// The buffer grows with the bytes that arrive, not by Content-Length: a client can announce any size for free.
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

// innermost returns net/http's own writer. http.MaxBytesReader needs it to close the connection of a body that is too
// large, instead of waiting for the rest.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// unreadable returns the answer to a request whose body could not be read.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return newProblem(bodyTooLarge, "the body is too large")
	}
	return newProblem(malformedBody, "the body is incomplete")
}

// isJSON reports whether a Content-Type is JSON in UTF-8. An empty body needs no Content-Type.
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

// claimant returns the user that a claim's body names. A user with their own token may send an empty body, and may name
// only themselves.
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

// plainClaimant reads the body that nearly every claim has: {"user_id":"…"} without escapes. For any other body, plain
// is false.
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

// maxDepth is how deep JSON may be nested. A benefit may be any JSON.
const maxDepth = 32

// blanks are the characters that JSON allows between tokens.
const blanks = " \t\r\n"

// An object holds the fields of a JSON object, not yet decoded.
type object map[string]json.RawMessage

// parseObject reads a body that must be one JSON object. Unknown fields are returned as mistakes. An error means that the
// body is not such an object.
func parseObject(body []byte, known ...string) (object, *mistakes, error) {
	if wrong := checkJSON(body); wrong != nil {
		p := newProblem(malformedBody, "the body cannot be read: "+wrong.Reason)
		p.Errors = []client.FieldError{*wrong}
		return nil, nil, p
	}
	var o object
	if err := json.Unmarshal(body, &o); err != nil || o == nil {
		return nil, nil, newProblem(malformedBody, "the body must be a JSON object")
	}
	m := &mistakes{}
	o.only(m, "", known)
	return o, m, nil
}

// only adds a mistake for each unknown field.
func (o object) only(m *mistakes, parent string, known []string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, name) {
			m.refuse(parent+name, "there is no such field")
		}
	}
}

// checkJSON returns nil if text is one JSON value that all decoders decode alike: well-formed UTF-8, no lone surrogates,
// no duplicate keys, at most maxDepth deep. encoding/json would silently change such text; jsontext rejects it.
func checkJSON(text []byte) *client.FieldError {
	if len(bytes.TrimLeft(text, blanks)) == 0 {
		return &client.FieldError{Reason: "it is empty"}
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	for {
		_, err := d.ReadToken()
		at := d.InputOffset()
		if wrong := (*jsontext.SyntacticError)(nil); errors.As(err, &wrong) {
			at = min(wrong.ByteOffset+1, int64(len(text)))
		}
		switch rest := bytes.TrimLeft(text[at:], blanks); {
		case err != nil:
			return &client.FieldError{Reason: "it is not one JSON value: " + strings.TrimPrefix(err.Error(), "jsontext: "), Offset: at}
		case d.StackDepth() > maxDepth:
			return &client.FieldError{Reason: fmt.Sprintf("it is nested deeper than %d", maxDepth), Offset: at}
		case d.StackDepth() == 0 && len(rest) > 0:
			return &client.FieldError{Reason: "it is not one JSON value: more text follows it", Offset: int64(len(text)-len(rest)) + 1}
		case d.StackDepth() == 0:
			return nil
		}
	}
}

// readUser reads a user id: a string, or an integer in canonical form, whose digits become the id.
func (m *mistakes) readUser(field string, raw json.RawMessage) firstcome.UserID {
	text := string(raw)
	if text[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			m.mistype(field, "a string")
			return ""
		}
	} else if !isInteger(text) {
		m.mistype(field, "a string, or an integer without leading zeros, fraction or exponent")
		return ""
	}
	user, err := firstcome.ParseUserID(text)
	if err != nil {
		m.refuse(field, err.Error())
		m.unreadable = true
	}
	return user
}

// readString reads a field that must be a string.
func (m *mistakes) readString(field string, raw json.RawMessage) string {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		m.mistype(field, "a string")
		return ""
	}
	return *s
}

// readInteger reads a field that must be an integer from least to maxInteger.
func (m *mistakes) readInteger(field string, raw json.RawMessage, least int64) int64 {
	n, ok := parseInteger(string(raw))
	if !ok || n < least {
		m.mistype(field, fmt.Sprintf("an integer of %d to %d", least, int64(maxInteger)))
	}
	return n
}

// isInteger reports whether a valid JSON number is an integer in canonical form: digits, optionally after a minus, and
// not -0.
func isInteger(number string) bool {
	if number == "-0" || number == "" {
		return false
	}
	for i, c := range []byte(number) {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return true
}
