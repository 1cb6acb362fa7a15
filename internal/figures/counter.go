// Package figures says how a drop goes: what each node has counted of a campaign, and, once a second for each campaign
// that somebody watches, what its gate and its ledger say.
//
// # Where a figure comes from
//
//	issued, in force, waiting, unrecorded    the gate
//	recorded                                 the ledger
//	claims by outcome, latency               the nodes: only they know of refusals
//
// A node counts totals since its start (Counter), and keeps them in a row of the ledger (Board). A Watcher subtracts two readings and
// adds up over the nodes. So a reading that is missed costs nothing, and no node talks to another. A node that begins again
// takes over what its row said, beside what it counts now: totals go on, and no rate has what came before.
package figures

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
)

// Kept is how many campaigns a node keeps counts of: those that were claimed last.
const Kept = 32

// A Kind says how a claim ended: an outcome, or why it has none.
type Kind uint8

// The kinds: the outcomes have their own numbers. Rows keep counts by these numbers over a restart.
const (
	Unknown Kind = iota // the gate may have decided it: outcome 0 is none
	shed    Kind = Kind(firstcome.Issued) + iota
	gateUnavailable
	gateFull
	lineFull
	stopping
	mismatch
	kinds
)

// undecided has the words of the kinds that are no outcomes.
var undecided = map[Kind]string{
	Unknown: "unknown", shed: "shed", mismatch: "mismatch",
	gateUnavailable: string(firstcome.GateUnavailable), gateFull: string(firstcome.GateFull), lineFull: string(firstcome.LineFull), stopping: string(firstcome.Stopping),
}

// kindOf returns the kind of a claim that ended with an error.
func kindOf(err error) Kind {
	switch firstcome.CauseOf(err) {
	case firstcome.GateUnavailable:
		return gateUnavailable
	case firstcome.GateFull:
		return gateFull
	case firstcome.LineFull:
		return lineFull
	case firstcome.Stopping:
		return stopping
	case firstcome.Busy:
		return shed
	}
	if errors.Is(err, firstcome.ErrGateMismatch) {
		return mismatch
	}
	return Unknown
}

// String returns the word, as the metric firstcome_claims_total has it.
func (k Kind) String() string {
	if word, ok := undecided[k]; ok {
		return word
	}
	return firstcome.Outcome(k).String()
}

// Kinds returns every kind.
func Kinds() []Kind {
	var all []Kind
	for k := range kinds {
		all = append(all, k)
	}
	return all
}

// Counts are what a node has counted of one campaign since Since.
type Counts struct {
	// Since is when the node began to count: at its start, or when the campaign came among the last ones claimed.
	Since  time.Time     `json:"since"`
	Claims [kinds]uint64 `json:"claims"` // by Kind
	// Served are coupons that the node issued to a waiting line: the claims for them ended as waiting.
	Served uint64  `json:"served,omitempty"`
	Took   Buckets `json:"took,omitzero"` // how long claims with an outcome took
}

// totals are Counts that many goroutines add to.
type totals struct {
	since  time.Time
	claims [kinds]atomic.Uint64
	served atomic.Uint64
	took   [len(Buckets{})]atomic.Uint64
	// last orders campaigns by their last claim, in ticks of Counter.tick.
	last atomic.Int64
}

// A Counter counts what a node does. Its methods may be called from many goroutines.
type Counter struct {
	clock func() time.Time
	tick  atomic.Int64 // seconds, by Counts

	mu  sync.Mutex                                       // held while a campaign is added
	all atomic.Pointer[map[firstcome.CampaignID]*totals] // replaced as a whole
}

// NewCounter returns a Counter; a nil clock is time.Now.
func NewCounter(clock func() time.Time) *Counter {
	if clock == nil {
		clock = time.Now
	}
	c := &Counter{clock: clock}
	c.all.Store(&map[firstcome.CampaignID]*totals{})
	return c
}

// Claimed counts a claim that was answered with an outcome after so long.
func (c *Counter) Claimed(id firstcome.CampaignID, o firstcome.Outcome, took time.Duration) {
	t := c.of(id)
	t.claims[o].Add(1)
	t.took[bucketOf(took)].Add(1)
}

// Decided counts an outcome of a direct issue.
func (c *Counter) Decided(id firstcome.CampaignID, o firstcome.Outcome) { c.of(id).claims[o].Add(1) }

// Served counts coupons that were issued to a waiting line.
func (c *Counter) Served(id firstcome.CampaignID, coupons int) {
	if coupons > 0 {
		c.of(id).served.Add(uint64(coupons))
	}
}

// Undecided counts a claim that ended with an error. Whoever asks for a campaign that does not exist, or leaves before the
// answer, is not counted. While the ledger is away nobody knows which campaigns exist. So such a claim takes no other campaign's place.
func (c *Counter) Undecided(ctx context.Context, id firstcome.CampaignID, err error) {
	switch kind := kindOf(err); {
	case errors.Is(err, firstcome.ErrNoCampaign):
	case kind != Unknown || ctx.Err() == nil:
		if _, counted := (*c.all.Load())[id]; counted || len(*c.all.Load()) < Kept {
			c.of(id).claims[kind].Add(1)
		}
	}
}

// of returns the totals of a campaign, which is now the one that was claimed last.
func (c *Counter) of(id firstcome.CampaignID) *totals {
	t, ok := (*c.all.Load())[id]
	if !ok {
		t = c.add(id)
	}
	if now := c.tick.Load(); t.last.Load() != now {
		t.last.Store(now)
	}
	return t
}

// add begins to count a campaign, and forgets the one that was claimed longest ago if there are too many.
func (c *Counter) add(id firstcome.CampaignID) *totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := *c.all.Load()
	if t, ok := before[id]; ok {
		return t
	}
	t := &totals{since: c.clock()}
	t.last.Store(c.tick.Load())
	after := map[firstcome.CampaignID]*totals{id: t}
	oldest, least := firstcome.CampaignID(""), int64(0)
	for other, totals := range before {
		after[other] = totals
		if last := totals.last.Load(); oldest == "" || last < least {
			oldest, least = other, last
		}
	}
	if len(after) > Kept {
		delete(after, oldest)
	}
	c.all.Store(&after)
	return t
}

// forget has the counter begin at zero.
func (c *Counter) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Store(&map[firstcome.CampaignID]*totals{})
}

// Counts returns what was counted of each campaign. Its order of campaigns by their last claims is as exact as it is
// called often.
func (c *Counter) Counts() map[firstcome.CampaignID]Counts {
	c.tick.Store(c.clock().Unix())
	all := map[firstcome.CampaignID]Counts{}
	for id, t := range *c.all.Load() {
		n := Counts{Since: t.since, Served: t.served.Load()}
		for k := range n.Claims {
			n.Claims[k] = t.claims[k].Load()
		}
		for b := range n.Took {
			n.Took[b] = t.took[b].Load()
		}
		all[id] = n
	}
	return all
}
