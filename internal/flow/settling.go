package flow

import (
	"container/heap"
	"slices"
)

// settling is what is known of a campaign for which somebody waits.
type settling struct {
	waiters waiters
	known   bool // it was read at least once
	Settled
}

// A waiter is one call of Wait.
type waiter struct {
	number int64
	epoch  int64      // of the gate that issued it; 0: not known
	place  int        // in the heap; -1: answered
	done   chan error // has room for the one answer
}

// waiters are a heap by number.
type waiters []*waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(a, b int) bool { return w[a].number < w[b].number }
func (w waiters) Swap(a, b int) {
	w[a], w[b] = w[b], w[a]
	w[a].place, w[b].place = a, b
}

// Push adds a waiter: see heap.Interface.
func (w *waiters) Push(x any) {
	one := x.(*waiter)
	one.place = len(*w)
	*w = append(*w, one)
}

// Pop takes the last one away: see heap.Interface.
func (w *waiters) Pop() any {
	all := *w
	last := all[len(all)-1]
	all[len(all)-1] = nil
	*w, last.place = all[:len(all)-1], -1
	return last
}

// learn takes over what is settled, if it is news, and answers who waits for it.
// Each Settled is complete, so it does not matter which ones were missed.
func (s *settling) learn(news Settled) {
	if news.Through >= s.Through {
		s.Settled = news
	}
	s.answer()
}

// answer answers who waits for numbers that are settled.
func (s *settling) answer() {
	for len(s.waiters) > 0 && s.waiters[0].number <= s.Through {
		w := heap.Pop(&s.waiters).(*waiter)
		if slices.Contains(s.Unrecorded, w.number) || w.epoch != 0 && w.epoch < s.Epoch {
			w.done <- ErrUnrecorded
		} else {
			w.done <- nil
		}
	}
}
