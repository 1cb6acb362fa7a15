package issue

import (
	"container/heap"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/wait"
)

// callers are all callers who wait for coupons of one campaign. Its Waiter's mutex guards it.
type callers struct {
	signal  chan struct{} // has a buffer of one: a call is due, or no call is left
	through int64         // the number up to which the campaign is drained, as read from the gate
	hinted  int64         // the same by messages, which may be forged
	early   early         // calls whose numbers are not drained, or for which the gate did not answer
	due     []*waiting    // calls whose numbers are drained, and about which the gate must be asked
	asked   int           // calls about which the gate is being asked
}

// A waiting is one call of Wait.
type waiting struct {
	coupon  firstcome.Coupon
	callers *callers
	index   int        // index in early, or -1
	left    bool       // the caller no longer waits
	done    chan error // has a buffer for the one answer
}

func (c *callers) add(w *waiting) {
	heap.Push(&c.early, w)
	c.ripen(max(c.through, c.hinted))
}

func (c *callers) leave(w *waiting) {
	if w.left = true; w.index >= 0 {
		heap.Remove(&c.early, w.index)
		wait.Wake(c.signal)
	}
}

// drained notes how far the campaign is drained, as read from the gate.
func (c *callers) drained(through int64) {
	c.through = max(c.through, through)
	c.ripen(through)
}

// hint notes how far the campaign is drained by a message. Any client that may publish on Redis can forge one. So a message is a reason to ask the
// gate, and no answer.
func (c *callers) hint(through int64) {
	c.hinted = max(c.hinted, through)
	c.ripen(through)
}

// ripen moves the calls whose numbers are drained from early to due.
func (c *callers) ripen(through int64) {
	for len(c.early) > 0 && c.early[0].coupon.Number <= through {
		c.due = append(c.due, heap.Pop(&c.early).(*waiting))
	}
	if len(c.due) > 0 {
		wait.Wake(c.signal)
	}
}

// recorded answers the calls for coupons that are in the ledger.
func (c *callers) recorded(coupons []firstcome.Coupon) {
	users := make(map[int64]firstcome.UserID, len(coupons))
	for _, k := range coupons {
		users[k.Number] = k.User
	}
	var are []*waiting
	for _, w := range c.early {
		if user, is := users[w.coupon.Number]; is && user == w.coupon.User {
			are = append(are, w)
		}
	}
	for _, w := range are {
		heap.Remove(&c.early, w.index)
		w.done <- nil
	}
	if len(are) > 0 {
		wait.Wake(c.signal) // perhaps no call is left
	}
}

// ask returns the calls about which the gate must be asked now.
func (c *callers) ask() (due []*waiting) {
	for _, w := range c.due {
		if !w.left {
			due = append(due, w)
		}
	}
	c.due, c.asked = nil, len(due)
	return due
}

// told answers the calls about which the gate was asked. After an error they wait on. So does a call whose number only a message reported as drained.
func (c *callers) told(due []*waiting, has []bool, err error) {
	c.asked = 0
	for n, w := range due {
		switch {
		case w.left:
		case err != nil, !has[n] && w.coupon.Number > c.through:
			heap.Push(&c.early, w)
		case has[n]:
			w.done <- nil
		default:
			w.done <- ErrUnrecorded
		}
	}
}

// calls returns how many calls wait.
func (c *callers) calls() int { return len(c.early) + len(c.due) + c.asked }

// early is a heap of calls by number.
type early []*waiting

func (e early) Len() int           { return len(e) }
func (e early) Less(a, b int) bool { return e[a].coupon.Number < e[b].coupon.Number }
func (e early) Swap(a, b int) {
	e[a], e[b] = e[b], e[a]
	e[a].index, e[b].index = a, b
}

// Push implements heap.Interface.
func (e *early) Push(x any) {
	one := x.(*waiting)
	one.index = len(*e)
	*e = append(*e, one)
}

// Pop implements heap.Interface.
func (e *early) Pop() any {
	all := *e
	last := all[len(all)-1]
	all[len(all)-1] = nil
	*e, last.index = all[:len(all)-1], -1
	return last
}
