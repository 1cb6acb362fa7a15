package flow

import (
	"container/heap"
	"slices"

	"github.com/firstcome/firstcome"
)

// settling is what is known of a campaign for which somebody waits.
type settling struct {
	waiters waiters
	known   bool // nobody waits for the next reading but by the clock
	// due are those whose numbers are settled as coupons, until the gate is asked whose they
	// are; asked is of how many it is asked.
	due   []*waiter
	asked int
	// Settled is the latest that was learned. If its Since is not 0, it does not say
	// which numbers are unrecorded. Those that it names may be recorded by now.
	Settled
}

// A waiter is one call of Wait.
type waiter struct {
	coupon firstcome.Coupon // if its epoch is 0, that is not known
	place  int              // in the heap; -1: its number is settled
	left   bool             // nobody waits any more
	done   chan error       // has room for the one answer
}

// waiters are a heap by number.
type waiters []*waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(a, b int) bool { return w[a].coupon.Number < w[b].coupon.Number }
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
// who waits for it. It does not matter what was missed. asked are those for whom it was read,
// who waited before that began.
func (s *settling) learn(news Settled, asked []*waiter) {
	if news.Order >= s.Order {
		for _, w := range asked {
			if w.place >= 0 && w.coupon.Number <= news.Through {
				heap.Remove(&s.waiters, w.place)
				s.settle(w, news)
			}
		}
	}
	switch {
	case news.Through < s.Through || news.Order < s.Order:
		// Who waits again because the gate did not say whose a number is does not wait for news.
	case news.Since == 0:
		s.Settled = news
	case s.Since == 0 && s.Order == news.Order: // then which are unrecorded is known
		s.Through, s.Epoch = news.Through, max(s.Epoch, news.Epoch)
	default:
		s.Settled = Settled{Through: news.Through, Order: news.Order, Since: news.Since, Epoch: news.Epoch}
	}
	s.answer()
}

// answer takes those out who wait for numbers that are settled, if it is known how, up to the
// first that is known as unrecorded. It may have been replayed before its waiter came, and that
// may not be heard of yet: so it and those behind it wait for a reading.
func (s *settling) answer() {
	for s.Since == 0 && s.reached() && !slices.Contains(s.Unrecorded, s.waiters[0].coupon.Number) {
		s.settle(heap.Pop(&s.waiters).(*waiter), s.Settled)
	}
}

// reached tells whether anybody waits for a number that is settled.
func (s *settling) reached() bool {
	return len(s.waiters) > 0 && s.waiters[0].coupon.Number <= s.Through
}

// settle answers a waiter whose number is no coupon in the ledger. If it is one, the gate is
// asked first whether it is the waiter's: one that lost its latest decisions gives their numbers again.
func (s *settling) settle(w *waiter, as Settled) {
	if slices.Contains(as.Unrecorded, w.coupon.Number) || w.coupon.Epoch != 0 && w.coupon.Epoch < as.Epoch {
		w.done <- ErrUnrecorded
	} else {
		s.due = append(s.due, w)
	}
}

// ask returns those of whom the gate is to be asked now, if it is not being asked.
func (s *settling) ask() (due []*waiter) {
	if s.asked > 0 {
		return nil
	}
	due = slices.DeleteFunc(s.due, func(w *waiter) bool { return w.left })
	s.due, s.asked = nil, len(due)
	return due
}

// told takes over what the gate said of those that it was asked of. After an error they wait on.
func (s *settling) told(due []*waiter, has []bool, err error) {
	s.asked = 0
	for n, w := range due {
		switch {
		case w.left:
		case err != nil:
			heap.Push(&s.waiters, w)
		case has[n]:
			w.done <- nil
		default:
			w.done <- ErrUnrecorded
		}
	}
}

// calls returns how many wait.
func (s *settling) calls() int { return len(s.waiters) + len(s.due) + s.asked }
