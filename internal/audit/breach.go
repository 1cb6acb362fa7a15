// Package audit holds what firstcome did against what it promises.
//
// [Ledger] runs [Queries] on a campaign's rows, and checks what SQL cannot see; [Other] does so with what is of no campaign. [Gate] reads who holds
// a coupon at a remote gate. [Answers] compares what clients were told with the coupons that the server has in the end. None
// repairs anything: a breach is for people to read.
//
// What a ledger says only once cannot be held against anything: the operator's manual lists it.
//
// # Promises
//
// A breach names the promise that it breaks: P1 to P9 as the design numbers
// them, or one of what those rest on: changes (numbered without a gap, in the order of their instants, and the
// campaign's row is what they make of it), counters (of the campaign's row), facts
// (dense, one for each issue and void), identity (ids and codes are well-formed
// and the secret's own), letters (dead letters say the same of their coupon in each column), log (each change has its line
// in the audit log), keys (so has each key), gate (it has what the ledger says it has), unreadable (a row that is there
// says nothing), books (the histories of server and clients agree about who asked at all).
package audit

import (
	"fmt"
	"maps"
	"slices"
)

// A Breach is a promise broken, and how.
type Breach struct {
	Promise string `json:"promise"`         // P1 to P9, or what they rest on
	Query   string `json:"query,omitempty"` // the name of the query that found it; empty: it was no query
	Text    string `json:"text"`
}

// maxShown is how many breaches of one promise are kept with their text: enough
// to see the pattern, on one screen.
const maxShown = 10

// Breaches are the breaches that an audit found. The zero value has none.
type Breaches struct {
	Total int64            `json:"total"`
	Count map[string]int64 `json:"count,omitempty"` // by promise
	Shown []Breach         `json:"shown,omitempty"` // the first 10 of each promise
}

// Promises returns the promises that were broken, sorted.
func (b *Breaches) Promises() []string {
	return slices.Sorted(maps.Keys(b.Count))
}

func (b *Breaches) add(promise, format string, args ...any) { b.addBy("", promise, format, args...) }

// addBy adds what a query found.
func (b *Breaches) addBy(query, promise, format string, args ...any) {
	if b.Count == nil {
		b.Count = map[string]int64{}
	}
	b.Total++
	b.Count[promise]++
	if b.Count[promise] <= maxShown {
		b.Shown = append(b.Shown, Breach{promise, query, fmt.Sprintf(format, args...)})
	}
}

// take adds other breaches.
func (b *Breaches) take(others *Breaches) {
	for _, shown := range others.Shown {
		b.addBy(shown.Query, shown.Promise, "%s", shown.Text)
		others.Count[shown.Promise]--
	}
	for promise, more := range others.Count {
		if more > 0 {
			b.Total += more
			b.Count[promise] += more
		}
	}
}
