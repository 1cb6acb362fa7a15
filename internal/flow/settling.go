package flow

import (
	"container/heap"
	"slices"
)

// settling is what is known of a campaign for which somebody waits.
type settling struct {
	waiters waiters
	known   bool // nobody waits for the next reading but by the clock
	// Settled is the latest that was learned. If its Since is not 0, it does not say
	// which numbers are unrecorded.
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

// learn takes over what is settled, if it is not older than what is known, and answers
// who waits for it: where which numbers are unrecorded is not said of all, those who
// were asked for. It does not matter what was missed.
func (s *settling) learn(news Settled, asked []*waiter) {
	switch {
	case news.Through < s.Through || news.Order < s.Order:
		return
	case news.Since == 0:
		s.Settled = news
	case s.Since == 0 && s.Order == news.Order: // then which are unrecorded is known
		s.Through, s.Epoch = news.Through, max(s.Epoch, news.Epoch)
	default:
		s.Settled = Settled{Through: news.Through, Order: news.Order, Since: news.Since, Epoch: news.Epoch}
		for _, w := range asked {
			if w.place >= 0 && w.number <= news.Through {
				heap.Remove(&s.waiters, w.place)
				w.answer(news)
			}
		}
	}
	s.answer()
}

// answer answers who waits for numbers that are settled, if it is known how.
func (s *settling) answer() {
	for s.Since == 0 && s.due() {
		heap.Pop(&s.waiters).(*waiter).answer(s.Settled)
	}
}

// due tells whether anybody waits for a number that is settled.
func (s *settling) due() bool { return len(s.waiters) > 0 && s.waiters[0].number <= s.Through }

// answer says how the waiter's number is settled.
func (w *waiter) answer(s Settled) {
	if slices.Contains(s.Unrecorded, w.number) || w.epoch != 0 && w.epoch < s.Epoch {
		w.done <- ErrUnrecorded
	} else {
		w.done <- nil
	}
}
