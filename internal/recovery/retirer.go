package recovery

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/wait"
)

// A Retirements is the part of a ledger that a Retirer needs.
type Retirements interface {
	// Retiring returns the campaigns that closed at least the duration closed ago, and those that were marked at least the duration marked ago and of
	// which the gate may still have keys.
	Retiring(ctx context.Context, closed, marked time.Duration) ([]Retiring, error)
	// Retire marks a campaign as retired. It does not if the ledger is still working on the campaign, or knows more than the gate's state seen. It
	// may be repeated.
	Retire(ctx context.Context, id firstcome.CampaignID, seen gate.State, age time.Duration) (retired bool, err error)
	// Forgotten notes that the gate no longer has anything of a campaign. It may be repeated.
	Forgotten(ctx context.Context, id firstcome.CampaignID) error
}

// A Retiring is a campaign that needs a step of a Retirer.
type Retiring struct {
	Campaign firstcome.CampaignID
	Marked   bool // as retired, in the ledger
}

// A Forgetter is the part of a remote gate that a Retirer needs.
type Forgetter interface {
	// Claim works as in gate.Decider.
	Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)
	State(ctx context.Context, id firstcome.CampaignID) (gate.State, error)
	// Retire deletes a campaign at the gate, after which the ledger answers for it. It may be repeated, even if the gate does not have the campaign.
	Retire(ctx context.Context, id firstcome.CampaignID) error
}

const (
	// DefaultRetireAfter is how long a campaign that has ended stays at its gate. In the first days after a drop, people look up their coupons, and
	// operators correct mistakes.
	DefaultRetireAfter = 7 * 24 * time.Hour
	// forgetAfter is how long a campaign stays at its gate after it was marked as retired. Every recorder lists the active campaigns about once a
	// second, and gives up a call after 30 s. So no recorder reads the journal any longer when it is deleted.
	forgetAfter = time.Minute
	// retireEvery is how often each node looks for campaigns that have ended. They are few, and an hour is short compared with days.
	retireEvery = time.Hour
	// firstRetire is the longest wait before the first look. The wait is random, so that nodes that start together do not look together.
	firstRetire = time.Minute
	// retireTime is the time-out of one step with one campaign.
	retireTime = 10 * time.Second
)

// A Retirer deletes campaigns that closed long ago from a gate. Each look takes one step with each of them:
//
//	closed → marked in the ledger, which from then on answers if the gate does not → deleted at the gate, and noted
//
// A claim or a change that saw the campaign active still finds it at the gate between the two steps. Each step may be repeated, so a node may die at
// any time. Any number of Retirers may run.
type Retirer struct {
	ledger Retirements
	gate   Forgetter
	after  time.Duration
	stats  struct{ retired, forgotten, failed atomic.Int64 }
	onFail func(error) // may be nil
}

// RetirerStats are a Retirer's counters since its start.
type RetirerStats struct {
	Retired   int64 // campaigns that this Retirer marked, or found marked
	Forgotten int64 // campaigns that this Retirer deleted at the gate
	Failed    int64 // steps that failed
}

// NewRetirer returns a Retirer of campaigns that ended at least after ago; 0 means DefaultRetireAfter. onFail, if not nil, gets the error of each
// look that failed for a campaign.
func NewRetirer(book Retirements, gate Forgetter, after time.Duration, onFail func(error)) *Retirer {
	return &Retirer{ledger: book, gate: gate, after: cmp.Or(after, DefaultRetireAfter), onFail: onFail}
}

// Stats returns the counters.
func (r *Retirer) Stats() RetirerStats {
	return RetirerStats{Retired: r.stats.retired.Load(), Forgotten: r.stats.forgotten.Load(), Failed: r.stats.failed.Load()}
}

// Run looks about once an hour, the first time within a minute, until ctx ends.
func (r *Retirer) Run(ctx context.Context) error {
	for pause := rand.N(firstRetire); wait.Sleep(ctx, pause) == nil; pause = retireEvery/2 + rand.N(retireEvery) {
		_ = r.Look(ctx) // onFail has got the error
	}
	return nil
}

// Look takes the next step with each campaign. A campaign that fails does not hold up the others, and is tried again at the next look.
func (r *Retirer) Look(ctx context.Context) error {
	err := r.steps(ctx)
	if err != nil && ctx.Err() == nil && r.onFail != nil {
		r.onFail(err)
	}
	return err
}

// steps takes one step with each campaign, and returns the last error.
func (r *Retirer) steps(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, retireTime)
	all, failed := r.ledger.Retiring(bounded, r.after, forgetAfter)
	cancel()
	for _, c := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		step := r.mark
		if c.Marked {
			step = r.forget
		}
		bounded, cancel := context.WithTimeout(ctx, retireTime)
		if err := step(bounded, c.Campaign); err != nil {
			r.stats.failed.Add(1)
			failed = fmt.Errorf("retire %s: %w", c.Campaign, err)
		}
		cancel()
	}
	return failed
}

// mark marks a campaign, if the ledger agrees. The claim without users makes the gate store that the window has closed, so that a clock that goes
// back does not reopen it before the gate deletes it.
func (r *Retirer) mark(ctx context.Context, id firstcome.CampaignID) error {
	if _, err := r.gate.Claim(ctx, id, nil); err != nil {
		return err
	}
	seen, err := r.gate.State(ctx, id)
	if err != nil {
		return err
	}
	retired, err := r.ledger.Retire(ctx, id, seen, r.after)
	if retired {
		r.stats.retired.Add(1)
	}
	return err
}

// forget deletes a marked campaign at the gate.
func (r *Retirer) forget(ctx context.Context, id firstcome.CampaignID) error {
	if err := r.gate.Retire(ctx, id); err != nil {
		return err
	}
	if err := r.ledger.Forgotten(ctx, id); err != nil {
		return err
	}
	r.stats.forgotten.Add(1)
	return nil
}
