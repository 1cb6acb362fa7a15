package api

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// The state of a campaign's gate, as this node knows it, in the words of the wire. Unless it is gateOK, nobody
// knows the gate's counters, and claims are answered 503.
const (
	gateOK         = "ok"
	gateLost       = "lost"       // see gate.ErrLost
	gateUnverified = "unverified" // see gate.ErrUnverified
	gateMismatch   = "mismatch"   // see firstcome.ErrGateMismatch
	gateUnknown    = "unknown"    // the gate did not answer
	gateAhead      = "ahead"      // see gate.LedgerRolledBackError
	gateBehind     = "behind"     // see gate.StaleEpochError
)

// stateUnknown is a campaign's state when nobody can say what a claim would get.
const stateUnknown = "unknown"

// A told campaign is what a reader gets: the ledger's, with the gate's counters, which include unrecorded coupons. Without these
// it has the ledger's, which nobody is told.
type told struct {
	ledger.Status
	gate string // gateOK, or why the gate's counters are unknown
}

// waiting returns how many people are in line, or nil if nobody can say. While the gate says nothing the ledger does not know who joined since.
func (c *told) waiting() *int64 {
	if c.gate != gateOK && !c.Closed {
		return nil
	}
	return &c.Line.Waiting
}

// known returns one of the gate's counters, or nil if nobody can say.
func (c *told) known(counter int64) *int64 {
	if c.gate != gateOK {
		return nil
	}
	return &counter
}

// state returns the word for what a newcomer's claim would get. A campaign that an operator closed stays
// closed, whatever became of its gate.
func (c *told) state() string {
	if (c.gate != gateOK || c.Unreadable != nil) && !c.Closed {
		return stateUnknown
	}
	return c.StateAt(c.Now, c.InForce)
}

// counted returns a campaign with the gate's counters. It is no error if the gate has lost it or
// belongs to another ledger: then above all operators need to read it.
func (s *campaigns) counted(ctx context.Context, c ledger.Status) (told, error) {
	if !s.atGate(&c) {
		return told{Status: c, gate: s.withoutGate(&c)}, nil
	}
	g, err := s.Gate.State(ctx, c.ID)
	return withGate(c, g, err)
}

// atGate tells whether the gate has a campaign's counters.
func (s *campaigns) atGate(c *ledger.Status) bool {
	return s.Gate != nil && s.Ledger.Decides(c) == nil && c.RetiredAt.IsZero() && c.Applied > 0
}

// withoutGate returns what the node knows of the gate of a campaign without asking it.
func (s *campaigns) withoutGate(c *ledger.Status) string {
	here := s.Ledger.Decides(c)
	switch {
	case !c.RetiredAt.IsZero() || here == nil:
		return gateOK
	case errors.Is(here, gate.ErrLost):
		return gateLost
	}
	return gateMismatch
}

// withGate adds what the gate answered.
func withGate(c ledger.Status, g gate.State, err error) (told, error) {
	switch {
	case errors.Is(err, firstcome.ErrGateMismatch):
		return told{Status: c, gate: gateMismatch}, nil
	case g.Ahead:
		return told{Status: c, gate: gateAhead}, nil
	case g.Behind:
		return told{Status: c, gate: gateBehind}, nil
	case errors.Is(err, gate.ErrLost) || err == nil && g.Lost:
		return told{Status: c, gate: gateLost}, nil
	case errors.Is(err, gate.ErrUnverified) || err == nil && g.Unverified:
		return told{Status: c, gate: gateUnverified}, nil
	case err != nil:
		return told{Status: c, gate: gateUnknown}, err
	}
	c.InForce, c.Issued, c.Now, c.Instants, c.Line.Waiting = g.InForce, g.Issued, g.Now, g.Instants, g.Waiting
	return told{Status: c, gate: gateOK}, nil
}

// listed returns campaigns with the gate's counters. No campaign keeps the others from being listed.
func (s *campaigns) listed(ctx context.Context, found []ledger.Status) []told {
	all := make([]told, len(found))
	var ids []firstcome.CampaignID
	for n := range found {
		if s.atGate(&found[n]) {
			ids = append(ids, found[n].ID)
		}
	}
	states := gate.States(ctx, s.Gate, ids)
	for n, c := range found {
		all[n] = told{Status: c, gate: s.withoutGate(&c)}
		if state, asked := states[c.ID]; asked {
			all[n], _ = withGate(c, state.State, state.Err) // what went wrong is told beside each
		}
	}
	return all
}
