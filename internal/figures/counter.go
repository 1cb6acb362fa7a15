// Package figures reports the progress of a drop: the counts of each node for a campaign, and, once a second for each watched campaign, the state of
// its gate and ledger.
//
// # Where a figure comes from
//
//	issued, in force, waiting, unrecorded    the gate
//	recorded                                 the ledger
//	claims by outcome, latency               the nodes: refusals are not stored anywhere else
//
// A node counts totals since its start (Counter), and keeps them in a row of the ledger (Board). A Watcher subtracts two readings, and adds up the
// differences of all nodes. So a missed reading loses no count, and nodes do not talk to each other. A node that restarts keeps the counts of its row
// apart, in Node.Before: totals include them, and rates do not.
package figures

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
)

// Kept is how many campaigns a node keeps counts of: those with the latest claims.
const Kept = 32

// A Kind is how a claim ended: an outcome, or the cause of an error.
type Kind uint8

// The kinds. Outcomes have their own numbers.
const (
	Unknown Kind = iota // the gate may or may not have decided it; 0 is no outcome
	shed    Kind = Kind(firstcome.Issued) + iota
	gateUnavailable
	gateFull
	lineFull
	stopping
	mismatch
	kinds
)

// undecided has the words of the kinds that are not outcomes.
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

// String returns the kind's word, as in the metric firstcome_claims_total.
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

// Counts are a node's counts for one campaign since Since.
type Counts struct {
	// Since is when the node began to count: at its start, or when the campaign became one of the Kept last claimed.
	Since  time.Time `json:"since"`
	Claims Claims    `json:"claims"`
	// Served counts coupons that the node issued to a waiting line. Their claims had ended as waiting.
	Served uint64  `json:"served,omitempty"`
	Took   Buckets `json:"took,omitzero"` // durations of claims with an outcome
}

// Claims counts claims by their Kind. In JSON the keys are the kinds' words: rows outlast an upgrade, and another version may number its kinds
// otherwise.
type Claims [kinds]uint64

// MarshalJSON leaves out kinds without claims.
func (c Claims) MarshalJSON() ([]byte, error) {
	words := map[string]uint64{}
	for k, n := range c {
		if n > 0 {
			words[Kind(k).String()] = n
		}
	}
	return json.Marshal(words)
}

// UnmarshalJSON leaves out words that this version does not know.
func (c *Claims) UnmarshalJSON(text []byte) error {
	var words map[string]uint64
	if err := json.Unmarshal(text, &words); err != nil {
		return err
	}
	for k := range kinds {
		c[k] = words[k.String()]
	}
	return nil
}

// totals are Counts that many goroutines add to.
type totals struct {
	since  time.Time
	claims [kinds]atomic.Uint64
	served atomic.Uint64
	took   [len(Buckets{})]atomic.Uint64
	// last is the tick of the campaign's last claim: see Counter.tick. told is that of the last outcome of a newcomer.
	last, told atomic.Int64
}

// A Counter counts a node's claims. Its methods may be called from many goroutines.
type Counter struct {
	clock func() time.Time
	tick  atomic.Int64 // in seconds; Counts advances it

	mu  sync.Mutex                                       // held while a campaign is added
	all atomic.Pointer[map[firstcome.CampaignID]*totals] // replaced as a whole
}

// NewCounter returns a Counter. A nil clock means time.Now.
func NewCounter(clock func() time.Time) *Counter {
	if clock == nil {
		clock = time.Now
	}
	c := &Counter{clock: clock}
	c.all.Store(&map[firstcome.CampaignID]*totals{})
	return c
}

// Claimed counts a claim that was answered with an outcome, and its duration.
func (c *Counter) Claimed(id firstcome.CampaignID, o firstcome.Outcome, took time.Duration) {
	t := c.of(id)
	t.claims[o].Add(1)
	t.took[bucketOf(took)].Add(1)
	if now := c.tick.Load(); o != firstcome.AlreadyIssued && t.told.Load() != now { // a node may repeat a coupon without asking the gate
		t.told.Store(now)
	}
}

// Told returns when a claim of a newcomer last had an outcome, to the second of the last call of Counts. It is zero if none has, or if the campaign
// is not among the Kept last claimed.
func (c *Counter) Told(id firstcome.CampaignID) (at time.Time) {
	if t := (*c.all.Load())[id]; t != nil && t.told.Load() > 0 {
		at = time.Unix(t.told.Load(), 0).UTC()
	}
	return at
}

// Decided counts an outcome of a direct issue.
func (c *Counter) Decided(id firstcome.CampaignID, o firstcome.Outcome) { c.of(id).claims[o].Add(1) }

// Served counts coupons issued to a waiting line.
func (c *Counter) Served(id firstcome.CampaignID, coupons int) {
	if coupons > 0 {
		c.of(id).served.Add(uint64(coupons))
	}
}

// Undecided counts a claim that ended with an error. It does not count claims for a campaign that does not exist, or whose callers left before the
// answer. While the ledger is down, the campaign of a
// claim may not exist. So if it has no counts yet, the claim begins them only where that displaces no other campaign's counts.
func (c *Counter) Undecided(ctx context.Context, id firstcome.CampaignID, err error) {
	switch kind := kindOf(err); {
	case errors.Is(err, firstcome.ErrNoCampaign):
	case kind != Unknown || ctx.Err() == nil:
		if _, counted := (*c.all.Load())[id]; counted || len(*c.all.Load()) < Kept {
			c.of(id).claims[kind].Add(1)
		}
	}
}

// of returns the totals of a campaign, and makes it the one claimed last.
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

// add begins to count a campaign. If there are too many, it forgets the one whose last claim is oldest.
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

// forget resets the counter to zero.
func (c *Counter) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Store(&map[firstcome.CampaignID]*totals{})
}

// Counts returns the counts of each campaign. It also advances tick, so the order of campaigns by their last claims is as exact as calls of Counts
// are frequent.
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
