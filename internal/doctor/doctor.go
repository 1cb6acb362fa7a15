// Package doctor has the findings about a server or about this machine: each with a grade, and with a fix.
// Packages that examine a server report in its words.
package doctor

import (
	"fmt"
	"slices"
)

// A Grade says how bad a Finding is.
type Grade string

// The grades.
const (
	OK   Grade = "OK"
	Warn Grade = "WARN" // it works, but something is not as it should be, or could not be read
	Fail Grade = "FAIL" // to be corrected: serve would not start, or claims would be answered 503 or not be safe
)

// A Finding says what was found about one thing, and how to fix it. firstcome doctor prints it as JSON.
type Finding struct {
	Grade Grade  `json:"grade"`
	What  string `json:"what"` // also the code by which the console finds its Korean words
	Found string `json:"found"`
	Fix   string `json:"fix,omitempty"` // empty if there is nothing to fix
}

// Findings are what an examination found, in its order. The zero value is ready to use.
type Findings []Finding

// Add adds a finding about a thing. found and args are a format and its arguments, as for fmt.Sprintf. A
// finding that is OK needs no fix, so Add drops its fix.
func (f *Findings) Add(grade Grade, what, fix, found string, args ...any) {
	if grade == OK {
		fix = ""
	}
	*f = append(*f, Finding{Grade: grade, What: what, Found: fmt.Sprintf(found, args...), Fix: fix})
}

// Hold adds a finding with the grade OK if a condition holds, and with the grade otherwise if not.
func (f *Findings) Hold(condition bool, otherwise Grade, what, fix, found string, args ...any) {
	if condition {
		otherwise = OK
	}
	f.Add(otherwise, what, fix, found, args...)
}

// Failed reports whether any of the findings is a Fail.
func (f Findings) Failed() bool {
	return slices.ContainsFunc(f, func(one Finding) bool { return one.Grade == Fail })
}
