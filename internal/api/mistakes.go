package api

import (
	"slices"
	"strconv"

	"github.com/firstcome/firstcome/client"
)

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
