package flow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/point"
)

// A ChangeBook is a ledger as a Changer needs it.
type ChangeBook interface {
	// Pending returns the changes that the gate lacks, of one campaign or, if id is empty, of all.
	// Each campaign's are in order. With an error come those that could be read.
	Pending(ctx context.Context, id firstcome.CampaignID) ([]firstcome.Change, error)
	// Applied notes that the gate has a change, or refused it. It may be repeated.
	Applied(ctx context.Context, change firstcome.Change, refused bool) error
	// Refused tells whether the gate refused a change.
	Refused(ctx context.Context, id firstcome.CampaignID, version int64) (bool, error)
}

// A Changer brings the changes that the ledger numbered to a remote gate, and notes
// in the ledger that they are there. Each step may be repeated, so any number of
// Changers may finish the same change at once, and one that dies leaves nothing
// that another cannot finish.
type Changer struct {
	book   ChangeBook
	gate   gate.Applier
	stats  struct{ applied, refused, failed atomic.Int64 }
	onFail func(error) // nil: nobody is told
}

// ChangerStats are a Changer's counters since its start.
type ChangerStats struct {
	Applied int64 // changes that the gate has, as this Changer noted
	Refused int64 // changes that the gate refused
	Failed  int64 // attempts that failed
}

const (
	// sweepChanges is how often a node looks for changes that another one, which
	// died, left undone. Operators wait for their own in Finish.
	sweepChanges = time.Second
	// sweepTime bounds a sweep while the gate or the ledger hangs.
	sweepTime = 10 * time.Second
	// operatorWait is how long an operator waits for a change to reach the gate: as long as a
	// claim may wait for one.
	operatorWait = 5 * time.Second
)

// NewChanger returns a Changer from a ledger to a gate. onFail, if not nil, gets the error
// of each sweep that left something undone.
func NewChanger(book ChangeBook, gate gate.Applier, onFail func(error)) *Changer {
	return &Changer{book: book, gate: gate, onFail: onFail}
}

// Stats returns the counters.
func (c *Changer) Stats() ChangerStats {
	return ChangerStats{Applied: c.stats.applied.Load(), Refused: c.stats.refused.Load(), Failed: c.stats.failed.Load()}
}

// ErrUnfinished says that a change is in the ledger and has not reached the gate.
var ErrUnfinished = errors.New("the change is in the ledger, and the gate does not have it yet: it will be done. Read the campaign to see it")

// Do makes a change of a campaign in the ledger, by calling number, and brings it to the
// gate. number returns the version that it made, or 0 if no gate refuses it or there was
// nothing to change. If it returns firstcome.ErrPending, Do finishes the earlier change
// and calls it again. Do returns number's error, ErrUnfinished, or
// firstcome.ErrBelowInForce if the gate refused the change.
func (c *Changer) Do(ctx context.Context, id firstcome.CampaignID, number func() (version int64, err error)) error {
	for {
		version, err := number()
		if err == nil {
			point.Reach(point.Numbered)
			return c.finishSoon(ctx, id, version)
		}
		if !errors.Is(err, firstcome.ErrPending) {
			return err
		}
		// An operator who always meets an earlier change stops when ctx ends.
		if err := errors.Join(c.finishSoon(ctx, id, 0), ctx.Err()); err != nil {
			return errors.Join(firstcome.ErrPending, err)
		}
	}
}

// finishSoon is Finish for as long as an operator waits.
func (c *Changer) finishSoon(ctx context.Context, id firstcome.CampaignID, version int64) error {
	ctx, cancel := context.WithTimeout(ctx, operatorWait)
	defer cancel()
	err := c.Finish(ctx, id, version)
	if err != nil && !errors.Is(err, firstcome.ErrBelowInForce) {
		return errors.Join(ErrUnfinished, err)
	}
	return err
}

// Finish brings a campaign's changes to the gate. It tries until ctx ends, which is
// an error: the next sweep of any node will do it. If version is not 0 and the gate
// refused that change, the error is firstcome.ErrBelowInForce.
func (c *Changer) Finish(ctx context.Context, id firstcome.CampaignID, version int64) error {
	attempt := func() (struct{}, error) {
		err := c.finish(ctx, id)
		if errors.Is(err, gate.ErrLost) || errors.Is(err, gate.ErrGap) || errors.Is(err, gate.ErrForgotten) || errors.Is(err, firstcome.ErrGateMismatch) {
			err = backoff.Permanent(err) // waiting does not help: somebody has to verify the gate first
		}
		return struct{}{}, err
	}
	waits := backoff.WithBackOff(backOff(firstWait, sweepChanges))
	if _, err := backoff.Retry(ctx, attempt, waits, backoff.WithMaxElapsedTime(0)); err != nil {
		return fmt.Errorf("bring the changes of %s to its gate: %w", id, err)
	}
	if version == 0 {
		return nil
	}
	refused, err := c.book.Refused(ctx, id, version)
	if err == nil && refused {
		err = firstcome.ErrBelowInForce
	}
	return err
}

// finish makes one attempt at a campaign's pending changes.
func (c *Changer) finish(ctx context.Context, id firstcome.CampaignID) error {
	pending, err := c.book.Pending(ctx, id)
	if err != nil {
		return err
	}
	for _, change := range pending {
		if err := c.apply(ctx, change); err != nil {
			return err
		}
	}
	return nil
}

// apply brings one change to the gate and notes it.
func (c *Changer) apply(ctx context.Context, change firstcome.Change) error {
	refused, err := c.gate.Apply(ctx, change)
	if err == nil {
		point.Reach(point.Applied)
		err = c.book.Applied(ctx, change, refused)
	}
	switch {
	case err != nil:
		c.stats.failed.Add(1)
		return fmt.Errorf("change %d of %s: %w", change.Version, change.Campaign, err)
	case refused:
		c.stats.refused.Add(1)
	default:
		c.stats.applied.Add(1)
	}
	return nil
}

// Run finishes changes that others left undone, until ctx ends.
func (c *Changer) Run(ctx context.Context) error {
	for sleep(ctx, around(sweepChanges)) == nil {
		if err := c.sweep(ctx); err != nil && c.onFail != nil {
			c.onFail(err)
		}
	}
	return nil
}

// sweep makes one attempt at all campaigns' pending changes. One that fails
// does not hold up the others, unless it used up the sweep's time.
func (c *Changer) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	pending, failed := c.book.Pending(ctx, "")
	if len(pending) == 0 {
		return failed
	}
	// Each sweep begins with another campaign, so that a gate that hangs at one does
	// not starve the rest.
	undone := map[firstcome.CampaignID]bool{}
	first := rand.N(len(pending))
	for first > 0 && pending[first].Campaign == pending[first-1].Campaign {
		first--
	}
	for _, change := range slices.Concat(pending[first:], pending[:first]) {
		if undone[change.Campaign] || ctx.Err() != nil {
			continue
		}
		if err := c.apply(ctx, change); err != nil {
			undone[change.Campaign], failed = true, err
		}
	}
	return failed
}
