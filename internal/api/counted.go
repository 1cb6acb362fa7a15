package api

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// The values of gate_state: the state of a campaign's gate, as this node sees it. Unless it is gateOK, the gate's
// counters are unknown, and claims are answered 503.
const (
	gateOK         = "ok"
	gateLost       = "lost"               // see gate.ErrGone
	gateUnverified = "unverified"         // see gate.ErrUnverified
	gateMismatch   = "mismatch"           // see firstcome.ErrGateMismatch
	gateUnknown    = "unknown"            // the gate did not answer, or the campaign's creation has not reached it
	gateRolledBack = "ledger_rolled_back" // see gate.LedgerRolledBackError
	gateStaleEpoch = "stale_epoch"        // see gate.StaleEpochError
)

// stateUnknown is the state of a campaign when the outcome of a claim cannot be known.
const stateUnknown = "unknown"

// A told campaign is the ledger's campaign with the gate's counters, which include unrecorded coupons. If gate is not
// gateOK, the counters are the ledger's, and answers omit them.
type told struct {
	ledger.Status
	gate string // gateOK, or the reason why the gate's counters are unknown
}

// waiting returns how many users are in line, or nil if unknown. While the gate's counters are unknown, the ledger does
// not know who joined.
func (c *told) waiting() *int64 {
	if c.gate != gateOK && !c.Closed {
		return nil
	}
	return &c.Line.Waiting
}

// known returns one of the gate's counters, or nil if unknown.
func (c *told) known(counter int64) *int64 {
	if c.gate != gateOK {
		return nil
	}
	return &counter
}

// state returns the campaign's state, which predicts the outcome of a new user's claim. A campaign that an operator
// closed stays closed, whatever the state of its gate.
func (c *told) state() string {
	if (c.gate != gateOK || c.Unreadable != nil) && !c.Closed {
		return stateUnknown
	}
	return c.StateAt(c.Now, c.InForce)
}

// counted returns a campaign with the gate's counters. If the gate has lost the campaign or belongs to another ledger,
// counted returns no error, because operators need to read the campaign then.
func (s *campaigns) counted(ctx context.Context, c ledger.Status) (told, error) {
	if !s.atGate(&c) {
		return told{Status: c, gate: s.withoutGate(&c)}, nil
	}
	g, err := s.Gate.State(ctx, c.ID)
	return withGate(c, g, err)
}

// atGate reports whether the gate has a campaign's counters.
func (s *campaigns) atGate(c *ledger.Status) bool {
	return s.Gate != nil && s.Ledger.Decides(c) == nil && c.RetiredAt.IsZero() && !c.Creating()
}

// withoutGate returns the state of a campaign's gate as far as the node knows it without asking the gate.
func (s *campaigns) withoutGate(c *ledger.Status) string {
	here := s.Ledger.Decides(c)
	switch {
	case here == nil && c.RetiredAt.IsZero() && c.Creating():
		return gateUnknown
	case !c.RetiredAt.IsZero() || here == nil:
		return gateOK
	case errors.Is(here, gate.ErrGone):
		return gateLost
	}
	return gateMismatch
}

// withGate adds the gate's answer to a campaign.
func withGate(c ledger.Status, g gate.State, err error) (told, error) {
	switch {
	case errors.Is(err, firstcome.ErrGateMismatch):
		return told{Status: c, gate: gateMismatch}, nil
	case g.LedgerRolledBack:
		return told{Status: c, gate: gateRolledBack}, nil
	case g.StaleEpoch:
		return told{Status: c, gate: gateStaleEpoch}, nil
	case errors.Is(err, gate.ErrGone) || err == nil && g.Gone:
		return told{Status: c, gate: gateLost}, nil
	case errors.Is(err, gate.ErrUnverified) || err == nil && g.Unverified:
		return told{Status: c, gate: gateUnverified}, nil
	case err != nil:
		return told{Status: c, gate: gateUnknown}, err
	}
	if !c.Closed || g.LastNumber > c.DrainedThrough { // the last number of a gate that was rebuilt after the close was given to nobody
		c.LastNumber = g.LastNumber
	}
	c.InForce, c.Issued, c.Now, c.Instants, c.Line.Waiting = g.InForce, g.Issued, g.Now, g.Instants, g.Waiting
	return told{Status: c, gate: gateOK}, nil
}

// listed returns campaigns with the gate's counters. An error of one campaign does not affect the others.
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
			all[n], _ = withGate(c, state.State, state.Err) // the state of each shows its error
		}
	}
	return all
}
