package flow_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome/internal/flow"
)

// TestWhoWaitsForANumberThatWasReplayedIsNotToldWhatWasTrueBefore has the gate told that number 3
// was replayed, and a node that knows less, or hears of what was before.
func TestWhoWaitsForANumberThatWasReplayedIsNotToldWhatWasTrueBefore(t *testing.T) {
	before := flow.Settled{Through: 5, Order: 2, Unrecorded: []int64{3}}
	after := flow.Settled{Through: 5, Order: 3, Since: 3}
	for name, waits := range map[string]func(*board, *flow.Recorded) *answer{
		"of what others were told": func(b *board, r *flow.Recorded) *answer {
			b.set("c", before)
			b.say("c", before)
			b.set("c", after)
			return wait(r, "c", 3)
		},
		"a message is late": func(b *board, r *flow.Recorded) *answer {
			b.set("c", after)
			letGo := b.hold()
			defer letGo()
			a := wait(r, "c", 3)
			b.say("c", before)
			return a
		},
		"a reading began before": func(b *board, r *flow.Recorded) *answer {
			b.set("c", before)
			letGo := b.hold()
			defer letGo()
			time.Sleep(60 * time.Millisecond) // until it is read for number 9
			b.set("c", after)
			return wait(r, "c", 3)
		},
		"a reading is older than a message": func(b *board, r *flow.Recorded) *answer {
			b.set("c", before)
			letGo := b.hold()
			defer letGo()
			a := wait(r, "c", 3)
			time.Sleep(60 * time.Millisecond) // until it is read for number 3
			b.set("c", after)
			b.say("c", after)
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBoard()
				r := recorded(t, b)
				other := wait(r, "c", 9)
				a := waits(b, r)
				time.Sleep(60 * time.Millisecond)
				same(t, "after a reading", []string{"recorded", "waiting"}, all(a, other))
				b.say("c", flow.Settled{Through: 9, Order: 3})
				same(t, "at last", "recorded", other.is())
			})
		})
	}
}

// TestWhoWaitsForADeadLetterIsToldByOneReading has a recorder go on during each reading.
func TestWhoWaitsForADeadLetterIsToldByOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.settle("c", 5, 3)
		goOn := make(chan struct{})
		b.during = func() { <-goOn }
		r := recorded(t, b)
		letter, last := wait(r, "c", 3), wait(r, "c", 9)
		b.tell("c", 6, 3)
		goOn <- struct{}{} // one reading, and no other
		same(t, "after it", []string{"unrecorded", "waiting"}, all(letter, last))
		close(goOn)
		b.tell("c", 9, 3)
		same(t, "at last", "recorded", last.is())
	})
}

// TestWhoWaitsForADeadLetterKeepsNobodyElseWaiting has one wait while the gate is being read.
func TestWhoWaitsForADeadLetterKeepsNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.set("c", flow.Settled{Order: 1, Since: 1})
		letGo := b.hold()
		r := recorded(t, b)
		next, last := wait(r, "c", 4), wait(r, "c", 9)
		now := flow.Settled{Through: 5, Order: 2, Unrecorded: []int64{3}}
		b.set("c", flow.Settled{Through: 5, Order: 2, Since: 2, Unrecorded: []int64{3}})
		letter := wait(r, "c", 3)
		b.say("c", now)
		letGo() // that reading is older than the message
		same(t, "at once", []string{"unrecorded", "recorded", "waiting"}, all(letter, next, last))
		b.say("c", flow.Settled{Through: 9, Order: 2})
		same(t, "at last", "recorded", last.is())
	})
}

// TestOfManyDeadLettersThoseAreReadThatSomebodyWaitsFor has more of them than are told.
func TestOfManyDeadLettersThoseAreReadThatSomebodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		many := func(through, order int64, not ...int64) flow.Settled {
			return flow.Settled{Through: through, Order: order, Since: order, Unrecorded: not}
		}
		b.set("c", many(4, 7, 3))
		r := recorded(t, b)
		coupon, letter, next, last := wait(r, "c", 2), wait(r, "c", 3), wait(r, "c", 5), wait(r, "c", 6)
		same(t, "at first", []string{"recorded", "unrecorded", "waiting", "waiting"}, all(coupon, letter, next, last))
		b.set("c", many(5, 8, 3, 5))
		b.messages <- message{"c", flow.Settled{Through: 5, Order: 8, Since: 8}}
		synctest.Wait()
		same(t, "who waits", []string{"unrecorded", "waiting"}, all(next, last))
		same(t, "who comes then", []string{"unrecorded", "recorded", "unrecorded"}, all(wait(r, "c", 3), wait(r, "c", 4), wait(r, "c", 5)))
		before := b.readings()
		b.set("c", many(5, 9, 5))
		b.say("c", flow.Settled{Through: 5, Order: 9, Unrecorded: []int64{5}}) // they are few again
		same(t, "number 3", "recorded", wait(r, "c", 3).is())
		same(t, "readings", before, b.readings())
		same(t, "number 5", "unrecorded", wait(r, "c", 5).is())
		b.messages <- message{"c", flow.Settled{Through: 6, Order: 9}}
		same(t, "the last", "recorded", last.is())
	})
}
