package api

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A Remote is what a Server stands on besides where another gate than the ledger
// decides.
type Remote struct {
	Gate     flow.RemoteGate
	Name     string // of the gate, as the campaigns have it
	Recorded *flow.Recorded
	// Taken returns firstcome.ErrGateMismatch if the gate has another ledger's campaign of
	// an id; nil: nobody knows.
	Taken func(context.Context, firstcome.CampaignID) error
	// AnswerWait is how long a claim waits for the ledger, where its campaign wants
	// that; 0: flow.DefaultAnswerWait.
	AnswerWait time.Duration
}

// takenWait is how long who makes a campaign waits to hear that its id is taken at the gate. That
// is not known for certain before the gate makes it, and this is a few milliseconds' work.
const takenWait = time.Second

// taken returns an error if another ledger has a campaign of an id at the gate, so that none is
// made here which is never decided.
func (s *Server) taken(ctx context.Context, id firstcome.CampaignID) error {
	if s.Remote == nil || s.Remote.Taken == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, takenWait)
	defer cancel()
	if errors.Is(s.Remote.Taken(ctx, id), firstcome.ErrGateMismatch) {
		return newProblem(idAtGate, "the gate has a campaign of this id of another ledger, and nothing was made: choose another id, or give each ledger a gate of its own")
	}
	return nil
}

// claimer returns what answers claims.
func (s *Server) claimer() flow.Claimer {
	if s.Remote == nil {
		return s.Issuer
	}
	return s.answerer()
}

func (s *Server) answerer() *flow.Answerer {
	return &flow.Answerer{
		Issuer: s.Issuer, Recorded: s.Remote.Recorded, Wait: s.Remote.AnswerWait,
		Terms: func(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
			t, err := s.terms.get(ctx, id, version)
			if err != nil {
				return firstcome.Terms{}, err
			}
			return t.Terms, nil
		},
	}
}

// remote tells whether the campaign is decided by a gate that is not the ledger.
func (s *Server) remote(c *ledger.Status) bool {
	return s.Remote != nil && c.Gate == s.Remote.Name && c.RetiredAt.IsZero()
}

// couponOf returns the coupon in force that a user holds, as it may be told.
func (s *Server) couponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	if s.Remote == nil {
		return s.Ledger.CouponOf(ctx, id, user)
	}
	c, err := s.Remote.Gate.CouponOf(ctx, id, user)
	if errors.Is(err, flow.ErrRetired) {
		return s.Ledger.CouponOf(ctx, id, user)
	}
	if err != nil || c.Recorded {
		return c, err
	}
	return s.answerer().Await(ctx, c)
}
