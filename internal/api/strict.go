package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// maxDepth is how deep JSON may be nested. No field needs more than a few; a
// benefit is the caller's own.
const maxDepth = 32

// An object is a JSON object's fields, unread.
type object map[string]json.RawMessage

// parseObject reads a body that must be one JSON object. A field that is not
// among the known ones is 422.
func parseObject(body []byte, known ...string) (object, error) {
	if err := checkJSON(body); err != nil {
		return nil, badRequest("the body cannot be read: " + err.Error())
	}
	var o object
	if err := json.Unmarshal(body, &o); err != nil || o == nil {
		return nil, badRequest("the body must be a JSON object")
	}
	return o, o.only("", known)
}

// only returns nil if every field is known, else a problem that names the others.
func (o object) only(parent string, known []string) error {
	var unknown []client.FieldError
	for name := range o {
		if !slices.Contains(known, name) {
			unknown = append(unknown, client.FieldError{Field: parent + name, Reason: "there is no such field"})
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.SortFunc(unknown, func(a, b client.FieldError) int { return bytes.Compare([]byte(a.Field), []byte(b.Field)) })
	return notAllowed(unknown...)
}

// required says that a field is missing.
func required(field string) client.FieldError {
	return client.FieldError{Field: field, Reason: "is required"}
}

// wrongType says that a field has another JSON type than it must have.
func wrongType(field, want string) *client.Problem {
	p := badRequest("a field has the wrong type")
	p.Fields = []client.FieldError{{Field: field, Reason: "must be " + want}}
	return p
}

// checkJSON returns nil if text is one JSON value that every reader reads alike:
// well-formed UTF-8, no lone surrogates, no key twice, not nested too deep.
// encoding/json would accept those and change them in silence.
func checkJSON(text []byte) error {
	switch {
	case len(text) == 0:
		return fmt.Errorf("it is empty")
	case !utf8.Valid(text):
		return fmt.Errorf("it is not well-formed UTF-8")
	case !json.Valid(text):
		return fmt.Errorf("it is not one JSON value")
	case hasLoneSurrogate(text):
		return fmt.Errorf("it has a \\u escape of half a surrogate pair")
	}
	return checkNesting(text)
}

// hasLoneSurrogate looks for an escape \ud800 to \udfff of valid JSON that is not
// one half of a pair.
func hasLoneSurrogate(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return false
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
			return true
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
func checkNesting(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var levels []level
	for {
		token, err := d.Token()
		if err != nil {
			return nil //nolint:nilerr // the text is valid, so this is its end
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
					return fmt.Errorf("an object has the key %q twice", key)
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
			return fmt.Errorf("it is nested deeper than %d", maxDepth)
		}
	}
}

// parseUser reads a user id: a string, or an integer in canonical form, which
// counts as its digits.
func parseUser(raw json.RawMessage) (firstcome.UserID, error) {
	text := string(raw)
	switch {
	case text[0] == '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", wrongType("user_id", "a string")
		}
	case !isInteger(text):
		return "", wrongType("user_id", "a string, or an integer without leading zeros, fraction or exponent")
	}
	user, err := firstcome.ParseUserID(text)
	if err != nil {
		p := badRequest("the user id is not one")
		p.Fields = []client.FieldError{{Field: "user_id", Reason: err.Error()}}
		return "", p
	}
	return user, nil
}

// isInteger tells whether a JSON number is an integer in canonical form. Of
// valid JSON that is: digits, with a minus in front or not, and not -0.
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
