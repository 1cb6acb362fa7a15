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
	Changer  *flow.Changer
	Recorded *flow.Recorded
	// Taken returns firstcome.ErrGateMismatch if the gate has another ledger's campaign of
	// an id; nil: nobody knows.
	Taken func(context.Context, firstcome.CampaignID) error
	// AnswerWait is how long a claim waits for the ledger, where its campaign wants
	// that; 0: flow.DefaultAnswerWait.
	AnswerWait time.Duration
	// Recorder is this node's, for its metrics; nil: it records nothing.
	Recorder *flow.Recorder
	// Retirer is this node's, for its metrics; nil: they do not say.
	Retirer *flow.Retirer
	// Alarms returns how many alarms there were of the journal that this node drains; nil:
	// it drains none.
	Alarms func() int64
	// Lag returns how far the ledger is behind the gate in each of these campaigns
	// that has anything unrecorded, for the metrics; nil: they do not say.
	Lag func(context.Context, []flow.Revision) ([]flow.Lag, error)
}

// changeWait is how long an operator waits for a change to reach the gate: as long
// as a claim may wait for one.
const changeWait = 5 * time.Second

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

// errUnfinished says that a change is in the ledger and has not reached the gate.
var errUnfinished = errors.New("the change is in the ledger, and the gate does not have it yet: it will be done. Read the campaign to see it")

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

// changed does a change of a campaign in the ledger, and sees to it that the gate
// has it: then it is done.
func (s *Server) changed(ctx context.Context, id firstcome.CampaignID, do func(context.Context) (ledger.Status, error)) (told, error) {
	if s.Remote == nil {
		c, err := do(ctx)
		return told{c, gateOK}, err
	}
	for {
		c, err := do(ctx)
		if errors.Is(err, firstcome.ErrPending) {
			if err = s.finishEarlier(ctx, id); err == nil {
				continue
			}
		}
		// Another node may have brought it there already, and the gate refused it.
		if err == nil && (c.Change > 0 || c.Applied < c.Version) {
			if err = s.finish(ctx, id, c.Change); err == nil {
				c, err = s.Ledger.Campaign(ctx, id)
			}
		}
		if err != nil {
			return told{}, err
		}
		return s.counted(ctx, c)
	}
}

// finish brings a campaign's changes to the gate, and says what became of one.
func (s *Server) finish(ctx context.Context, id firstcome.CampaignID, version int64) error {
	ctx, cancel := context.WithTimeout(ctx, changeWait)
	defer cancel()
	err := s.Remote.Changer.Finish(ctx, id, version)
	if err != nil && !errors.Is(err, firstcome.ErrBelowInForce) {
		return errors.Join(errUnfinished, err)
	}
	return err
}

// finishEarlier brings the changes to the gate for which the next has to wait.
func (s *Server) finishEarlier(ctx context.Context, id firstcome.CampaignID) error {
	err := s.finish(ctx, id, 0)
	if err == nil {
		err = ctx.Err() // whoever asks again and again ends with it, whatever the ledger says
	}
	if err != nil {
		return errors.Join(firstcome.ErrPending, err)
	}
	return nil
}

// voided takes a coupon back, at the gate too.
func (s *Server) voided(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (firstcome.Coupon, error) {
	if s.Remote == nil {
		return s.Ledger.Void(ctx, actor, id, number, reason)
	}
	for {
		coupon, err := s.Ledger.Void(ctx, actor, id, number, reason)
		switch {
		case errors.Is(err, firstcome.ErrPending):
			if err := s.finishEarlier(ctx, id); err != nil {
				return coupon, err
			}
		case errors.Is(err, firstcome.ErrNotRecorded):
			return coupon, s.notRecorded(ctx, id, number)
		case err != nil:
			return coupon, err
		default:
			return coupon, s.finish(ctx, id, 0)
		}
	}
}

// notRecorded returns the error for a number that the ledger does not have: it is
// on its way, or was never issued.
func (s *Server) notRecorded(ctx context.Context, id firstcome.CampaignID, number int64) error {
	g, err := s.Remote.Gate.State(ctx, id)
	switch {
	case err != nil:
		return err
	case number > g.LastNumber:
		return firstcome.ErrNoCoupon
	}
	return firstcome.ErrNotRecorded
}
