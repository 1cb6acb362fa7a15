package api

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

// What a node knows of a campaign from its gate, in the words of the wire. Unless it is gateOK, the counters are
// the ledger's, and claims are answered 503.
const (
	gateOK       = "ok"
	gateLost     = "lost"     // see flow.ErrLost
	gateMismatch = "mismatch" // see firstcome.ErrGateMismatch
	gateUnknown  = "unknown"  // the gate did not answer
)

// stateUnknown is a campaign's state when nobody can say what a claim would get.
const stateUnknown = "unknown"

// A told campaign is what a reader gets: the ledger's, with the gate's counters, which include unrecorded coupons.
type told struct {
	ledger.Status
	gate string // gateOK, or why the counters are the ledger's
}

// state returns the word for what a newcomer's claim would get. A campaign that an operator closed stays
// closed, whatever became of its gate.
func (c *told) state() string {
	if (c.gate != gateOK || c.Unreadable != nil) && !c.Closed {
		return stateUnknown
	}
	return stateOf(c.Campaign, c.Now, c.InForce)
}

// counted returns a campaign with the gate's counters. It is no error if the gate has lost it or
// belongs to another ledger: then above all operators need to read it.
func (s *Server) counted(ctx context.Context, c ledger.Status) (told, error) {
	here := s.Ledger.Decides(&c)
	switch {
	case !c.RetiredAt.IsZero():
		return told{c, gateOK}, nil
	case errors.Is(here, flow.ErrLost):
		return told{c, gateLost}, nil
	case here != nil:
		return told{c, gateMismatch}, nil
	case s.Gate == nil || c.Applied == 0:
		return told{c, gateOK}, nil
	}
	g, err := s.Gate.State(ctx, c.ID)
	switch {
	case errors.Is(err, firstcome.ErrGateMismatch):
		return told{c, gateMismatch}, nil
	case errors.Is(err, flow.ErrLost) || err == nil && g.Lost:
		return told{c, gateLost}, nil
	case err != nil:
		return told{c, gateUnknown}, err
	}
	c.InForce, c.Issued, c.Now, c.Instants, c.Line.Waiting = g.InForce, g.Issued, g.Now, g.Instants, g.Waiting
	return told{c, gateOK}, nil
}

// listed returns campaigns with the gate's counters. No campaign keeps the others from being listed. If the gate does
// not answer, it is not asked about the rest.
func (s *Server) listed(ctx context.Context, found []ledger.Status) []told {
	all := make([]told, len(found))
	var away error
	for n, c := range found {
		if atGate := s.Ledger.Decides(&c) == nil && c.RetiredAt.IsZero(); away != nil && atGate {
			all[n] = told{c, gateUnknown}
			continue
		}
		var err error
		if all[n], err = s.counted(ctx, c); !flow.IsFatal(err) { // which is an answer
			away = err
		}
	}
	return all
}
