//go:build !check && (!race || soak)

package api_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// edges are texts that readers of integers may get wrong, beside the bounds in the contract.
var edges = []string{
	"", "-1", "0", "1", "-0", "01", "+1", " 1", "1 ", "1e3", "1e99", "0x1", "1_0", "1.0", "١", "NaN", "null", "1\x00",
	"2147483647", "2147483648", "4294967296", "9007199254740991", "9007199254740992",
	"9223372036854775806", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616",
	strings.Repeat("9", 1000),
}

// isCanonical reports whether a text is an integer in canonical form.
func isCanonical(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == text
}

// An integer is a parameter of type integer in the contract.
type integer struct {
	method, path string
	*openapi3.Parameter
}

// allows reports whether the contract allows a text.
func (i integer) allows(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	s := i.Schema.Value
	return err == nil && isCanonical(text) && (s.Min == nil || n >= int64(*s.Min)) && (s.Max == nil || n <= int64(*s.Max))
}

// request returns the operation's path with a text for the parameter, and valid values for all others.
func (i integer) request(text string) string {
	path := i.path
	if i.In == openapi3.ParameterInPath {
		path = strings.ReplaceAll(path, "{"+i.Name+"}", url.PathEscape(text))
	} else {
		path += "?" + url.Values{i.Name: {text}}.Encode()
	}
	return strings.NewReplacer("{id}", "c", "{user_id}", "u", "{number}", "1", "{letter}", "1").Replace(path)
}

// integers returns every parameter of the contract that is an integer.
func integers(t *testing.T) (found []integer) {
	t.Helper()
	operations(t, func(method, path string, _ *openapi3.Operation, parameters openapi3.Parameters) {
		for _, p := range parameters {
			if p.Value.Schema.Value.Type.Is("integer") {
				found = append(found, integer{method, path, p.Value})
			}
		}
	})
	return found
}

// TestEveryIntegerOfARequestIsBoundedAndDocumented sends the edges of integers in each parameter. A value that the contract
// allows is answered, with 404 if nothing has that number. Any other value is 404 in a path and 422 in a query. A request
// that hangs ends by the client's time-out.
func TestEveryIntegerOfARequestIsBoundedAndDocumented(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	s.claim("c", "u").want(t, 201, "issued")
	s.client.Timeout = 20 * time.Second
	all := integers(t)
	if len(all) < 12 {
		t.Fatalf("the contract has %d integers", len(all))
	}
	for _, i := range all {
		if s := i.Schema.Value; s.Min == nil || s.Max == nil {
			t.Errorf("%s %s: the contract does not bound %s", i.method, i.path, i.Name)
		}
		texts := edges
		for _, bound := range []*float64{i.Schema.Value.Min, i.Schema.Value.Max} {
			for d := int64(-1); bound != nil && d <= 1; d++ {
				texts = append(texts[:len(texts):len(texts)], strconv.FormatInt(int64(*bound)+d, 10))
			}
		}
		for _, text := range texts {
			s.tryInteger(i, text)
		}
	}
}

// tryInteger fails the test unless the answer is the documented one.
func (s *shop) tryInteger(i integer, text string) {
	body, want := "", map[int]bool{422: true}
	if i.method == "POST" {
		body = `{"reason":"r"}`
		if strings.HasSuffix(i.path, "/replay") {
			body = ""
		}
	}
	switch inPath := i.In == openapi3.ParameterInPath; {
	case inPath && i.allows(text):
		want = map[int]bool{200: true, 404: true, 409: true}
	case inPath:
		want = map[int]bool{404: true, 400: text == "" || text == "1\x00", 405: text == ""}
	case text == "": // an empty parameter counts as absent, but a filter must not select everything
		want = map[int]bool{200: i.Name != "number", 422: i.Name == "number"}
		if i.AllowEmptyValue != want[200] {
			s.t.Errorf("%s %s: the contract says that %s may be empty: %t", i.method, i.path, i.Name, i.AllowEmptyValue)
		}
	case i.allows(text):
		want = map[int]bool{200: true}
	}
	got, err := s.try(i.method, i.request(text), body)
	if err != nil {
		s.t.Errorf("%s %s ends in %v", i.method, i.request(text), err)
	} else if !want[got.status] {
		s.t.Errorf("%s %s answers %d %s", i.method, i.request(text), got.status, got.body)
	}
}
