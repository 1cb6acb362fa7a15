package conform

import "time"

// An event is an operation of a history with its answer, and when it was asked and
// answered, since the start.
type event struct {
	op         op
	result     result
	call, back time.Duration
}

// A place in a search is which events have come, and the state behind them.
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
}

// ordered tells whether events have such an order.
func ordered(first state, events []event) bool {
	s := search{events, map[place]bool{}}
	return s.from(place{state: first})
}

// from tells whether what has not come at a place has an order.
func (s *search) from(p place) bool {
	next, all := s.next(p)
	for len(next) > 0 {
		n := next[0]
		next = next[1:]
		if e := s.events[n]; !e.result.unknown {
			if after, right := p.state.step(e.op, e.result); right && after == p.state {
				p = p.behind(n, after)
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

// released tells whether there is an order if what is held at a place is so no longer.
func (s *search) released(p place) bool {
	if p.state.held == 0 {
		return false
	}
	p.state.held = 0
	return s.from(p)
}

// changed tells whether there is an order with one of the events that may come next, of
// which all change something.
func (s *search) changed(p place) bool {
	may, _ := s.next(p)
	for _, n := range may {
		for _, after := range p.state.steps(s.events[n].op, s.events[n].result) {
			if s.from(p.behind(n, after)) {
				return true
			}
		}
	}
	return false
}
