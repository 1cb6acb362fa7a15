package figures

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A Ledger is what figures read of one: see ledger.Ledger.
type Ledger interface {
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
	Decides(c *ledger.Status) error
}

// Whys are the words of Sample.Why. A campaign whose gate is lost, unverified, rebuilding, older or behind is not decided until that is over.
var Whys = []string{
	"silent",     // the gate does not answer
	"lost",       // see gate.ErrLost
	"unverified", // see gate.ErrUnverified
	"rebuilding", // see flow.ErrRebuilding
	"mismatch",   // this node has another gate or secret than the campaign
	"older",      // the ledger is older than the gate: see gate.ErrLedgerRolledBack
	"behind",     // the gate is older than the ledger: see gate.ErrStaleEpoch
}

// whyNot returns the word for why a campaign's gate, which said this, decides nothing, or nothing if it decides.
func whyNot(g gate.StateOf) string {
	is := func(told bool, err error) bool { return g.Err == nil && told || errors.Is(g.Err, err) }
	switch {
	case is(false, firstcome.ErrGateMismatch):
		return "mismatch"
	case g.Ahead:
		return "older"
	case g.Behind:
		return "behind"
	case is(g.Lost, gate.ErrLost):
		return "lost"
	case is(g.Frozen, flow.ErrRebuilding):
		return "rebuilding"
	case is(g.Unverified, gate.ErrUnverified):
		return "unverified"
	case g.Err != nil:
		return "silent"
	}
	return ""
}

// notHere returns the word for why this node does not decide a campaign, or nothing if it does, or the ledger does.
func (w *Watcher) notHere(c *ledger.Status) string {
	switch err := w.Ledger.Decides(c); {
	case err == nil || !c.RetiredAt.IsZero():
		return ""
	case errors.Is(err, gate.ErrLost): // its Redis may have been emptied
		return "lost"
	}
	return "mismatch"
}

// Now returns what the ledger and the gate say of a campaign now, without what only nodes know.
func (w *Watcher) Now(ctx context.Context, id firstcome.CampaignID) (Sample, error) {
	s, err := w.read(ctx, id)
	w.date(id, &s)
	return s, err
}

// maxDated is of how many campaigns a node remembers when it last knew their state.
const maxDated = 4096

// date notes when a sample was taken, and when all was known last.
func (w *Watcher) date(id firstcome.CampaignID, s *Sample) {
	s.At = w.Clock()
	if s.Why == "" && !s.LedgerDown {
		w.dated.Add(id, s.At)
		return
	}
	s.KnownAt, _ = w.dated.Get(id)
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
	var g gate.StateOf
	if w.atGate(&c) {
		g.State, g.Err = w.Gate.State(ctx, id)
	}
	return w.told(c, g), nil
}

// Of is Now of campaigns that the ledger has just told of, in their order.
func (w *Watcher) Of(ctx context.Context, found []ledger.Status) []Sample {
	var ids []firstcome.CampaignID
	for n := range found {
		if w.atGate(&found[n]) {
			ids = append(ids, found[n].ID)
		}
	}
	states := gate.States(ctx, w.Gate, ids)
	samples := make([]Sample, len(found))
	for n := range found {
		samples[n] = w.told(found[n], states[found[n].ID])
		w.date(found[n].ID, &samples[n])
	}
	return samples
}

// atGate tells whether the gate has a campaign's counters.
func (w *Watcher) atGate(c *ledger.Status) bool {
	return w.Gate != nil && c.Remote() && w.Ledger.Decides(c) == nil && c.RetiredAt.IsZero() && c.Applied > 0
}

// told returns what is known of a campaign; g is what its gate says, if the gate has its counters.
func (w *Watcher) told(c ledger.Status, g gate.StateOf) Sample {
	s := Sample{Version: c.Version, Recorded: &c.Recorded}
	if c.Quantity != firstcome.Unlimited {
		s.Quantity = &c.Quantity
	}
	s.Why = w.notHere(&c)
	if s.Why != "" && c.Closed { // no gate opens it again
		s.State = firstcome.Closed.String()
	}
	if w.atGate(&c) {
		s.Why = whyNot(g)
	}
	if s.Why != "" && c.Remote() {
		return s
	}
	onWay := int64(0) // a dead letter is not on its way any more
	served, last, waiting := c.Line.ServedThrough, c.Line.LastTicket, c.Line.Waiting
	if w.atGate(&c) {
		c.InForce, c.Issued, c.Now, c.Instants = g.InForce, g.Issued, g.Now, g.Instants
		waiting, onWay = g.Waiting, max(0, g.LastNumber-g.DrainedThrough)
	}
	s.Issued, s.InForce, s.Unrecorded = &c.Issued, &c.InForce, &onWay
	if c.Pace != nil || last > 0 || waiting > 0 {
		s.Waiting, s.Served, s.LastTicket = &waiting, &served, &last
	}
	if c.Pace != nil {
		s.pace = float64(c.Pace.PerSecond)
	}
	s.Instants = c.Instants
	s.State = c.StateAt(c.Now, c.InForce)
	switch {
	case c.Closed:
		s.Why = ""
	case s.Why != "":
		s.State = ""
	}
	return s
}
