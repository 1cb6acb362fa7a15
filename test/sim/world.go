package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// A world is a schedule: whatever could happen next waits here as an event, and the seed picks one.
type world struct {
	*rand.Rand
	weather
	start time.Time
	trace strings.Builder

	mu      sync.Mutex // guards what follows
	pending []*event
	stall   []string // see bug
	held    []string // what begins so does not happen: see script
}

// A weather is how much goes wrong in a schedule, in percent of the steps.
type weather struct {
	lost    int // a question, or an answer, is lost; or a question arrives after its caller heard that it is lost
	crash   int // a node crashes
	freeze  int // a node stands still for a while
	clock   int // the gate's clock jumps
	lose    int // the gate's server restarts, or loses something
	patient int // time passes, though something else could happen
	calm    bool
}

// An event is something that could happen next. Its name says what, in plain words, and events of one name do the same.
type event struct {
	name string
	of   *node // who is frozen cannot hear of it; nil: nobody
	do   func()
}

func newWorld(r *rand.Rand) *world {
	some := func(most int) int { return r.IntN(2) * r.IntN(most+1) } // every other world has none of it
	return &world{
		Rand: r, start: time.Now(),
		weather: weather{lost: some(20), crash: some(3), freeze: some(3), clock: some(3), lose: some(6), patient: 1 + r.IntN(30)},
	}
}

// percent reports whether something happens that happens so often.
func (w *world) percent(often int) bool { return !w.calm && w.IntN(100) < often }

// stalls reports whether a node stands still at a question, which it does once.
func (w *world) stalls(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.stall) == 0 || !strings.HasPrefix(what, w.stall[0]) {
		return false
	}
	w.stall = w.stall[1:]
	return len(w.stall) == 0
}

// post has something be able to happen, unless it is of a node that is dead.
func (w *world) post(of *node, name string, do func()) {
	if of != nil && of.isDead() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, &event{name, of, do})
}

// later has something be able to happen after a while, or much later, when a gate may have been rebuilt.
func (w *world) later(name string, do func()) {
	after := time.Duration(w.IntN(1000_000)) * time.Microsecond
	if w.IntN(3) == 0 {
		after *= 12
	}
	time.AfterFunc(after, func() { w.post(nil, name, do) })
}

// say writes a line of the trace.
func (w *world) say(what ...any) {
	fmt.Fprintf(&w.trace, "%9.3fms  %s\n", float64(time.Since(w.start).Microseconds())/1000, show(what...))
}

// show puts things into words.
func show(what ...any) string { return strings.TrimSuffix(fmt.Sprintln(what...), "\n") }

// next takes the event that happens next, by the seed; nil if none can.
func (w *world) next(offers []*event) *event {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready := offers
	for _, e := range w.pending {
		if (e.of == nil || !e.of.frozen.Load()) && !slices.ContainsFunc(w.held, func(what string) bool { return strings.HasPrefix(e.name, what) }) {
			ready = append(ready, e)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	// Goroutines that the last event woke come here in any order.
	slices.SortStableFunc(ready, func(a, b *event) int { return strings.Compare(a.name, b.name) })
	chosen := ready[w.IntN(len(ready))]
	w.pending = slices.DeleteFunc(w.pending, func(e *event) bool { return e == chosen })
	return chosen
}

// pass lets time pass: nothing, a while, or so long that what waits for it gives up; if some node is stuck, also as long as that.
func (w *world) pass(stuck bool) {
	long := time.Duration(1+w.IntN(40_000)) * time.Microsecond
	switch n := w.IntN(20); {
	case n < 3 && stuck:
		long *= 300
	case n == 0:
		long *= 50
	case n < 5:
		long *= 6
	}
	w.say("time passes:", long)
	time.Sleep(long)
}

// drop removes a dead node's events. Some of its calls may still arrive.
func (w *world) drop(dead *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.pending, func(a, b *event) int { return strings.Compare(a.name, b.name) })
	w.pending = slices.DeleteFunc(w.pending, func(e *event) bool {
		return e.of == dead || e.of == nil && strings.HasPrefix(e.name, dead.name+" ") && w.IntN(2) == 0
	})
}
