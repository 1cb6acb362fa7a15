package figures

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

const (
	// busyEvery and idleEvery are how often a node writes its row: while somebody claims, and else.
	busyEvery = 2 * time.Second
	idleEvery = 30 * time.Second
	// maxCounts is the length of the longest row's counts.
	maxCounts = 16 << 10
	// writeWait bounds one write of a row.
	writeWait = 2 * time.Second
)

// A Rows is the table nodes: see ledger.Ledger.
type Rows interface {
	Clock(ctx context.Context) (time.Time, error)
	WriteNode(ctx context.Context, n ledger.NodeRow, stopped bool) error
	Nodes(ctx context.Context) ([]ledger.NodeRow, error)
}

// A Board is where the nodes of one ledger say what they are and what they counted, each in a row of its own. It needs Run.
type Board struct {
	Node     // this one
	Counter  *Counter
	Recorder func() string // returns its recorder's breaker, empty if it records nothing; nil: it records nothing
	Relay    func() string // likewise of its relay
	Rows     Rows
	Warn     func(text string, args ...any) // hears of a row that cannot be written
}

// A said row is a row's counts: what the node counted, the breakers of its recorder and its relay, and in how many seconds it writes again.
type said struct {
	Every     float64                         `json:"every"`
	Breaker   string                          `json:"breaker,omitempty"`
	Relay     string                          `json:"relay,omitempty"`
	Campaigns map[firstcome.CampaignID]Counts `json:"campaigns"`
}

// Run writes this node's row until ctx ends, and then that it stopped.
func (b *Board) Run(ctx context.Context) error {
	tick := time.NewTicker(busyEvery)
	defer tick.Stop()
	var started time.Time
	var last uint64
	var breakers [2]string
	quiet, every := idleEvery, idleEvery // since the row was written, and as it says
	for {
		counts := b.Counter.Counts()
		claims, now := total(counts), [2]string{breakerOf(b.Recorder), breakerOf(b.Relay)}
		// The first row after the last claim comes as soon as those before: it ends the rate that they told, and says that
		// the next ones are rare.
		if quiet += busyEvery; claims != last || now != breakers || every == busyEvery || quiet >= idleEvery {
			next := idleEvery
			if claims != last {
				next = busyEvery
			}
			if b.write(ctx, &started, counts, next, false) {
				last, breakers, quiet, every = claims, now, 0, next
			}
		}
		select {
		case <-ctx.Done():
			b.write(context.WithoutCancel(ctx), &started, b.Counter.Counts(), 0, true)
			return nil
		case <-tick.C:
		}
	}
}

// write writes the row, and tells whether that went well. The first time it reads when the node started, by the ledger's clock.
func (b *Board) write(ctx context.Context, started *time.Time, counts map[firstcome.CampaignID]Counts, every time.Duration, stopped bool) bool {
	ctx, done := context.WithTimeout(ctx, writeWait)
	defer done()
	var err error
	if started.IsZero() {
		*started, err = b.Rows.Clock(ctx)
	}
	if err == nil {
		row := ledger.NodeRow{Host: b.Host, Listen: b.Listen, Role: b.Role, Version: b.Version, StartedAt: *started, Counts: encode(said{every.Seconds(), breakerOf(b.Recorder), breakerOf(b.Relay), maps.Clone(counts)})}
		err = b.Rows.WriteNode(ctx, row, stopped)
	}
	if err != nil && ctx.Err() == nil {
		b.Warn("this node's row is not written, so other nodes' consoles do not see it", "err", err)
	}
	return err == nil
}

// total returns how many claims were counted in all.
func total(counts map[firstcome.CampaignID]Counts) (n uint64) {
	for _, c := range counts {
		for _, claims := range c.Claims {
			n += claims
		}
	}
	return n
}

// encode returns a row's counts. If they are too long, the campaigns with the fewest claims are left out.
func encode(said said) []byte {
	for {
		text, err := json.Marshal(said)
		if err != nil {
			panic(err) // numbers and ids
		}
		if len(text) <= maxCounts || len(said.Campaigns) == 0 {
			return text
		}
		least := slices.MinFunc(slices.Collect(maps.Keys(said.Campaigns)), func(a, b firstcome.CampaignID) int {
			one := func(id firstcome.CampaignID) uint64 {
				return total(map[firstcome.CampaignID]Counts{id: said.Campaigns[id]})
			}
			return int(min(max(int64(one(a))-int64(one(b)), -1), 1))
		})
		delete(said.Campaigns, least)
	}
}

// Nodes returns all nodes, this one as of now and by its own clock; if the others cannot be read, this one and the error.
func (b *Board) Nodes(ctx context.Context) ([]Node, error) {
	own := Alone{b.Node, b.Counter, b.Recorder, b.Relay}
	all, _ := own.Nodes(ctx) // of memory
	rows, err := b.Rows.Nodes(ctx)
	for _, row := range rows {
		n := Node{Host: row.Host, Listen: row.Listen, Role: row.Role, Version: row.Version, StartedAt: row.StartedAt, SeenAt: row.SeenAt, StoppedAt: row.StoppedAt, Now: row.Now}
		if n.Key() == b.Key() {
			continue
		}
		var said said
		if json.Unmarshal(row.Counts, &said) == nil { // else another version's: it is seen, and counts nothing
			n.Breaker, n.Relay = said.Breaker, said.Relay
			n.Campaigns, n.Every = said.Campaigns, time.Duration(said.Every*float64(time.Second))
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b Node) int { return strings.Compare(a.Key(), b.Key()) })
	return all, err
}
