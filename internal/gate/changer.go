package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/internal/wait"
)

// A ChangeLog is the part of a ledger that a Changer needs.
type ChangeLog interface {
	// Pending returns the changes that the gate lacks, of one campaign or, if id is empty, of all campaigns. The changes of each campaign are in
	// order. Together with an error it returns those that could be read.
	Pending(ctx context.Context, id firstcome.CampaignID) ([]firstcome.Change, error)
	// Applied notes that the gate has a change, or refused it. It may be repeated.
	Applied(ctx context.Context, change firstcome.Change, refused bool) error
	// Refusal returns why the gate refused a change, firstcome.ErrBelowInForce or ErrPrizesFixed, or nil if it did not refuse it.
	Refusal(ctx context.Context, id firstcome.CampaignID, version int64) (refusal, err error)
}

// A Changer applies the changes that the ledger has numbered to a remote gate, and notes in the ledger that the gate has them. Each step may be
// repeated, so several Changers may finish the same change at once, and any other can finish what one leaves when it dies.
type Changer struct {
	ledger ChangeLog
	gate   Applier
	stats  struct{ applied, refused, failed atomic.Int64 }
	onFail func(error) // may be nil
}

// ChangerStats are a Changer's counters since its start.
type ChangerStats struct {
	Applied int64 // changes that this Changer applied and noted
	Refused int64 // changes that the gate refused
	Failed  int64 // attempts that failed
}

const (
	// sweepChanges is how often a node looks for changes that another node left unfinished when it died. An operator's own change is finished in
	// Finish.
	sweepChanges = time.Second
	// sweepTime is the time-out of a sweep, for a gate or a ledger that hangs.
	sweepTime = 10 * time.Second
	// operatorWait is how long an operator waits for a change to reach the gate: as long as a claim may wait for one.
	operatorWait = 5 * time.Second
)

// NewChanger returns a Changer from a ledger to a gate. onFail, if not nil, gets the error of each sweep that left a change unfinished.
func NewChanger(book ChangeLog, gate Applier, onFail func(error)) *Changer {
	return &Changer{ledger: book, gate: gate, onFail: onFail}
}

// Stats returns the counters.
func (c *Changer) Stats() ChangerStats {
	return ChangerStats{Applied: c.stats.applied.Load(), Refused: c.stats.refused.Load(), Failed: c.stats.failed.Load()}
}

// ErrUnfinished means that a change is in the ledger and has not reached the gate yet.
var ErrUnfinished = errors.New("the change is in the ledger, and the gate does not have it yet: it will be done. Read the campaign to see it")

// Do makes a change of a campaign in the ledger, by calling number, and applies it to the gate. number returns the version of the change, or 0 if the
// gate cannot refuse it or there was nothing to change. If number returns firstcome.ErrPending, Do finishes the earlier change and calls it again. Do
// returns number's error, ErrUnfinished, or why the gate refused the change: see ChangeLog.
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
		// Other operators' changes may keep coming first. The loop ends with ctx.
		if err := errors.Join(c.finishSoon(ctx, id, 0), ctx.Err()); err != nil {
			return errors.Join(firstcome.ErrPending, err)
		}
	}
}

// finishSoon calls Finish with the time that an operator waits.
func (c *Changer) finishSoon(ctx context.Context, id firstcome.CampaignID, version int64) error {
	ctx, cancel := context.WithTimeout(ctx, operatorWait)
	defer cancel()
	err := c.Finish(ctx, id, version)
	if err != nil && !isRefusal(err) {
		return errors.Join(ErrUnfinished, err)
	}
	return err
}

func isRefusal(err error) bool {
	return errors.Is(err, firstcome.ErrBelowInForce) || errors.Is(err, firstcome.ErrPrizesFixed)
}

// Finish applies a campaign's changes to the gate. It tries until ctx ends, which is an error: the next sweep of any node will finish them. If
// version is not 0 and the gate refused that change, the error is why it did: see ChangeLog.
func (c *Changer) Finish(ctx context.Context, id firstcome.CampaignID, version int64) error {
	attempt := func() (struct{}, error) {
		err := c.finish(ctx, id)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrGap) || errors.Is(err, ErrLedgerForgot) || errors.Is(err, firstcome.ErrGateMismatch) {
			err = backoff.Permanent(err) // waiting does not help: the gate must be verified or rebuilt first
		}
		return struct{}{}, err
	}
	waits := backoff.WithBackOff(wait.NewBackoff(wait.First, sweepChanges))
	if _, err := backoff.Retry(ctx, attempt, waits, backoff.WithMaxElapsedTime(0)); err != nil {
		return fmt.Errorf("bring the changes of %s to its gate: %w", id, err)
	}
	if version == 0 {
		return nil
	}
	refusal, err := c.ledger.Refusal(ctx, id, version)
	return cmp.Or(err, refusal)
}

// finish tries once to apply a campaign's pending changes.
func (c *Changer) finish(ctx context.Context, id firstcome.CampaignID) error {
	pending, err := c.ledger.Pending(ctx, id)
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

// apply applies one change to the gate, and notes it in the ledger.
func (c *Changer) apply(ctx context.Context, change firstcome.Change) error {
	refused, err := c.gate.Apply(ctx, change)
	if err == nil {
		point.Reach(point.Applied)
		err = c.ledger.Applied(ctx, change, refused)
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

// Run finishes changes that other nodes left unfinished, until ctx ends.
func (c *Changer) Run(ctx context.Context) error {
	for wait.Sleep(ctx, wait.Jitter(sweepChanges)) == nil {
		if err := c.sweep(ctx); err != nil && c.onFail != nil {
			c.onFail(err)
		}
	}
	return nil
}

// sweep tries once to apply all campaigns' pending changes. A campaign that fails does not hold up the others, unless it uses up the sweep's time.
func (c *Changer) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	pending, failed := c.ledger.Pending(ctx, "")
	if len(pending) == 0 {
		return failed
	}
	// Each sweep begins with a random campaign, so that a gate that hangs at one campaign does not starve the others.
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
