package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/wait"
)

// Run rebuilds the campaigns that need it until ctx ends: after a restart or a promotion of the gate's server, and if keys are missing. It does so
// only while the server has the gate's name. A server without the name was emptied, or is a different server, and an operator must call Rebuild. An
// operator must also call Rebuild for a gate in a stale epoch; Run notices within a second that a campaign's epoch has ended. With Auto, Run rebuilds
// in both cases.
func (m *Machine) Run(ctx context.Context) error {
	var reports sync.WaitGroup
	defer reports.Wait()
	reports.Go(func() { m.reached.report(ctx) })
	var runs []Run
	var looked time.Time
	var silent map[firstcome.CampaignID]bool
	for {
		active, unread := m.records.Active(ctx)
		if unread == nil {
			for _, a := range m.begun(active) {
				m.readTerms(ctx, a.Campaign, a.TermsVersion)
			}
		}
		now, err := m.gate.Runs(ctx)
		if err == nil && !slices.Equal(now, runs) {
			err, looked = m.reached.note(ctx, now), time.Time{}
		}
		if err == nil {
			runs = now
		}
		if err == nil {
			err = unread
		}
		if err == nil && time.Since(looked) > inspectEvery {
			silent = m.inspectAll(ctx, active, nil)
			looked = time.Now()
		} else if ids := m.known(); err == nil && len(ids)+len(silent) > 0 {
			maps.Copy(ids, silent)
			silent = m.inspectAll(ctx, active, ids)
		}
		if m.await(ctx) != nil {
			return nil
		}
	}
}

// first puts open campaigns before the others and, among each, those with known trouble before those without.
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

// inspectAll checks some of the active campaigns at the gate, or all if some is nil, and rebuilds those that need it. A rebuild begins as soon as its
// campaign is found and fewer than sideBySide are under way, while the look continues. A look at all campaigns returns those for which gate or ledger
// did not answer: the next look checks them again.
func (m *Machine) inspectAll(ctx context.Context, active []gate.Revision, some map[firstcome.CampaignID]bool) (silent map[firstcome.CampaignID]bool) {
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
	// Emptying a server removes the name with the keys. So ask for the name only after keys were found missing.
	named := sync.OnceValue(func() bool {
		if m.Auto && m.gate.Rename(ctx) != nil {
			return false
		}
		is, err := m.gate.Named(ctx)
		return is && err == nil
	})
	agreed := sync.OnceValue(func() bool { return m.Auto && m.reached.agreed(ctx) })
	for _, a := range first(active, m.known()) {
		if some != nil && !some[a.Campaign] {
			continue
		}
		err := m.inspectAndVerify(ctx, a)
		if err == nil || gate.NeedsRebuild(err) || refuses(err) {
			m.Refuse(a.Campaign, err)
		}
		if errors.Is(err, gate.ErrStaleEpoch) && agreed() {
			found <- func() { m.rebuildFound(ctx, a, err) }
			continue
		}
		if refuses(err) { // a rebuild would lose data that only this gate has, or only another one
			err = nil
		}
		switch {
		case err == nil || gate.NeedsRebuild(err):
			m.note(a.Campaign, err)
		case some == nil: // gate or ledger did not answer
			silent[a.Campaign] = true
		}
		if gate.NeedsRebuild(err) && named() {
			found <- func() { m.rebuildFound(ctx, a, err) }
		}
	}
	close(found)
	rebuilds.Wait()
	return silent
}

// rebuildFound rebuilds a campaign that a look has found. If the rebuild fails, the next look finds the campaign again.
func (m *Machine) rebuildFound(ctx context.Context, a gate.Revision, why error) {
	attempt, err := m.begin(ctx, firstcomeItself, a.Campaign, a.Epoch, false)
	if err != nil {
		isOfLog := errors.Is(err, firstcome.ErrLineLogAway) || errors.Is(err, firstcome.ErrLineLogGone)
		if isOfLog && m.onRebuilt != nil {
			m.onRebuilt(Rebuilt{Campaign: a.Campaign, Why: why, Err: err})
		}
		return
	}
	if m.needless(ctx, attempt, a, why) {
		m.giveUp(ctx, attempt)
		m.note(a.Campaign, nil)
		return
	}
	_, _ = m.run(ctx, attempt, why, nil)
}

// needless checks the gate again, now that no other node can begin a rebuild, and reports whether it decides the campaign. The inspection
// that found it lost may have come between two steps of another node's rebuild: after the ledger had ended the epoch, and before the gate's keys were
// replaced. By now the gate may decide again.
//
// needless waits up to replaceTime for the keys of a frozen gate to be replaced: the node that froze it may still be at work, and a second rebuild would only end
// one more epoch, in which no coupon was issued. If that node has abandoned its attempt, a rebuild is always needed:
// the node may have died before it froze the gate.
func (m *Machine) needless(ctx context.Context, attempt Rebuild, a gate.Revision, why error) bool {
	if attempt.Left {
		return false
	}
	asks := 1
	a.Rebuilding = false // the look found another attempt
	if errors.Is(why, errFrozen) {
		asks = replaceAsks
	}
	for n := range asks {
		if n > 0 && wait.Sleep(ctx, replaceTime/replaceAsks) != nil {
			return false
		}
		if m.inspect(ctx, a) == nil {
			return true
		}
	}
	return false
}

// errUnfinished means that a rebuild has begun and not ended. If its owner died before the freeze, the gate still decides claims, and nobody records
// them.
var errUnfinished = fmt.Errorf("%w: %w", gate.ErrUnverified, record.ErrRebuilding)

// errCreating means that the campaign is still being created at the gate. It must not look lost: a rebuild would run beside the creation.
var errCreating = fmt.Errorf("%w: the campaign is being created", firstcome.ErrGateUnavailable)

// inspect returns what the gate's Inspect returns, unless the campaign is still being created or a rebuild is under way.
func (m *Machine) inspect(ctx context.Context, a gate.Revision) error {
	switch {
	case a.Creating:
		return errCreating
	case a.Reconciling:
		return &gate.LedgerRolledBackError{Campaign: a.Campaign}
	case a.Rebuilding:
		if err := m.compare(ctx, a); refuses(err) {
			return err
		}
		return errUnfinished
	}
	err := m.gate.Inspect(ctx, a)
	if errors.Is(err, ErrAhead) {
		return m.inspectAhead(ctx, a)
	}
	return err
}

// inspectAndVerify verifies the gate if it is unverified, and then returns what inspect does. Only an error for which NeedsRebuild holds means that the gate has
// lost data.
func (m *Machine) inspectAndVerify(ctx context.Context, a gate.Revision) error {
	err := m.inspect(ctx, a)
	if !errors.Is(err, gate.ErrUnverified) || a.Rebuilding {
		return err
	}
	switch not := m.verify(ctx, a); {
	case not == nil:
		m.stats.verified.Add(1)
		return nil
	case errors.Is(not, errDiffers):
		return fmt.Errorf("%w: %w", err, not)
	default: // gate or ledger did not answer, or another node was faster
		return not
	}
}
