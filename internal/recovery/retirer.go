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
)

// A RetireBook is a ledger as a Retirer needs it.
type RetireBook interface {
	// Retiring returns the campaigns closed at least an age ago, and those marked at least an age
	// ago that the gate may still have in part.
	Retiring(ctx context.Context, closed, marked time.Duration) ([]Retiring, error)
	// Retire marks a campaign as retired, unless something of it is under way in the ledger, or the ledger knows more
	// than its gate in the state seen. It may be repeated.
	Retire(ctx context.Context, id firstcome.CampaignID, seen gate.State, age time.Duration) (retired bool, err error)
	// Forgotten notes that the gate no longer has anything of a campaign. It may be repeated.
	Forgotten(ctx context.Context, id firstcome.CampaignID) error
}

// A Retiring is a campaign that a Retirer has to do something about.
type Retiring struct {
	Campaign firstcome.CampaignID
	Marked   bool // in the ledger as retired
}

// A Forgetter is a remote gate as a Retirer needs it.
type Forgetter interface {
	// Claim is a Gate's.
	Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)
	State(ctx context.Context, id firstcome.CampaignID) (gate.State, error)
	// Retire has the gate forget a campaign for which the ledger answers. It may be
	// repeated, even if the gate does not know the campaign.
	Retire(ctx context.Context, id firstcome.CampaignID) error
}

const (
	// DefaultRetireAfter is how long a campaign that is over stays at its gate: people
	// look for their coupons for some days after a drop, and operators correct its end.
	DefaultRetireAfter = 7 * 24 * time.Hour
	// forgetAfter is how long a retired campaign stays at its gate: every recorder looks for
	// active campaigns about once a second and gives up a call after 30 s, so none is at the
	// journal when it is deleted.
	forgetAfter = time.Minute
	// retireEvery is how often each node looks for campaigns that are over: they are
	// few, and an hour is little compared with days.
	retireEvery = time.Hour
	// firstRetire bounds the wait for the first look, so that nodes that start together
	// do not look together.
	firstRetire = time.Minute
	// retireTime bounds one step with one campaign.
	retireTime = 10 * time.Second
)

// A Retirer has a gate forget campaigns that closed long ago. Each look takes one step with each of
// them:
//
//	closed → marked in the ledger, which answers where the gate no longer does → deleted at the gate, and noted
//
// A claim or a change that saw the campaign active finds it at the gate between the two. Each step may
// be repeated, so it does not matter which node dies when. Any number may run.
type Retirer struct {
	book   RetireBook
	gate   Forgetter
	after  time.Duration
	stats  struct{ retired, forgotten, failed atomic.Int64 }
	onFail func(error) // nil: nobody is told
}

// RetirerStats are a Retirer's counters since its start.
type RetirerStats struct {
	Retired   int64 // campaigns that this Retirer found retired after it tried
	Forgotten int64 // campaigns that this Retirer had the gate forget
	Failed    int64 // campaigns at which it failed, each time
}

// NewRetirer returns a Retirer of campaigns that have been over for after; 0:
// DefaultRetireAfter. onFail, if not nil, gets the error of each look that left something undone.
func NewRetirer(book RetireBook, gate Forgetter, after time.Duration, onFail func(error)) *Retirer {
	return &Retirer{book: book, gate: gate, after: cmp.Or(after, DefaultRetireAfter), onFail: onFail}
}

// Stats returns the counters.
func (r *Retirer) Stats() RetirerStats {
	return RetirerStats{Retired: r.stats.retired.Load(), Forgotten: r.stats.forgotten.Load(), Failed: r.stats.failed.Load()}
}

// Run looks about once an hour, the first time within a minute, until ctx ends.
func (r *Retirer) Run(ctx context.Context) error {
	for pause := rand.N(firstRetire); sleep(ctx, pause) == nil; pause = retireEvery/2 + rand.N(retireEvery) {
		_ = r.Look(ctx) // onFail hears of it
	}
	return nil
}

// Look takes the next step with each campaign. One that fails does not hold up the others, and is tried
// again at the next look.
func (r *Retirer) Look(ctx context.Context) error {
	err := r.steps(ctx)
	if err != nil && ctx.Err() == nil && r.onFail != nil {
		r.onFail(err)
	}
	return err
}

// steps takes a step with each campaign. It returns the last error.
func (r *Retirer) steps(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, retireTime)
	all, failed := r.book.Retiring(bounded, r.after, forgetAfter)
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

// mark marks a campaign, if the ledger agrees. A claim by no user makes the gate write down that the window has
// closed, so that a clock that goes back does not reopen it before the gate deletes it.
func (r *Retirer) mark(ctx context.Context, id firstcome.CampaignID) error {
	if _, err := r.gate.Claim(ctx, id, nil); err != nil {
		return err
	}
	seen, err := r.gate.State(ctx, id)
	if err != nil {
		return err
	}
	retired, err := r.book.Retire(ctx, id, seen, r.after)
	if retired {
		r.stats.retired.Add(1)
	}
	return err
}

// forget has the gate forget a marked campaign.
func (r *Retirer) forget(ctx context.Context, id firstcome.CampaignID) error {
	if err := r.gate.Retire(ctx, id); err != nil {
		return err
	}
	if err := r.book.Forgotten(ctx, id); err != nil {
		return err
	}
	r.stats.forgotten.Add(1)
	return nil
}
