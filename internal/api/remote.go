package api

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
)

// takenWait is how long who makes a campaign waits to hear that its id is taken at the gate. That
// is not known for certain before the gate makes it, and this is a few milliseconds' work.
const takenWait = time.Second

// taken returns an error if another ledger has a campaign of an id at the gate, so that none is
// made here which is never decided.
func (s *Server) taken(ctx context.Context, id firstcome.CampaignID) error {
	if s.Taken == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, takenWait)
	defer cancel()
	if errors.Is(s.Taken(ctx, id), firstcome.ErrGateMismatch) {
		return newProblem(idAtGate, "the gate has a campaign of this id of another ledger, and nothing was made: choose another id, or give each ledger a gate of its own")
	}
	return nil
}
