// Package audit checks firstcome's promises afterwards.
//
// [Ledger] runs [Queries] on a campaign's rows, and checks what SQL cannot. [Other] does the same for rows that belong to no campaign. [Gate]
// compares the holders of coupons at a remote gate with the ledger. [Answers] compares the answers that clients got with the coupons that the server
// has at the end. [Topic] compares a topic of facts with the ledger. None of them repairs anything: a breach is for people to read.
//
// A value that the ledger has only once cannot be compared with anything: docs/operate.md lists these values.
//
// # Promises
//
// A breach names the promise that it breaks: P1 to P10 of the README, or one of the things that these rest on:
//
// changes (numbered without a gap, in the order of their times, and matching the campaign's row), counters (of the campaign's row), facts (without
// gaps, one for each issue and void), identity (ids and codes are well-formed and derived from the secret), letters (the columns of a dead letter
// agree), log (each change has its line in the audit log), keys (each API key does too), gate (it matches the ledger), unreadable (a row that cannot
// be read), books (the claims explain which coupons exist).
package audit

import (
	"fmt"
	"maps"
	"slices"
)

// A Breach is a broken promise.
type Breach struct {
	Promise string `json:"promise"`         // P1 to P10, or what they rest on: see the package comment
	Query   string `json:"query,omitempty"` // the name of the query that found it; empty if no query did
	Text    string `json:"text"`
}

// maxShown is how many breaches of one promise keep their text: enough to see the pattern, on one screen.
const maxShown = 10

// Breaches are the breaches that an audit found. The zero value is empty.
type Breaches struct {
	Total int64            `json:"total"`
	Count map[string]int64 `json:"count,omitempty"` // by promise
	Shown []Breach         `json:"shown,omitempty"` // the first 10 of each promise
}

// Promises returns the broken promises, sorted.
func (b *Breaches) Promises() []string {
	return slices.Sorted(maps.Keys(b.Count))
}

func (b *Breaches) add(promise, format string, args ...any) { b.addBy("", promise, format, args...) }

// addBy adds a breach that a query found.
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
