package issue

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A claim is one caller's request, from arrival to answer.
type claim struct {
	user     firstcome.UserID
	direct   *gate.Order // the direct issue that it is part of; nil for an ordinary claim
	decision firstcome.Decision
	err      error
	done     chan struct{} // has a buffer for the one signal, so that answering never waits for the caller
}

// answer gives the claim its decision. The claim must not be touched afterwards.
func (c *claim) answer(d firstcome.Decision, err error) {
	c.decision, c.err = d, err
	c.done <- struct{}{}
}

// A queue holds the claims of one campaign that wait for its gate, and the answers that the node may give without asking the gate.
type queue struct {
	id      firstcome.CampaignID
	serial  uint64                // distinguishes it from an earlier queue of the same campaign
	local   atomic.Pointer[local] // the refusal that may be repeated now; nil if none
	changes atomic.Uint64         // changes begun plus changes ended; answers learned at another count are void
	used    atomic.Bool           // a claim came since the last sweep

	mu       sync.Mutex // guards what follows
	waiting  []*claim   // in arrival order
	spare    []*claim   // the backing array of the previous batch, for reuse
	crowded  bool       // the previous batch had more than one claim
	draining bool
	changing int  // changes under way, during which nothing is learned
	building bool // a holders filter is being built
	unknown  bool // the gate has no such campaign
	gone     bool // the Issuer has forgotten this queue: look the campaign up again
}

// A local is a refusal under lease, with the holders filter that decides to whom it may be repeated.
type local struct {
	refusal firstcome.Decision
	until   time.Duration // since the Issuer's start, by the monotonic clock
	holders *filter       // nil until it is built, and until then the refusal is repeated to nobody
}

// refuse returns the refusal if it may be repeated to the user now.
func (l *local) refuse(user firstcome.UserID, now time.Duration) (firstcome.Decision, bool) {
	if l == nil || l.holders == nil || now >= l.until || l.holders.mayHave(user) {
		return firstcome.Decision{}, false
	}
	return l.refusal, true
}

// take returns the next batch of at most limit claims, and the value of changes then. The batch is either a part of one direct issue, or has no claim
// of a direct issue. learn is false while a change is under way: then nothing may be remembered of the answer. An empty batch means that the queue is
// idle now, and that its goroutine must return.
func (q *queue) take(limit int) (batch []*claim, changes uint64, learn bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.draining = false
		q.gone = q.unknown && q.changing == 0 && !q.building
		return nil, 0, false
	}
	if limit = alike(q.waiting, limit); len(q.waiting) == limit {
		batch, q.waiting, q.spare = q.waiting, q.spare[:0], nil
	} else {
		batch = append(batch, q.waiting[:limit]...)
		q.waiting = append(q.waiting[:0], q.waiting[limit:]...)
	}
	return batch, q.changes.Load(), q.changing == 0
}

// alike returns how many of the first limit claims go to the gate as one batch.
func alike(claims []*claim, limit int) int {
	for n, c := range claims[:min(limit, len(claims))] {
		if c.direct != claims[0].direct {
			return n
		}
	}
	return min(limit, len(claims))
}

// reuse keeps a batch's backing array for the next batch.
func (q *queue) reuse(batch []*claim) {
	clear(batch)
	q.mu.Lock()
	q.crowded = len(batch) > 1
	if q.spare == nil {
		q.spare = batch[:0]
	}
	q.mu.Unlock()
}

// known notes whether the gate has the campaign.
func (q *queue) known(is bool) {
	q.mu.Lock()
	q.unknown = !is
	q.mu.Unlock()
}

// gather lets runnable goroutines run first, until none adds another claim. On an idle machine this costs nothing. On a busy one it makes batches a
// third larger, so that the ledger commits less often. If claims come one by one, such as to many campaigns, it would only cost, and is skipped.
func (q *queue) gather() {
	for before := 0; ; {
		q.mu.Lock()
		now, crowded := len(q.waiting), q.crowded
		q.mu.Unlock()
		if !crowded || now == before {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// shed answers all waiting claims with an error. The gate was not asked about them, because its last call took too long.
func (q *queue) shed(err error) (claims int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	claims = len(q.waiting)
	for _, c := range q.waiting {
		c.answer(firstcome.Decision{}, err)
	}
	clear(q.waiting)
	q.waiting = q.waiting[:0]
	return claims
}

// begin and end enclose a change of the campaign. Nothing is learned during or across it, and all that was learned before is forgotten.
// begin reports whether a sweep has dropped the queue.
func (q *queue) begin() (gone bool) { return q.change(+1) }
func (q *queue) end()               { q.change(-1) }

func (q *queue) change(by int) (gone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changing += by
	q.changes.Add(1)
	q.local.Store(nil)
	return q.gone
}

// learn stores the gate's last refusal to a batch that was sent at the time sent and at the given count of changes. It reports whether a holders
// filter must be built.
func (q *queue) learn(refusal firstcome.Decision, sent time.Duration, changes uint64) (build bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changes.Load() != changes {
		return false
	}
	next := &local{refusal: refusal, until: sent + refusal.Lease}
	if before := q.local.Load(); before != nil && sameState(before.refusal, refusal) {
		next.holders = before.holders
	}
	q.local.Store(next)
	build = next.holders == nil && !q.building
	q.building = q.building || build
	return build
}

// forget drops the refusal, so that the node asks the gate again.
func (q *queue) forget() {
	q.mu.Lock()
	q.local.Store(nil)
	q.mu.Unlock()
}

// lastRefusal returns the last decision that is a refusal under lease. A place in line is not a refusal: it belongs to one user, and changes.
func lastRefusal(decisions []firstcome.Decision) *firstcome.Decision {
	for i := len(decisions) - 1; i >= 0; i-- {
		if d := &decisions[i]; !d.Outcome.HasCoupon() && d.Outcome != firstcome.Waiting && d.Lease > 0 {
			return d
		}
	}
	return nil
}

// sameState reports whether two refusals prove that no coupon was issued between them. Then the holders are the same. It holds for each refusal of all
// users, because only a change of the campaign, which has a new version, can end one and bring it back. If the number in force differs, coupons were
// issued directly in between, or the gate lost some.
func sameState(a, b firstcome.Decision) bool {
	return a.Version == b.Version && a.Outcome == b.Outcome && a.InForce == b.InForce
}

// built stores the holders filter for the refusal that it was built for. f is nil if building failed.
func (q *queue) built(f *filter, refusal firstcome.Decision, changes uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.building = false
	now := q.local.Load()
	if f == nil || now == nil || q.changes.Load() != changes || !sameState(now.refusal, refusal) {
		return
	}
	q.local.Store(&local{refusal: now.refusal, until: now.until, holders: f})
}
