package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// An entry is what the journal of a gate keeps of one call of it, until the ledger has that.
type entry struct {
	id int64
	record.Batch
}

// append puts an entry into the journal, unless it says nothing. mu is held.
func (g *Gate) append(b record.Batch) {
	if b.Campaign == "" {
		return
	}
	g.entries++
	g.journal = append(g.journal, entry{g.entries, b})
	close(g.appended)
	g.appended = make(chan struct{})
}

// grown returns what is closed when the journal grows.
func (g *Gate) grown() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.appended
}

// atOnce is how many entries a recorder reads at once.
const atOnce = 8

// A reading is what a recorder reads at once: entries as one batch, and their ids.
type reading struct {
	record.Batch
	ids []int64
}

// read returns a campaign's oldest entries. They stay until they are settled, so two recorders who read at the same time have the same.
func (g *Gate) read(id firstcome.CampaignID) (r reading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.journal {
		if e.Campaign != id || len(r.ids) == atOnce || len(r.ids) > 0 && e.Epoch != r.Epoch {
			continue
		}
		r.Campaign, r.Epoch = id, e.Epoch
		r.Coupons, r.Garbage = append(r.Coupons, e.Coupons...), append(r.Garbage, e.Garbage...)
		r.Line.Add(e.Line)
		r.ids = append(r.ids, e.id)
	}
	return r
}

// settle takes entries out of the journal that the ledger has, flags the dead letters at their holders, and raises the number up to
// which a campaign is drained, and its ceiling: one step. That number stays below all that is in the journal. A campaign that is in
// another epoch has another journal: nothing is done then.
func (g *Gate) settle(id firstcome.CampaignID, drained record.Result, ids []int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[id]
	if c != nil && c.Version > 0 {
		if drained.Epoch > 0 && drained.Epoch != c.Epoch {
			return nil
		}
		if err := g.verified(c); err != nil {
			return err
		}
	}
	g.journal = slices.DeleteFunc(g.journal, func(e entry) bool { return slices.Contains(ids, e.id) })
	if c == nil || c.Version == 0 {
		return nil
	}
	if drained.Epoch > 0 {
		c.Ceiling = max(c.Ceiling, drained.Ceiling)
	}
	for _, dead := range drained.Letters {
		if held := c.Holders[dead.User]; held.Number == dead.Number {
			held.Buried = true
			c.Holders[dead.User] = held
		}
	}
	c.said = max(c.said, drained.Through)
	through := c.said
	for _, e := range g.journal {
		if e.Campaign == id && len(e.Coupons) > 0 && through <= c.Last {
			through = min(through, e.Coupons[0].Number-1)
		}
	}
	if through > c.Drained {
		c.Drained = through
		for _, w := range g.watchers {
			w.each(id, through)
		}
	}
	return nil
}

// A Source is a recorder's end of a gate's journal: record.Source.
type Source struct {
	gate *Gate
	wire *wire        // by which it asks; nil: directly
	old  func() *Gate // see remote; nil if it reaches the gate
	// heedless is a bug: it settles entries whatever epoch they are of.
	heedless bool
}

// at returns the gate that it reaches now.
func (s *Source) at() *Gate {
	if s.old != nil {
		if old := s.old(); old != nil {
			return old
		}
	}
	return s.gate
}

// idle is how long a recorder waits at most until it looks again.
const idle = time.Second

// Watch implements record.Source.
func (s *Source) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	for ctx.Err() == nil {
		grown := s.at().grown()
		for _, id := range s.at().journalled() {
			ready(id)
		}
		rest(ctx, grown, idle)
	}
	return ctx.Err()
}

// Next implements record.Source. A receipt is a reading.
func (s *Source) Next(ctx context.Context, id firstcome.CampaignID) (b record.Batch, receipt any, err error) {
	got, err := ask(ctx, s.wire, "the journal", "what it has", func() (reading, error) { return s.at().read(id), nil })
	if err != nil || len(got.ids) == 0 {
		return b, nil, err
	}
	return got.Batch, got, nil
}

// errEnded says that entries went with their epoch, or go with the rebuild that is under way.
var errEnded = errors.New("their epoch has ended")

// Ack implements record.Source.
func (s *Source) Ack(ctx context.Context, receipt any, drained record.Result) (before int64, err error) {
	got := receipt.(reading)
	if got.Epoch > 0 && got.Epoch < drained.Epoch && !s.heedless {
		return 0, errEnded
	}
	_, err = ask(ctx, s.wire, "the journal", show("to settle up to", drained.Through), func() (struct{}, error) {
		return struct{}{}, s.at().settle(got.Campaign, drained, got.ids)
	})
	return 0, err
}

// Lag implements record.Source.
func (s *Source) Lag(context.Context, []gate.Revision) ([]record.Lag, error) { return nil, nil }

// journalled returns the campaigns with entries in the journal, in the order of their oldest entries.
func (g *Gate) journalled() (ids []firstcome.CampaignID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.journal {
		if !slices.Contains(ids, e.Campaign) {
			ids = append(ids, e.Campaign)
		}
	}
	return ids
}

// rest waits until something happens, for a time, or until ctx ends.
func rest(ctx context.Context, until <-chan struct{}, long time.Duration) {
	late := time.NewTimer(long)
	defer late.Stop()
	select {
	case <-until:
	case <-late.C:
	case <-ctx.Done():
	}
}
