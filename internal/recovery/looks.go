package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

// Run rebuilds what needs it until ctx ends, where the gate's server still has the gate's name: after a restart or a promotion, and where
// keys are missing. A server without the name was emptied, or is another one: then an operator has to call Rebuild. So it is with a gate in
// a stale epoch: a campaign whose epoch has ended is asked about at the next look. With Auto no operator has to.
func (r *Machine) Run(ctx context.Context) error {
	var reports sync.WaitGroup
	defer reports.Wait()
	reports.Go(func() { r.sight.report(ctx) })
	var runs []Run
	var looked time.Time
	var silent map[firstcome.CampaignID]bool
	for {
		active, unread := r.book.Active(ctx)
		if unread == nil {
			r.begun(active)
		}
		now, err := r.gate.Runs(ctx)
		if err == nil && !slices.Equal(now, runs) {
			err, looked = r.sight.see(ctx, now), time.Time{}
		}
		if err == nil {
			runs = now
		}
		if err == nil {
			err = unread
		}
		if err == nil && time.Since(looked) > wholeLook {
			silent = r.look(ctx, active, nil)
			looked = time.Now()
		} else if ids := r.known(); err == nil && len(ids)+len(silent) > 0 {
			maps.Copy(ids, silent)
			silent = r.look(ctx, active, ids)
		}
		if r.await(ctx) != nil {
			return nil
		}
	}
}

// first puts open campaigns first, and of those the ones that somebody asked for.
func first(all []gate.Revision, noticed map[firstcome.CampaignID]bool) []gate.Revision {
	rank := func(a gate.Revision) int {
		switch {
		case a.Open && noticed[a.Campaign]:
			return 0
		case a.Open:
			return 1
		case noticed[a.Campaign]:
			return 2
		}
		return 3
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b gate.Revision) int { return rank(a) - rank(b) })
}

// look asks the gate of some of the active campaigns, or of all, and rebuilds those that need it. A rebuild begins as soon as its campaign is found
// and fewer than sideBySide are under way; the look goes on beside it. If it asks of all, it returns those of which it got no answer: they are asked
// about once more.
func (r *Machine) look(ctx context.Context, active []gate.Revision, some map[firstcome.CampaignID]bool) (silent map[firstcome.CampaignID]bool) {
	silent = map[firstcome.CampaignID]bool{}
	found := make(chan func(), len(active))
	var rebuilds sync.WaitGroup
	for range sideBySide {
		rebuilds.Go(func() {
			for rebuild := range found {
				rebuild()
			}
		})
	}
	// What empties a server takes the name with the keys. So the name is asked for once keys were missing.
	named := sync.OnceValue(func() bool {
		if r.Auto && r.gate.Rename(ctx) != nil {
			return false
		}
		is, err := r.gate.Named(ctx)
		return is && err == nil
	})
	agreed := sync.OnceValue(func() bool { return r.Auto && r.sight.agreed(ctx) })
	for _, a := range first(active, r.known()) {
		if some != nil && !some[a.Campaign] {
			continue
		}
		err := r.stands(ctx, a)
		if err == nil || gate.NeedsRebuild(err) || refuses(err) {
			r.Refuse(a.Campaign, err)
		}
		if errors.Is(err, gate.ErrStaleEpoch) && agreed() {
			found <- func() { r.rebuildFound(ctx, a, err) }
			continue
		}
		if refuses(err) { // a rebuild would lose what the gate alone has, or what another gate has
			err = nil
		}
		switch {
		case err == nil || gate.NeedsRebuild(err):
			r.note(a.Campaign, err)
		case some == nil: // gate or ledger did not answer
			silent[a.Campaign] = true
		}
		if gate.NeedsRebuild(err) && named() {
			found <- func() { r.rebuildFound(ctx, a, err) }
		}
	}
	close(found)
	rebuilds.Wait()
	return silent
}

// rebuildFound rebuilds a campaign that a look has found; the next look finds what failed.
func (r *Machine) rebuildFound(ctx context.Context, a gate.Revision, why error) {
	attempt, err := r.begin(ctx, firstcomeItself, a.Campaign, a.Epoch, false)
	if err != nil {
		isOfLog := errors.Is(err, firstcome.ErrLineLogAway) || errors.Is(err, firstcome.ErrLineLogLost)
		if isOfLog && r.hears.Rebuilt != nil {
			r.hears.Rebuilt(Rebuilt{Campaign: a.Campaign, Why: why, Err: err})
		}
		return
	}
	if r.needless(ctx, attempt, a, why) {
		r.giveUp(ctx, attempt)
		r.note(a.Campaign, nil)
		return
	}
	_, _ = r.run(ctx, attempt, why, nil)
}

// needless asks the gate once more, now that nobody else begins a rebuild, and tells whether it decides the campaign. The rebuild before may
// have ended in the ledger and switched the gate a moment later: a look in between takes that gate for lost, or finds the attempt of
// another node whose look did. So a frozen gate is given a moment: a rebuild of it while its owner lives would end an epoch in which
// nobody was issued anything. Behind an attempt that was left nothing is needless: its owner may have died before it froze the gate.
func (r *Machine) needless(ctx context.Context, attempt Rebuild, a gate.Revision, why error) bool {
	if attempt.Left {
		return false
	}
	asks := 1
	a.Rebuilding = false // by another attempt, as the look found
	if errors.Is(why, errFrozen) {
		asks = switchAsks
	}
	for n := range asks {
		if n > 0 && sleep(ctx, switchTime/switchAsks) != nil {
			return false
		}
		if r.standing(ctx, a) == nil {
			return true
		}
	}
	return false
}

// errUnfinished says that a rebuild was begun and has not ended. Its owner may have died before it froze the gate, which then decides
// what nobody records.
var errUnfinished = fmt.Errorf("%w: %w", gate.ErrUnverified, flow.ErrRebuilding)

// errUnmade says that the gate cannot have a campaign yet. Whoever took it for lost would rebuild what is made meanwhile.
var errUnmade = fmt.Errorf("%w: the campaign is being made", firstcome.ErrGateUnavailable)

// standing is the gate's Standing, if the gate has had the campaign and no rebuild is under way.
func (r *Machine) standing(ctx context.Context, a gate.Revision) error {
	switch {
	case a.Unmade:
		return errUnmade
	case a.Reconciling:
		return &gate.LedgerRolledBackError{Campaign: a.Campaign}
	case a.Rebuilding:
		return cmp.Or(r.refusalOf(ctx, a), errUnfinished)
	}
	err := r.gate.Standing(ctx, a)
	if errors.Is(err, ErrAhead) {
		return r.standsAhead(ctx, a)
	}
	return err
}

// stands is standing after a verification, if the gate is unverified. Only an error that NeedsRebuild says that it is not what it was.
func (r *Machine) stands(ctx context.Context, a gate.Revision) error {
	err := r.standing(ctx, a)
	if !errors.Is(err, gate.ErrUnverified) || a.Rebuilding {
		return err
	}
	switch not := r.verify(ctx, a); {
	case not == nil:
		r.stats.verified.Add(1)
		return nil
	case errors.Is(not, errDiffers):
		return fmt.Errorf("%w: %w", err, not)
	default: // gate or ledger did not answer, or another node was faster
		return not
	}
}
