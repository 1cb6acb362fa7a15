//go:build !check

package sim

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
)

// stands is how a script of a line begins: a has the coupon, and b is first in line.
var stands = script{joins("a", "n1"), hears("a"), joins("b", "n1"), hears("b"), passes(time.Second)}

// interleavings are those of a logged line that a seed seldom makes.
var interleavings = map[string]script{
	"a node stands still between join and append": {
		holds("n1 asks the log: to append"), joins("c", "n1"), waitsFor("n1 asks the log: to append c"), loses,
		frees("n1 asks the log: to append"), passes(time.Second), loses, joins("c", "n2"), hears("c"),
	},
	"a node stands still between append and check": {
		holds("n1 asks the gate: whether epoch"), joins("c", "n1"), waitsFor("n1 asks the gate: whether epoch"), loses,
		frees("n1 asks the gate: whether epoch"), joins("c", "n2"), hears("c"), loses,
	},
	"a user is on two nodes": {
		holds("n1 asks the log: to append"), joins("c", "n1"), waitsFor("n1 asks the log: to append c"),
		gives("c"), joins("c", "n2"), hears("c"), frees("n1 asks the log: to append"), loses, asksPlace("c", "n1"), hears("c"),
	},
	"a leave is cut off before its record": {
		holds("n1 asks the log: to append"), leaves("b", "n1"), waitsFor("n1 asks the log: to append b"), loses,
		frees("n1 asks the log: to append"), hears("b"), leaves("b", "n2"), hears("b"), loses,
	},
	"left":                    {leaves("b", "n1"), hears("b"), loses},
	"left, then joined again": {leaves("b", "n1"), hears("b"), joins("b", "n2"), hears("b"), loses},
	"issued directly, and voided": {
		holds("n1 asks the gate: to serve"), holds("n2 asks the gate: to serve"),
		sets("one coupon more", func(terms *firstcome.Terms) { terms.Quantity = 2 }), issues("b"), voids(2), loses,
	},
	"served while the gate's time stands still, and voided": {
		jumps(-10 * time.Second), joins("c", "n1"), hears("c"),
		sets("two coupons more", func(terms *firstcome.Terms) { terms.Quantity = 3 }), passes(time.Second), voids(3), loses,
	},
	"Kafka is away": {
		away, joins("c", "n1"), hears("c"), forgets, passes(3 * time.Second), answers, recovers, asksPlace("b", "n2"), hears("b"), joins("c", "n2"), hears("c"), loses,
	},
	"told between the order of a rebuild and the freeze": {
		holds("n2 asks the gate: to freeze"), ordersRebuild(recovery.Order{}), waitsFor("n2 asks the gate: to freeze"),
		joins("c", "n1"), hears("c"), frees("n2 asks the gate: to freeze"), hears(owner), recovers,
	},
	"logged anew, and forgotten": {
		joins("c", "n1"), hears("c"), remakes, ordersRebuild(recovery.Order{WithoutLog: true}), hears(owner), joins("d", "n2"), hears("d"), loses, loses,
	},
	"issued directly by a clock that is behind the log, and voided": {
		jumps(10 * time.Second), joins("c", "n1"), hears("c"), passes(time.Second), joins("d", "n1"), hears("d"), jumps(-10 * time.Second), loses,
		holds("n1 asks the gate: to serve"), holds("n2 asks the gate: to serve"),
		sets("one coupon more", func(terms *firstcome.Terms) { terms.Quantity = 2 }), issues("c"), voids(2), loses,
	},
	"all are sent away meanwhile": {
		holds("n1 asks the log: to append"), joins("c", "n1"), waitsFor("n1 asks the log: to append c"),
		sets("no waitlist", func(terms *firstcome.Terms) { terms.Waitlist = false }), sets("a waitlist", func(terms *firstcome.Terms) { terms.Waitlist = true }),
		joins("d", "n2"), hears("d"), frees("n1 asks the log: to append"), hears("c"), loses,
	},
	"older keys are put back after a place was told": {
		keeps, joins("c", "n1"), hears("c"), restores, joins("d", "n1"), rebuilt(1), hears("d"), asksPlace("c", "n2"), hears("c"), joins("d", "n2"), hears("d"),
	},
	"older keys are put back after a change that another node made": {
		keeps, sets("no waitlist", func(terms *firstcome.Terms) { terms.Waitlist = false }), passes(2 * time.Second),
		restores, joins("c", "n1"), rebuilt(1), hears("c"), asksPlace("b", "n1"), hears("b"),
	},
	"two recoveries":              {loses, joins("c", "n2"), hears("c"), loses},
	"the ledger forgets an epoch": {saves, loses, joins("c", "n2"), hears("c"), putsBack, loses},
	"the ledger forgets an epoch in which all left": {
		leaves("b", "n1"), hears("b"), saves, loses, joins("c", "n2"), hears("c"), leaves("c", "n2"), hears("c"), putsBack, joins("c", "n1"), hears("c"), loses,
	},
	"the ledger forgets where an epoch begins, and two users have one ticket": {
		saves, holds("n1 asks the log: to append"), joins("c", "n1"), waitsFor("n1 asks the log: to append c"), loses,
		frees("n1 asks the log: to append"), passes(time.Second), joins("d", "n2"), hears("d"), putsBack, loses,
	},
}

// TestTheInterleavingsOfALoggedLineKeepThePromises runs each script with some orders of the events that it does not fix.
func TestTheInterleavingsOfALoggedLineKeepThePromises(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(interleavings)) {
		t.Run(name, func(t *testing.T) {
			for from := range uint64(10) {
				b := &bug{kind: kind{logs: true, putsBack: from%2 == 1}, script: slices.Concat(stands, interleavings[name])}
				if breaches, trace := schedule(t, from, b); len(breaches) > 0 {
					t.Fatal(told(t, from, breaches, trace))
				}
			}
		})
	}
}
