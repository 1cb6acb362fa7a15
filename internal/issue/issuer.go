package issue

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/line"
)

// Options bound an Issuer. The zero value of a field means its default.
type Options struct {
	Batch   int // the most claims in one call of the gate; default 512
	Waiting int // the most claims of one campaign that wait; others get ErrTooMany; default 16384
	// Gate is the time-out of a gate call, and the longest wait of a claim before its call; default 5s. Calls share a timer, so a call may get up to a
	// 64th less.
	Gate time.Duration
	// OnBatch, if not nil, is called after each call of the gate.
	OnBatch func(claims int, took time.Duration, err error)
	// Teller, if not nil, is asked before a user is told a place in line.
	Teller *line.Teller
	// OnJoin, if not nil, is called after each call of the gate after which users wait in line: see Dispatcher.Joined.
	OnJoin func(firstcome.CampaignID)
	// OnChange, if not nil, is called after each change: see Dispatcher.Changed.
	OnChange func(firstcome.CampaignID)
}

const (
	// About half a second of claims at the rates of docs/benchmarks.md. A claim that would wait longer is refused at once.
	defaultWaiting = 16384
	sweepEvery     = time.Minute
)

// An Issuer decides claims through a gate, in batches (group commit). Make one with NewIssuer. Its methods may be called from many goroutines.
type Issuer struct {
	gate    gate.Decider
	options Options
	start   time.Time // what the monotonic durations count from
	known   *known
	queues  sync.Map // firstcome.CampaignID → *queue
	// claims recycles claims. Only a caller who has received the answer returns a claim: if the caller has gone away, the queue still uses it.
	claims sync.Pool

	serial   atomic.Uint64 // of the last queue
	stopping atomic.Bool
	working  sync.WaitGroup // goroutines that drain queues, build filters and append places to a log
	cancel   context.CancelFunc
	ctx      context.Context // for calls of the gate: ends when Stop gives up
	calls    *deadlines      // for calls that decide

	stats struct {
		waiting, shed, cached, batches, failed atomic.Int64
	}
}

// Stats are an Issuer's counters since its start, and its current state.
type Stats struct {
	Waiting int64 // claims that wait for a call of the gate, or are in one
	Shed    int64 // claims refused with ErrTooMany
	Cached  int64 // claims answered from a lease
	Batches int64 // calls of the gate
	Failed  int64 // calls of the gate that returned an error
	// Campaigns is how many campaigns the Issuer keeps in memory because of recent claims.
	Campaigns int64
}

// NewIssuer returns an Issuer in front of a gate.
func NewIssuer(decider gate.Decider, options Options) *Issuer {
	options.Batch, options.Waiting, options.Gate = cmp.Or(options.Batch, gate.DefaultBatch), cmp.Or(options.Waiting, defaultWaiting), cmp.Or(options.Gate, gate.DefaultTimeout)
	i := &Issuer{gate: decider, options: options, start: time.Now(), known: &known{seed: maphash.MakeSeed()}}
	i.claims.New = func() any { return &claim{done: make(chan struct{}, 1)} }
	i.ctx, i.cancel = context.WithCancel(context.Background())
	i.calls = &deadlines{parent: i.ctx, after: options.Gate}
	return i
}

// Run forgets campaigns without recent claims, until ctx ends.
func (i *Issuer) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			i.sweep()
		}
	}
}

// Claim asks for a coupon of the campaign for the user. ErrNoCampaign, ErrGateMismatch and ErrBusy mean that nothing was decided. Any other error,
// even because ctx ended, means that the claim may have been or may yet be decided. Asking again is safe and finds the coupon.
func (i *Issuer) Claim(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Decision, error) {
	q := i.queue(id)
	if d, ok := i.repeat(q, user); ok {
		return d, nil
	}
	c := i.claims.Get().(*claim)
	c.user = user
	if err := i.enqueue(id, q, c); err != nil {
		i.claims.Put(c)
		return firstcome.Decision{}, err
	}
	return i.await(ctx, c)
}

// Issue asks for a coupon for each of users, in order and without another claim in between, and returns a decision for each. It bypasses the waiting
// line of a gate that keeps one: see gate.Decider. If it returns an error, some may have been decided; asking again is safe.
func (i *Issuer) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	all := make([]*claim, len(users))
	for n, user := range users {
		all[n] = i.claims.Get().(*claim)
		all[n].user, all[n].direct = user, &order
	}
	if err := i.enqueue(id, i.queue(id), all...); err != nil {
		return nil, err
	}
	decisions := make([]firstcome.Decision, len(users))
	var failed error
	for n, c := range all {
		d, err := i.await(ctx, c)
		decisions[n], failed = d, cmp.Or(failed, err)
	}
	if failed != nil {
		return nil, failed
	}
	return decisions, nil
}

// await returns a claim's answer, or an error when ctx ends first.
func (i *Issuer) await(ctx context.Context, c *claim) (firstcome.Decision, error) {
	select {
	case <-c.done:
		d, err := c.decision, c.err
		c.decision, c.err, c.direct = firstcome.Decision{}, nil, nil
		i.claims.Put(c)
		return d, err
	case <-ctx.Done():
		return firstcome.Decision{}, fmt.Errorf("the caller went away before the claim was answered: %w", ctx.Err())
	}
}

// Change makes a change of a campaign. The node first forgets all answers that it may give without asking the gate, and learns no new ones until
// change returns. So no claim that is sent after the change was answered gets an answer from before the change.
func (i *Issuer) Change(id firstcome.CampaignID, change func() error) error {
	q := i.hold(id)
	defer func() {
		q.end()
		if i.options.OnChange != nil {
			i.options.OnChange(id)
		}
	}()
	return change()
}

// hold begins a change and returns the campaign's queue.
func (i *Issuer) hold(id firstcome.CampaignID) *queue {
	for {
		q := i.queue(id)
		if gone := q.begin(); !gone {
			return q
		}
		q.end()
	}
}

// Stats returns the counters.
func (i *Issuer) Stats() Stats {
	campaigns := int64(0)
	i.queues.Range(func(any, any) bool {
		campaigns++
		return true
	})
	return Stats{
		Campaigns: campaigns,
		Waiting:   i.stats.waiting.Load(), Shed: i.stats.shed.Load(), Cached: i.stats.cached.Load(),
		Batches: i.stats.batches.Load(), Failed: i.stats.failed.Load(),
	}
}

// Stop refuses new claims with ErrStopping, and waits until every waiting claim is answered. When ctx ends it gives up: it cancels the calls under
// way, and their claims are answered with an error.
func (i *Issuer) Stop(ctx context.Context) error {
	i.stopping.Store(true)
	// A goroutine that has passed the check of stopping holds the queue's lock until working counts it. So after this loop none is added.
	i.queues.Range(func(_, q any) bool {
		q.(*queue).mu.Lock()
		q.(*queue).mu.Unlock() //lint:ignore SA2001 an empty section is the point
		return true
	})
	idle := make(chan struct{})
	go func() {
		i.working.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		i.cancel()
		return nil
	case <-ctx.Done():
		i.cancel()
		<-idle
		return fmt.Errorf("stop issuing: %w", ctx.Err())
	}
}

// now returns the time since the Issuer's start by the monotonic clock.
func (i *Issuer) now() time.Duration { return time.Since(i.start) }

// repeat answers a claim with an earlier decision of the gate, if its lease allows that.
func (i *Issuer) repeat(q *queue, user firstcome.UserID) (firstcome.Decision, bool) {
	now := i.now()
	d, ok := q.local.Load().refuse(user, now)
	if !ok {
		d, ok = i.known.get(q, user, now)
	}
	if ok {
		i.stats.cached.Add(1)
	}
	return d, ok
}

// queue returns the campaign's queue. It makes one if there is none.
func (i *Issuer) queue(id firstcome.CampaignID) *queue {
	q, ok := i.queues.Load(id)
	if !ok {
		q, _ = i.queues.LoadOrStore(id, &queue{id: id, serial: i.serial.Add(1)})
	}
	found := q.(*queue)
	if !found.used.Load() {
		found.used.Store(true)
	}
	return found
}

// enqueue puts all claims or none at the end of the campaign's queue, and makes sure that a goroutine drains it.
func (i *Issuer) enqueue(id firstcome.CampaignID, q *queue, cs ...*claim) error {
	q.mu.Lock()
	for q.gone {
		q.mu.Unlock()
		q = i.queue(id)
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	if i.stopping.Load() {
		return firstcome.ErrStopping
	}
	// An empty queue takes a whole direct issue, even above the limit.
	if len(q.waiting) > 0 && len(q.waiting)+len(cs) > i.options.Waiting {
		i.stats.shed.Add(int64(len(cs)))
		return firstcome.ErrTooMany
	}
	q.waiting = append(q.waiting, cs...)
	i.stats.waiting.Add(int64(len(cs)))
	if !q.draining {
		q.draining = true
		i.working.Add(1)
		go i.drain(q)
	}
	return nil
}

// sweep forgets the queues that were not used since the last sweep.
func (i *Issuer) sweep() {
	i.queues.Range(func(id, value any) bool {
		q := value.(*queue)
		if q.used.Swap(false) {
			return true
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if !q.draining && !q.building && q.changing == 0 && !q.used.Load() {
			q.gone = true
			i.queues.Delete(id)
		}
		return true
	})
}
