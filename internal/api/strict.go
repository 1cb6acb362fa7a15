package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// maxDepth is how deep JSON may be nested: a benefit is the caller's own.
const maxDepth = 32

// blanks may be around the tokens of JSON.
const blanks = " \t\r\n"

// An object is a JSON object's fields, unread.
type object map[string]json.RawMessage

// parseObject reads a body that must be one JSON object. A field that is not
// among the known ones is a mistake. An error says that there is no object to read.
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

// only notes the fields that are not known.
func (o object) only(m *mistakes, parent string, known []string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, name) {
			m.refuse(parent+name, "there is no such field")
		}
	}
}

// checkJSON returns nil if text is one JSON value that every reader reads alike:
// well-formed UTF-8, no lone surrogates, no key twice, not nested too deep.
// encoding/json would accept those and change them in silence; jsontext does not.
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
			return &client.FieldError{Reason: "it is not one JSON value: there is more behind it", Offset: int64(len(text)-len(rest)) + 1}
		case d.StackDepth() == 0:
			return nil
		}
	}
}

// readUser reads a user id: a string, or the digits of an integer in canonical form.
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

// readInteger reads a field that must be an integer of least to maxInteger.
func (m *mistakes) readInteger(field string, raw json.RawMessage, least int64) int64 {
	n, ok := parseInteger(string(raw))
	if !ok || n < least {
		m.mistype(field, fmt.Sprintf("an integer of %d to %d", least, int64(maxInteger)))
	}
	return n
}

// isInteger tells whether a valid JSON number is an integer in canonical
// form: digits, with or without a minus in front, and not -0.
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
