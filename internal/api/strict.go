package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// maxDepth is how deep JSON may be nested: a benefit is the caller's own.
const maxDepth = 32

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
// encoding/json would accept those and change them in silence.
func checkJSON(text []byte) *client.FieldError {
	if len(text) == 0 {
		return &client.FieldError{Reason: "it is empty"}
	}
	if at := brokenUTF8(text); at > 0 {
		return &client.FieldError{Reason: "it is not well-formed UTF-8", Offset: at}
	}
	var value json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(text, &value); errors.As(err, &syntax) {
		return &client.FieldError{Reason: "it is not one JSON value: " + syntax.Error(), Offset: syntax.Offset}
	}
	if at := loneSurrogate(text); at > 0 {
		return &client.FieldError{Reason: "it has a \\u escape of half a surrogate pair", Offset: at}
	}
	return checkNesting(text)
}

// brokenUTF8 returns where text ceases to be UTF-8, from 1; 0 if nowhere.
func brokenUTF8(text []byte) int64 {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return int64(at) + 1
		}
		at += size
	}
	return 0
}

// loneSurrogate returns where valid JSON has an escape \ud800 to \udfff that is not
// half of a pair, from 1; 0 if nowhere.
func loneSurrogate(all []byte) int64 {
	for text := all; ; {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return 0
		}
		text = text[i:]
		r, isEscape := escapedRune(text)
		switch {
		case !isEscape:
			text = text[2:]
			continue
		case r < 0xd800 || r > 0xdfff:
			text = text[6:]
			continue
		}
		low, isEscape := escapedRune(text[6:])
		if r >= 0xdc00 || !isEscape || low < 0xdc00 || low > 0xdfff {
			return int64(len(all)-len(text)) + 1
		}
		text = text[12:]
	}
}

// escapedRune returns what the \uXXXX that text begins with stands for.
func escapedRune(text []byte) (r uint64, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	r, err := strconv.ParseUint(string(text[2:6]), 16, 32)
	return r, err == nil
}

// A level is an object or an array around the place that is read.
type level struct {
	keys  map[string]bool // nil: an array
	value bool            // the next string is a value, not a key
}

// checkNesting refuses valid JSON with a key twice in one object, or too deep.
func checkNesting(text []byte) *client.FieldError {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var levels []level
	for {
		token, err := d.Token()
		if err != nil {
			return nil // the text is valid, so this is its end
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].keys != nil {
			in := &levels[n-1]
			if in.value = !in.value; in.value {
				key, _ := token.(string)
				if in.keys[key] {
					return &client.FieldError{Reason: fmt.Sprintf("an object has the key %q twice", key), Offset: d.InputOffset()}
				}
				in.keys[key] = true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]bool{}})
		case json.Delim('['):
			levels = append(levels, level{})
		}
		if len(levels) > maxDepth {
			return &client.FieldError{Reason: fmt.Sprintf("it is nested deeper than %d", maxDepth), Offset: d.InputOffset()}
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
