package conform

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// An event is an operation of a history with its answer, and when it was asked and
// answered, since the start.
type event struct {
	op         op
	result     result
	call, back time.Duration
}

// A place in a search is which events have come, and the state after them.
type place struct {
	came  [clients * steps / 64]uint64
	state state
}

func (p *place) has(n int) bool { return p.came[n/64]&(1<<(n%64)) != 0 }

// behind returns the place when an event came that led to a state.
func (p place) behind(n int, s state) place {
	p.came[n/64] |= 1 << (n % 64)
	p.state = s
	return p
}

// A search is for an order of a history's events in which the rule, an event at a time,
// gives these answers, and in which whatever was answered before another was asked comes
// first. It is that of Wing and Gong (1993), which remembers where it has been, with one
// difference: an event that changes nothing comes as soon as its answer is right. What can
// follow is the same without it, so no order is missed; and it need not try all the orders
// of refusals that were waiting at the same time, which are too many on a machine that stops now and then.
type search struct {
	events []event
	been   map[place]bool
	order  []int // of those that have come
}

// ordered returns such an order of events, if they have one.
func ordered(first state, events []event) (order []int, found bool) {
	s := search{events: events, been: map[place]bool{}}
	found = s.from(place{state: first})
	return s.order, found
}

// confirmed reports whether porcupine, too, finds the answers right in an order, and each event
// in it between its question and its answer. All the orders of a history it cannot always try.
func confirmed(first state, events []event, order []int) bool {
	var operations []porcupine.Operation
	var now time.Duration
	for n, at := range order {
		e := events[at]
		if now = max(now, e.call); now > e.back {
			return false
		}
		operations = append(operations, porcupine.Operation{Input: e.op, Output: e.result, Call: int64(2 * n), Return: int64(2*n + 1)})
	}
	return len(order) == len(events) && porcupine.CheckOperations(rule(first).ToModel(), operations)
}

// rule is the campaign as one operation after the other.
func rule(first state) *porcupine.NondeterministicModel {
	return &porcupine.NondeterministicModel{
		Init: func() []any { return []any{first} },
		Step: func(before, input, output any) (all []any) {
			s := before.(state)
			after := s.steps(input.(op), output.(result))
			if s.quarantined > 0 {
				s.quarantined = 0
				after = append(after, s.steps(input.(op), output.(result))...)
			}
			for _, s := range after {
				all = append(all, s)
			}
			return all
		},
		Equal: func(a, b any) bool { return a.(state) == b.(state) },
	}
}

// from reports whether what has not come at a place has an order.
func (s *search) from(p place) bool {
	before := len(s.order)
	found := s.search(p)
	if !found {
		s.order = s.order[:before]
	}
	return found
}

func (s *search) search(p place) bool {
	next, all := s.next(p)
	for len(next) > 0 {
		n := next[0]
		next = next[1:]
		if e := s.events[n]; !e.result.unknown {
			if after, right := p.state.step(e.op, e.result); right && after == p.state {
				p = s.come(p, n, after)
				next, all = s.next(p)
			}
		}
	}
	if all || s.been[p] {
		return all
	}
	s.been[p] = true
	return s.released(p) || s.changed(p)
}

// come returns the place when an event came that led to a state.
func (s *search) come(p place, n int, after state) place {
	s.order = append(s.order, n)
	return p.behind(n, after)
}

// next returns which events may come next, and whether all have come.
func (s *search) next(p place) (may []int, all bool) {
	earliest := time.Duration(-1) // answer of those that have not come
	for n, e := range s.events {
		if !p.has(n) && (earliest < 0 || e.back < earliest) {
			earliest = e.back
		}
	}
	for n, e := range s.events {
		if !p.has(n) && e.call <= earliest {
			may = append(may, n)
		}
	}
	return may, earliest < 0
}

// released reports whether there is an order if what is quarantined at a place is so no longer.
func (s *search) released(p place) bool {
	if p.state.quarantined == 0 {
		return false
	}
	p.state.quarantined = 0
	return s.from(p)
}

// changed reports whether there is an order with one of the events that may come next, of
// which all change something.
func (s *search) changed(p place) bool {
	may, _ := s.next(p)
	for _, n := range may {
		for _, after := range p.state.steps(s.events[n].op, s.events[n].result) {
			before := len(s.order)
			if s.from(s.come(p, n, after)) {
				return true
			}
			s.order = s.order[:before]
		}
	}
	return false
}
