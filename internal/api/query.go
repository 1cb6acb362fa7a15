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
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/zone"
)

// How many items a page has.
const (
	defaultLimit = 100
	maxLimit     = 500
)

// A query reads a request's parameters and collects mistakes.
type query struct {
	values url.Values
	mistakes
}

func parseQuery(r *http.Request) *query { return &query{values: r.URL.Query()} }

// checkQuery returns an error if a request has a parameter that its route does not have, or has one twice. If firstcome
// ignored such a parameter, the caller would mistake the answer for the one they asked for.
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

// text returns a parameter, or "" if it is absent.
func (q *query) text(name string) string {
	text := q.values.Get(name)
	if !storable(text) {
		q.refuse(name, unstorable)
		return ""
	}
	return text
}

// storable reports whether every ledger can store a text. PostgreSQL cannot store NUL.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

const unstorable = "must be UTF-8 without NUL"

// maxInteger is the largest integer in a path or a query, and the largest that JavaScript represents exactly. No counter
// reaches it, and adding to it does not overflow int64.
const maxInteger = 1<<53 - 1

// parseInteger reads an integer from 0 to maxInteger, in digits without leading zeros. So each integer has only one text.
func parseInteger(text string) (n int64, ok bool) {
	if text == "" || len(text) > 1 && text[0] == '0' || strings.IndexFunc(text, isNoDigit) >= 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= maxInteger
}

func isNoDigit(c rune) bool { return c < '0' || '9' < c }

// integer returns a parameter that must be an integer from least to most.
func (q *query) integer(name string, least, most int64) int64 {
	n, ok := parseInteger(q.values.Get(name))
	if !ok || n < least || n > most {
		q.refuse(name, fmt.Sprintf("must be an integer of %d to %d, in digits and without leading zeros", least, most))
	}
	return n
}

// number returns a parameter that must be an integer, or 0 if it is absent or empty.
func (q *query) number(name string) int64 {
	if q.text(name) == "" {
		return 0
	}
	return q.integer(name, 0, maxInteger)
}

// positive returns a parameter that must be an integer of at least 1, or 0 if it is absent.
func (q *query) positive(name string) int64 {
	if !q.values.Has(name) {
		return 0
	}
	return q.integer(name, 1, maxInteger)
}

// place returns the ticket in the parameter place, or the zero Ticket if it is absent.
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

// limit returns the parameter limit, or defaultLimit if it is absent or empty.
func (q *query) limit() int {
	if q.text("limit") == "" {
		return defaultLimit
	}
	return int(q.integer("limit", 1, maxLimit))
}

// pathNumber returns a path segment as an integer of at least 1. For any other text it returns a 404.
func pathNumber(r *http.Request, name string) (int64, error) {
	n, ok := parseInteger(r.PathValue(name))
	if !ok || n < 1 {
		return 0, notFound()
	}
	return n, nil
}

// parsed returns a parameter as parse returns it, or "" if it is absent.
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

// given returns a parameter, and reports whether it is present. Filters need this: one that is present but empty must not
// select everything.
func (q *query) given(name string) (text string, ok bool) {
	return q.values.Get(name), q.values.Has(name)
}

// included reports whether a parameter is "include". It may also be "exclude", empty or absent.
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

// flag reports whether a parameter is present. It must be 1 or absent.
func (q *query) flag(name string) bool {
	text, ok := q.given(name)
	if ok && text != "1" {
		q.refuse(name, "must be 1")
	}
	return ok
}

// zone returns the time zone that a parameter names, or UTC if it is absent. The server's own zone has no effect.
func (q *query) zone(name string) *time.Location {
	text, ok := q.given(name)
	if !ok {
		return time.UTC
	}
	named, err := zone.Load(text)
	if err != nil {
		q.refuse(name, "must be the name of a time zone, like Asia/Seoul")
		return time.UTC
	}
	return named
}

// pageOf returns the first most items found. If there are more, next is the place of the last item returned, where the next
// page continues; otherwise it is nil. The caller must read most+1 items from the ledger.
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

// optional returns a pointer to a value, or nil for the zero value.
func optional[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// mistakes collects the errors of a request's fields. One answer lists them all.
type mistakes struct {
	all        []client.FieldError
	unreadable bool // one of them has the wrong type: 400 instead of 422
}

// maxMistakes limits how many errors an answer lists: one per user of a direct issue.
const maxMistakes = 1000

// refuse adds an error of a field that has the right type but is not allowed.
func (m *mistakes) refuse(field, reason string) {
	m.all = append(m.all, client.FieldError{Field: field, Reason: reason})
}

// require adds an error of a missing field.
func (m *mistakes) require(field string) { m.refuse(field, "is required") }

// mistype adds an error of a field with the wrong JSON type.
func (m *mistakes) mistype(field, want string) {
	m.refuse(field, "must be "+want)
	m.unreadable = true
}

// names reports whether a field has an error.
func (m *mistakes) names(field string) bool {
	return slices.ContainsFunc(m.all, func(e client.FieldError) bool { return e.Field == field })
}

// err returns the answer that lists the errors, or nil if there are none.
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
