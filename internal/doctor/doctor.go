// Package doctor has the words in which a room says what it found of a server, or of this
// machine: each thing with a grade, and with what mends it.
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
	Warn Grade = "WARN" // it works, and something is not as it should be, or cannot be known
	Fail Grade = "FAIL" // serve would not start, or would not keep a promise
)

// A Finding is what there is to say of one thing, and what mends it. Its JSON is what
// firstcome doctor prints.
type Finding struct {
	Grade Grade  `json:"grade"`
	What  string `json:"what"`
	Found string `json:"found"`
	Fix   string `json:"fix,omitempty"` // empty where there is nothing to mend
}

// Findings are what an examination found, in its order. The zero value is ready for use.
type Findings []Finding

// Add adds a finding of a thing: found is a format with its arguments, as of
// fmt.Sprintf. What is OK needs no fix, so that its fix is dropped.
func (f *Findings) Add(grade Grade, what, fix, found string, args ...any) {
	if grade == OK {
		fix = ""
	}
	*f = append(*f, Finding{Grade: grade, What: what, Found: fmt.Sprintf(found, args...), Fix: fix})
}

// Hold adds a finding that is OK if a condition holds, and else has a grade.
func (f *Findings) Hold(condition bool, otherwise Grade, what, fix, found string, args ...any) {
	if condition {
		otherwise = OK
	}
	f.Add(otherwise, what, fix, found, args...)
}

// Failed tells whether any of the findings is a Fail.
func (f Findings) Failed() bool {
	return slices.ContainsFunc(f, func(one Finding) bool { return one.Grade == Fail })
}
