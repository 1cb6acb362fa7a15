package figures

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
)

// A Ledger is the part of a ledger that figures read. ledger.Reads implements it.
type Ledger interface {
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
	Decides(c *ledger.Status) error
	PrizesGiven(ctx context.Context, id firstcome.CampaignID, t *firstcome.Terms, last int64) ([]ledger.PrizeGiven, error)
}

// Whys are the words of Sample.Why. Nothing of a campaign is decided while its gate is in one of these states.
var Whys = []string{
	"silent",             // the gate does not answer
	"lost",               // see gate.ErrGone
	"unverified",         // see gate.ErrUnverified
	"rebuilding",         // see record.ErrRebuilding
	"mismatch",           // this node has another gate or secret than the campaign
	"ledger_rolled_back", // the ledger is older than the gate: see gate.ErrLedgerRolledBack
	"stale_epoch",        // the gate is older than the ledger: see gate.ErrStaleEpoch
	"creating",           // its creation has not reached the gate
}

// whyNot returns the word for why a campaign's gate decides nothing, by its answer, or "" if it decides.
func whyNot(g gate.StateOf) string {
	is := func(told bool, err error) bool { return g.Err == nil && told || errors.Is(g.Err, err) }
	switch {
	case is(false, firstcome.ErrGateMismatch):
		return "mismatch"
	case g.LedgerRolledBack:
		return "ledger_rolled_back"
	case g.StaleEpoch:
		return "stale_epoch"
	case is(g.Gone, gate.ErrGone):
		return "lost"
	case is(g.Frozen, record.ErrRebuilding):
		return "rebuilding"
	case is(g.Unverified, gate.ErrUnverified):
		return "unverified"
	case g.Err != nil:
		return "silent"
	}
	return ""
}

// notHere returns the word for why this node does not decide a campaign, or "" if this node or the ledger decides it.
func (w *Watcher) notHere(c *ledger.Status) string {
	switch err := w.Ledger.Decides(c); {
	case err == nil && w.Gate != nil && c.Remote() && c.RetiredAt.IsZero() && c.Creating():
		return "creating"
	case err == nil || !c.RetiredAt.IsZero():
		return ""
	case errors.Is(err, gate.ErrGone): // its Redis may have been emptied
		return "lost"
	}
	return "mismatch"
}

// Now returns a campaign's current state by the ledger and the gate, without the counts of nodes.
func (w *Watcher) Now(ctx context.Context, id firstcome.CampaignID) (Sample, error) {
	s, err := w.read(ctx, id)
	w.date(id, &s)
	return s, err
}

// maxDated is for how many campaigns a node remembers when it last knew their state.
const maxDated = 4096

// date sets when a sample was taken, and when everything was last known.
func (w *Watcher) date(id firstcome.CampaignID, s *Sample) {
	s.At = w.Clock()
	if s.Why == "" && !s.LedgerDown {
		w.dated.Add(id, s.At)
		return
	}
	s.KnownAt, _ = w.dated.Get(id)
	if w.Told != nil {
		if at := w.Told(id); at.After(s.KnownAt) {
			s.KnownAt = at
		}
	}
}

// read returns a campaign's current state by the ledger and the gate.
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
	s := w.told(c, g)
	s.Prizes = w.prizes(ctx, &c, &s)
	return s, nil
}

// prizes returns the stock of a campaign's prizes. When a prize has run out it asks the ledger since when, until the ledger knows.
func (w *Watcher) prizes(ctx context.Context, c *ledger.Status, s *Sample) []Prize {
	if len(c.Prizes) == 0 {
		return nil
	}
	all := make([]Prize, len(c.Prizes))
	times, _ := w.ranOut.Get(c.ID)
	ahead, asks, again := int64(0), false, false // ranks of earlier prizes that are left
	for n := range all {
		from, to := c.Ranks(n)
		if to != firstcome.Unlimited {
			all[n].Of = &c.Prizes[n].Quantity
		}
		if s.Ranks == nil {
			continue
		}
		given := max(0, min(*s.Ranks, to)-from+1)
		all[n].Given = &given
		if to != firstcome.Unlimited {
			ahead += c.Prizes[n].Quantity - given
			known := n < len(times) && !times[n].RanOutAt.IsZero()
			again = again || known && *s.Ranks < to
			asks = asks || !known && *s.Ranks >= to
		} else if s.Quantity != nil {
			of := given + max(0, *s.Quantity-*s.InForce-ahead)
			all[n].Of = &of
		}
	}
	if again { // a restored ledger gives ranks again, or the terms were read before a rebuild and the gate's last number after it
		w.ranOut.Remove(c.ID)
	}
	if asks {
		if read, err := w.Ledger.PrizesGiven(ctx, c.ID, &c.Terms, c.NumberOf(*s.Ranks)); err == nil {
			times = read
			w.ranOut.Add(c.ID, times)
		}
	}
	for n := range all {
		if _, to := c.Ranks(n); s.Ranks != nil && *s.Ranks >= to && n < len(times) {
			all[n].RanOutAt = times[n].RanOutAt
		}
	}
	return all
}

// Of works like Now for campaigns that were just read from the ledger, and returns their samples in order.
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

// atGate reports whether the gate has a campaign's counters.
func (w *Watcher) atGate(c *ledger.Status) bool {
	return w.Gate != nil && c.Remote() && w.Ledger.Decides(c) == nil && c.RetiredAt.IsZero() && !c.Creating()
}

// told returns the sample of a campaign. g is the gate's answer, if the gate has the campaign's counters.
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
	onWay, last := int64(0), c.LastNumber // numbers on their way to the ledger, without dead letters; the last number that was given
	served, lastTicket, waiting := c.Line.ServedThrough, c.Line.LastTicket, c.Line.Waiting
	if w.atGate(&c) {
		c.InForce, c.Issued, c.Now, c.Instants = g.InForce, g.Issued, g.Now, g.Instants
		waiting, onWay = g.Waiting, max(0, g.LastNumber-g.DrainedThrough)
		if !c.Closed || onWay > 0 { // if a closed campaign is rebuilt, the gate's last number is one that was never given
			last = g.LastNumber
		}
	}
	ranks := c.Rank(last)
	s.Ranks = &ranks
	s.Issued, s.InForce, s.Unrecorded = &c.Issued, &c.InForce, &onWay
	if c.Pace != nil || lastTicket > 0 || waiting > 0 {
		s.Waiting, s.Served, s.LastTicket = &waiting, &served, &lastTicket
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
