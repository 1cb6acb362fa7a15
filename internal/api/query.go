package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for systems without zones, such as an image from scratch
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// The items of a page.
const (
	defaultLimit = 100
	maxLimit     = 500
)

// A query reads a request's parameters and collects what is wrong with them.
type query struct {
	values url.Values
	mistakes
}

func parseQuery(r *http.Request) *query { return &query{values: r.URL.Query()} }

// checkQuery returns nil if a request has only parameters that its route knows, each once.
// Otherwise a caller might take an answer to another question for their own.
func checkQuery(r *http.Request, known string) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return malformed("the query cannot be read: parameters are percent-encoded, with & in between")
	}
	q, names := &query{values: values}, strings.Fields(known)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case len(names) == 0:
			q.refuse(name, "there is no such parameter: this has none")
		case !slices.Contains(names, name):
			q.refuse(name, "there is no such parameter: this has "+strings.Join(names, ", "))
		case len(values[name]) > 1:
			q.refuse(name, "is given more than once")
		}
	}
	return q.err()
}

// text returns a parameter; absent means empty.
func (q *query) text(name string) string {
	text := q.values.Get(name)
	if !storable(text) {
		q.refuse(name, unstorable)
		return ""
	}
	return text
}

// storable tells whether every ledger takes a text: PostgreSQL takes no NUL.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

const unstorable = "must be UTF-8 without NUL"

// maxInteger is the largest integer of a path or a query, and the largest that JavaScript counts
// exactly. No counter gets that far, and adding to it does not overflow.
const maxInteger = 1<<53 - 1

// parseInteger reads an integer of 0 to maxInteger, in digits and without leading zeros:
// each has only one text.
func parseInteger(text string) (n int64, ok bool) {
	if text == "" || len(text) > 1 && text[0] == '0' || strings.IndexFunc(text, isNoDigit) >= 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= maxInteger
}

func isNoDigit(c rune) bool { return c < '0' || '9' < c }

// integer returns a parameter that is an integer of least to most.
func (q *query) integer(name string, least, most int64) int64 {
	n, ok := parseInteger(q.values.Get(name))
	if !ok || n < least || n > most {
		q.refuse(name, fmt.Sprintf("must be an integer of %d to %d, in digits and without leading zeros", least, most))
	}
	return n
}

// number returns a parameter that is an integer; absent, or empty, means 0.
func (q *query) number(name string) int64 {
	if q.text(name) == "" {
		return 0
	}
	return q.integer(name, 0, maxInteger)
}

// positive returns a parameter that is an integer of at least 1; absent means 0.
func (q *query) positive(name string) int64 {
	if !q.values.Has(name) {
		return 0
	}
	return q.integer(name, 1, maxInteger)
}

// place returns the place in line that a parameter names; absent means none.
func (q *query) place() (at firstcome.Ticket) {
	text, ok := q.given("place")
	if !ok {
		return at
	}
	at = ticketOf(text)
	if at.Generation < 1 || at.Number < 1 || strings.Count(text, ".") != 1 {
		q.refuse("place", "must be the generation and the ticket of the answer to the claim, with a point between them, like 1.3")
	}
	return at
}

// limit returns how many items the page may have; absent, or empty, means the default.
func (q *query) limit() int {
	if q.text("limit") == "" {
		return defaultLimit
	}
	return int(q.integer("limit", 1, maxLimit))
}

// pathNumber returns a part of the path as an integer of at least 1. Anything else names nothing.
func pathNumber(r *http.Request, name string) (int64, error) {
	n, ok := parseInteger(r.PathValue(name))
	if !ok || n < 1 {
		return 0, notFound()
	}
	return n, nil
}

// parsed returns a parameter as parse reads it; absent means "".
func parsed[T ~string](q *query, name string, parse func(string) (T, error)) (value T) {
	text, ok := q.given(name)
	if !ok {
		return ""
	}
	value, err := parse(text)
	if err != nil {
		q.refuse(name, err.Error())
	}
	return value
}

// given returns a parameter, and whether it is there: if it is there but empty it chooses nothing,
// and must not choose all.
func (q *query) given(name string) (text string, ok bool) {
	return q.values.Get(name), q.values.Has(name)
}

// included tells whether the caller also asks for what a parameter names.
func (q *query) included(name string) bool {
	switch q.text(name) {
	case "include":
		return true
	case "", "exclude":
	default:
		q.refuse(name, `must be "include" or "exclude"`)
	}
	return false
}

// flag tells whether a parameter, which must be 1 or absent, is there.
func (q *query) flag(name string) bool {
	text, ok := q.given(name)
	if ok && text != "1" {
		q.refuse(name, "must be 1")
	}
	return ok
}

// zone returns a parameter that names a time zone; absent means UTC, whatever the server's own is.
func (q *query) zone(name string) *time.Location {
	text, ok := q.given(name)
	if !ok {
		return time.UTC
	}
	zone, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		q.refuse(name, "must be the name of a time zone, like Asia/Seoul")
		return time.UTC
	}
	return zone
}

// pageOf returns at most this many of the items found, and where the rest begins: after the place of the last one
// returned. Asking the ledger for one more than a page shows whether there is a rest; nil says that there is none.
func pageOf[T, P any](found []T, most int, place func(T) P) (page []T, next *string) {
	if len(found) <= most {
		return found, nil
	}
	last := fmt.Sprint(place(found[most-1]))
	return found[:most], &last
}

// writeList answers with a page of a list.
func writeList[T, W any](w http.ResponseWriter, found []T, next *string, wire func(T) W) error {
	list := client.List[W]{Items: make([]W, len(found)), Next: next}
	for n, item := range found {
		list.Items[n] = wire(item)
	}
	return writeJSON(w, http.StatusOK, list)
}

// optional returns a value as the wire has it, where the zero value is absent.
func optional[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// mistakes are what is wrong with a request's fields. One answer tells all of them.
type mistakes struct {
	all        []client.FieldError
	unreadable bool // one of them has the wrong type: 400 instead of 422
}

// maxMistakes bounds an answer: as many as a direct issue has users.
const maxMistakes = 1000

// refuse notes a field that can be read but is not allowed.
func (m *mistakes) refuse(field, reason string) {
	m.all = append(m.all, client.FieldError{Field: field, Reason: reason})
}

// require notes a field that is missing.
func (m *mistakes) require(field string) { m.refuse(field, "is required") }

// mistype notes a field with the wrong JSON type.
func (m *mistakes) mistype(field, want string) {
	m.refuse(field, "must be "+want)
	m.unreadable = true
}

// names tells whether a mistake of a field is noted.
func (m *mistakes) names(field string) bool {
	return slices.ContainsFunc(m.all, func(e client.FieldError) bool { return e.Field == field })
}

// err returns the answer that tells all of them; nil if there are none.
func (m *mistakes) err() error {
	if len(m.all) == 0 {
		return nil
	}
	all := m.all
	if len(all) > maxMistakes {
		more := client.FieldError{Reason: "and " + strconv.Itoa(len(all)-maxMistakes) + " more mistakes"}
		all = append(all[:maxMistakes:maxMistakes], more)
	}
	if !m.unreadable {
		return notAllowed(all...)
	}
	p := newProblem(malformedField, "a field has the wrong type: see errors")
	p.Errors = all
	return p
}
