package figures

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

const (
	// busyEvery and idleEvery are how often a node writes its row: while it gets claims, and otherwise.
	busyEvery = 2 * time.Second
	idleEvery = 30 * time.Second
	// maxCounts is the most bytes of a row's counts.
	maxCounts = 16 << 10
	// writeWait is the time-out of one write of a row.
	writeWait = 2 * time.Second
)

// Rows is the table nodes. ledger.Deployment implements it.
type Rows interface {
	Clock(ctx context.Context) (time.Time, error)
	TakeNode(ctx context.Context, n ledger.NodeRow) (counts []byte, err error)
	WriteNode(ctx context.Context, n ledger.NodeRow, stopped bool) error
	Nodes(ctx context.Context) ([]ledger.NodeRow, error)
}

// A Board writes this node's row of the ledger, and reads the rows of all nodes: address, state and counts. A node that restarts continues from its
// row. It needs Run.
type Board struct {
	Node     // this node
	Counter  *Counter
	Recorder func() string // returns the state of the recorder's breaker; nil or "" if the node records nothing
	Relay    func() string // like Recorder, for its relay
	Rows     Rows
	Warn     func(text string, args ...any) // called when the row cannot be written

	started time.Time // by the ledger's clock; zero while this node has no row. Only Run uses it

	mu     sync.Mutex                      // guards what follows
	before map[firstcome.CampaignID]Counts // see Node.Before; replaced as a whole
}

// A said is the counts of a row: what the node counted and took over, the breakers of its recorder and relay, and the seconds until its next row.
type said struct {
	Every     float64                         `json:"every"`
	Breaker   string                          `json:"breaker,omitempty"`
	Relay     string                          `json:"relay,omitempty"`
	Campaigns map[firstcome.CampaignID]Counts `json:"campaigns"`
	Before    map[firstcome.CampaignID]Counts `json:"before,omitempty"`
}

// addTo adds all claims of a row to counts.
func (s *said) addTo(counts map[firstcome.CampaignID]Counts) {
	for _, of := range []map[firstcome.CampaignID]Counts{s.Campaigns, s.Before} {
		for id, more := range of {
			sum := counts[id]
			if more.Since.After(sum.Since) {
				sum.Since = more.Since
			}
			for k := range sum.Claims {
				sum.Claims[k] += more.Claims[k]
			}
			counts[id] = sum
		}
	}
}

// Run writes this node's row until ctx ends, and then that it stopped.
func (b *Board) Run(ctx context.Context) error {
	tick := time.NewTicker(busyEvery)
	defer tick.Stop()
	var last uint64
	var breakers [2]string
	quiet, every := idleEvery, idleEvery // time since the row was written, and its interval
	for {
		counts := b.Counter.Counts()
		claims, now := total(counts), [2]string{breakerOf(b.Recorder), breakerOf(b.Relay)}
		// The first row after the last claim is written after busyEvery: it ends the rate of the rows before, and announces the longer interval.
		if quiet += busyEvery; claims != last || now != breakers || every == busyEvery || quiet >= idleEvery {
			next := idleEvery
			if claims != last {
				next = busyEvery
			}
			if b.write(ctx, counts, next, false) {
				last, breakers, quiet, every = claims, now, 0, next
			}
		}
		select {
		case <-ctx.Done():
			b.write(context.WithoutCancel(ctx), b.Counter.Counts(), 0, true)
			return nil
		case <-tick.C:
		}
	}
}

// write writes the row, and reports whether that succeeded. The first call takes over the node's row.
func (b *Board) write(ctx context.Context, counts map[firstcome.CampaignID]Counts, every time.Duration, stopped bool) bool {
	ctx, done := context.WithTimeout(ctx, writeWait)
	defer done()
	var err error
	if b.started.IsZero() {
		err = b.take(ctx)
	}
	if err == nil {
		err = b.Rows.WriteNode(ctx, b.row(encode(said{every.Seconds(), breakerOf(b.Recorder), breakerOf(b.Relay), maps.Clone(counts), maps.Clone(b.tookOver())})), stopped)
	}
	if errors.Is(err, ledger.ErrNodeTaken) { // the other node has taken over the counts of the row
		b.Counter.forget()
		b.started = time.Time{}
		b.takeOver(nil)
	}
	if err != nil && ctx.Err() == nil {
		b.Warn("this node's row is not written, so other nodes' consoles do not see it, and what it counts is not kept over a restart", "err", err)
	}
	return err == nil
}

// take takes over the node's row and its claims.
func (b *Board) take(ctx context.Context) error {
	at, err := b.Rows.Clock(ctx)
	if err != nil {
		return err
	}
	b.started = at
	text, err := b.Rows.TakeNode(ctx, b.row(nil))
	if err != nil {
		b.started = time.Time{}
		return err
	}
	var said said
	before := map[firstcome.CampaignID]Counts{}
	if json.Unmarshal(text, &said) == nil { // another version wrote it if it cannot be read
		said.addTo(before)
	}
	for len(before) > Kept {
		delete(before, first(before))
	}
	b.takeOver(before)
	return nil
}

// row returns this node's row with these counts.
func (b *Board) row(counts []byte) ledger.NodeRow {
	return ledger.NodeRow{Host: b.Host, Listen: b.Listen, Role: b.Role, Version: b.Version, StartedAt: b.started, Counts: counts}
}

func (b *Board) takeOver(counts map[firstcome.CampaignID]Counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = counts
}

func (b *Board) tookOver() map[firstcome.CampaignID]Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.before
}

// first returns the campaign that a node began to count earliest.
func first(counts map[firstcome.CampaignID]Counts) firstcome.CampaignID {
	return slices.MinFunc(slices.Collect(maps.Keys(counts)), func(a, b firstcome.CampaignID) int {
		return counts[a].Since.Compare(counts[b].Since)
	})
}

// total returns the sum of all claims and of coupons issued to lines.
func total(counts map[firstcome.CampaignID]Counts) (n uint64) {
	for _, c := range counts {
		n += c.Served
		for _, claims := range c.Claims {
			n += claims
		}
	}
	return n
}

// encode encodes a row's counts. If they are too long, it leaves out counts that were taken over, of the oldest campaigns first, and then the
// campaigns with the fewest claims.
func encode(said said) []byte {
	for {
		text, err := json.Marshal(said)
		if err != nil {
			panic(err) // it has only numbers and ids
		}
		if len(text) <= maxCounts || len(said.Campaigns)+len(said.Before) == 0 {
			return text
		}
		if len(said.Before) > 0 {
			delete(said.Before, first(said.Before))
			continue
		}
		least := slices.MinFunc(slices.Collect(maps.Keys(said.Campaigns)), func(a, b firstcome.CampaignID) int {
			one := func(id firstcome.CampaignID) uint64 {
				return total(map[firstcome.CampaignID]Counts{id: said.Campaigns[id]})
			}
			return cmp.Compare(one(a), one(b))
		})
		delete(said.Campaigns, least)
	}
}

// own returns this node's current state, by its own clock.
func (b *Board) own() Node {
	n := b.Node
	n.SeenAt = b.Counter.clock()
	n.Now, n.Campaigns, n.Before, n.Breaker, n.Relay = n.SeenAt, b.Counter.Counts(), maps.Clone(b.tookOver()), breakerOf(b.Recorder), breakerOf(b.Relay)
	return n
}

// Nodes returns all nodes. The claims of deleted rows count as this node's Before. If the rows cannot be read, Nodes returns this node and the error.
func (b *Board) Nodes(ctx context.Context) ([]Node, error) {
	own := b.own() // before the rows: a row that it takes over in between has its key, and is not counted twice
	if own.Before == nil {
		own.Before = map[firstcome.CampaignID]Counts{}
	}
	var all []Node
	rows, err := b.Rows.Nodes(ctx)
	for _, row := range rows {
		n := Node{Host: row.Host, Listen: row.Listen, Role: row.Role, Version: row.Version, StartedAt: row.StartedAt, SeenAt: row.SeenAt, StoppedAt: row.StoppedAt, Now: row.Now}
		if n.Key() == b.Key() {
			continue
		}
		var said said
		known := json.Unmarshal(row.Counts, &said) == nil // false if another version wrote it: then the node is shown without counts
		switch {
		case row.Forgotten && known:
			said.addTo(own.Before)
		case known:
			n.Breaker, n.Relay, n.Before = said.Breaker, said.Relay, said.Before
			n.Campaigns, n.Every = said.Campaigns, time.Duration(said.Every*float64(time.Second))
		}
		if !row.Forgotten {
			all = append(all, n)
		}
	}
	all = append(all, own)
	slices.SortFunc(all, func(a, b Node) int { return strings.Compare(a.Key(), b.Key()) })
	return all, err
}
