package figures

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A Ledger is what figures read of one: see ledger.Ledger.
type Ledger interface {
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
	Decides(c *ledger.Status) error
}

// A Gate is what figures read of a remote one: see flow.RemoteGate.
type Gate interface {
	State(ctx context.Context, id firstcome.CampaignID) (flow.GateState, error)
}

// Lines are what figures read of lines that a topic keeps: see flow.Places.
type Lines interface {
	LineOf(ctx context.Context, id firstcome.CampaignID) (flow.LineState, error)
}

// Now returns what the ledger and the gate say of a campaign now, without what only nodes know.
func (w *Watcher) Now(ctx context.Context, id firstcome.CampaignID) (Sample, error) {
	s, err := w.read(ctx, id)
	s.At = w.Clock()
	return s, err
}

// read returns what the ledger and the gate say of a campaign now.
func (w *Watcher) read(ctx context.Context, id firstcome.CampaignID) (Sample, error) {
	c, err := w.Ledger.Campaign(ctx, id)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		return Sample{}, err
	}
	if err != nil {
		return Sample{LedgerDown: true}, nil
	}
	var g flow.StateOf
	if w.atGate(&c) {
		g.GateState, g.Err = w.Gate.State(ctx, id)
	}
	return w.told(ctx, c, g), nil
}

// Of is Now of campaigns that the ledger has just told of, in their order.
func (w *Watcher) Of(ctx context.Context, found []ledger.Status) []Sample {
	var ids []firstcome.CampaignID
	for n := range found {
		if w.atGate(&found[n]) {
			ids = append(ids, found[n].ID)
		}
	}
	states := flow.States(ctx, w.Gate, ids)
	samples := make([]Sample, len(found))
	for n := range found {
		samples[n] = w.told(ctx, found[n], states[found[n].ID])
		samples[n].At = w.Clock()
	}
	return samples
}

// atGate tells whether the gate has a campaign's counters.
func (w *Watcher) atGate(c *ledger.Status) bool {
	return w.Gate != nil && c.Remote() && c.RetiredAt.IsZero() && c.Applied > 0
}

// told returns what is known of a campaign; g is what its gate says, if the gate has its counters.
func (w *Watcher) told(ctx context.Context, c ledger.Status, g flow.StateOf) Sample {
	s := Sample{Version: c.Version, Recorded: &c.Recorded}
	if c.Quantity != firstcome.Unlimited {
		s.Quantity = &c.Quantity
	}
	onWay := int64(0) // a dead letter is not on its way any more
	served, last, waiting := c.Line.ServedThrough, c.Line.LastTicket, c.Line.Waiting
	if w.atGate(&c) {
		if g.Err != nil || g.Lost || g.Unverified {
			s.GateDown = true
			return s
		}
		c.InForce, c.Issued, c.Now, c.Instants = g.InForce, g.Issued, g.Now, g.Instants
		waiting, onWay = g.Waiting, max(0, g.LastNumber-g.DrainedThrough)
	}
	s.Issued, s.InForce, s.Unrecorded = &c.Issued, &c.InForce, &onWay
	if c.Feed != nil && c.Feed.Partition >= 0 && !c.Closed { // neither ledger nor gate counts those in line
		s.Waiting, s.Served, s.LastTicket = w.inTopic(ctx, c.ID)
	} else if c.Pace != nil || last > 0 || waiting > 0 {
		s.Waiting, s.Served, s.LastTicket = &waiting, &served, &last
	}
	if c.Pace != nil {
		s.pace = float64(c.Pace.PerSecond)
	}
	s.State = c.StateAt(c.Now, c.InForce)
	if s.State == firstcome.StateOpen && c.Feed != nil && c.Feed.Partition >= 0 && s.Waiting == nil { // a newcomer joins a line in a topic, which does not answer
		s.State = ""
	}
	s.Instants = c.Instants
	return s
}

// inTopic returns the figures of a line that a topic keeps; nil: nobody can tell.
func (w *Watcher) inTopic(ctx context.Context, id firstcome.CampaignID) (waiting, served, last *int64) {
	if w.Lines == nil {
		return nil, nil, nil
	}
	line, err := w.Lines.LineOf(ctx, id)
	if err != nil {
		return nil, nil, nil
	}
	return &line.Line.Waiting, &line.Line.ServedThrough, &line.Line.LastTicket
}
