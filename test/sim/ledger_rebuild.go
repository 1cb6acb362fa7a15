package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A gateRow is what the ledger has of a campaign's gate.
type gateRow struct {
	epoch        int64
	ceiling      int64 // the highest number that the gate may give
	attempt      int64 // at a rebuild
	rebuildingAt time.Time
	lost         []span
}

// A span is numbers that were lost when an epoch began.
type span struct{ first, last, epoch int64 }

// attemptTime is how long a rebuild may send no heartbeat before another begins.
const attemptTime = 10 * time.Second

// grant raises the ceiling: as many numbers beyond the highest as may still come in force.
func (l *Ledger) grant(a *account) record.Grant {
	more := a.Quantity - a.inForce()
	if l.Backlog > 0 {
		more = min(more, l.Backlog)
	}
	a.ceiling = max(a.ceiling, a.highest()+more)
	return record.Grant{Epoch: a.epoch, Ceiling: a.ceiling}
}

// highest returns the highest number that the ledger knows of.
func (a *account) highest() int64 {
	highest := a.drained
	for _, c := range a.coupons {
		highest = max(highest, c.Number)
	}
	return highest
}

// isLost reports whether a number was lost when a later epoch than this one began.
func (a *account) isLost(number, epoch int64) bool {
	return slices.ContainsFunc(a.lost, func(s span) bool { return s.first <= number && number <= s.last && s.epoch > epoch })
}

// fence refuses coupons during a rebuild, unless they come from its owner.
func (a *account) fence(attempt int64) error {
	if a.rebuildingAt.IsZero() || a.attempt == attempt {
		return nil
	}
	return fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, record.ErrRebuilding)
}

// SeeRun implements recovery.Ledger.
func (l *Ledger) SeeRun(_ context.Context, run recovery.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	durable, seen := l.runs[run.ID]
	l.runs[run.ID], l.seen[run.ID] = run.Durable && (durable || !seen), l.Clock()
	return nil
}

// knows reports whether the ledger has a run as it is.
func (l *Ledger) knows(run recovery.Run) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	durable, seen := l.runs[run.ID]
	return seen && durable == run.Durable
}

// RecentRuns implements recovery.Ledger.
func (l *Ledger) RecentRuns(_ context.Context, within time.Duration) (runs []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for run, at := range l.seen {
		if l.Clock().Sub(at) < within {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	return runs, nil
}

// DurableRun implements recovery.Ledger.
func (l *Ledger) DurableRun(_ context.Context, run string) (durable, seen bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	durable, seen = l.runs[run]
	return durable, seen, nil
}

// LedgerState implements recovery.Ledger.
func (l *Ledger) LedgerState(ctx context.Context, id firstcome.CampaignID, version int64) (s recovery.LedgerState, err error) {
	err = l.of(id, func(a *account) error {
		s = recovery.LedgerState{Campaign: a.Campaign, Applied: a.applied, Epoch: a.epoch, LastNumber: a.highest(), DrainedThrough: a.drained}
		if version < a.Version { // what waits has not come to the gate
			switch a.changes[version].Kind {
			case firstcome.ChangePause, firstcome.ChangeResume:
				s.Paused = a.changes[version].Kind == firstcome.ChangeResume
			case firstcome.ChangeClose:
				s.Closed = false
			}
		}
		last := int64(0)
		for _, c := range a.coupons {
			if c.Number > last {
				last, s.IssuedAt = c.Number, c.IssuedAt
			}
		}
		return nil
	})
	if err == nil {
		s.Terms, err = l.Terms(ctx, id, version)
	}
	return s, err
}

// Numbered implements recovery.Ledger.
func (l *Ledger) Numbered(_ context.Context, id string, above int64, each func(int64)) error {
	return l.of(firstcome.CampaignID(id), func(a *account) error {
		for n := above + 1; n <= a.highest(); n++ {
			if a.coupon(n) != nil || l.dead(n) {
				each(n)
			}
		}
		return nil
	})
}

// dead reports whether a number is a dead letter. mu is held.
func (l *Ledger) dead(number int64) bool {
	for _, one := range l.letters {
		if one.number == number {
			return true
		}
	}
	return false
}

// mark returns which state of the ledger it is. mu is held.
func (l *Ledger) mark(a *account) recovery.Mark {
	m := recovery.Mark{Version: a.Version, Position: int64(len(a.facts)), Letters: int64(len(l.letters)), Generation: a.line.Line.Generation}
	for _, p := range a.line.Past {
		if p.Reason != reasonLost {
			m.Ended = max(m.Ended, p.Generation)
		}
	}
	return m
}

// Refills implements recovery.Ledger.
func (l *Ledger) Refills(_ context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (mark recovery.Mark, err error) {
	err = l.of(id, func(a *account) error {
		mark = l.mark(a)
		for _, c := range a.coupons {
			if err := each(c.Coupon); err != nil {
				return err
			}
		}
		return nil
	})
	return mark, err
}

// Active implements recovery.Ledger.
func (l *Ledger) Active(context.Context) (all []gate.Revision, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, a := range l.campaigns {
		all = append(all, gate.Revision{
			Campaign: id, CampaignUID: campaignUID, Version: a.Version, Applied: a.applied, Epoch: a.epoch, Drained: a.drained, TermsVersion: a.termsVersion, Rebuilding: !a.rebuildingAt.IsZero(),
			Reconciling: a.reconciling() != nil, Creating: a.applied == 0 && a.highest() == 0,
		})
	}
	slices.SortFunc(all, func(x, y gate.Revision) int { return cmp.Compare(x.Campaign, y.Campaign) })
	return all, nil
}

// BeginRebuild implements recovery.Ledger.
func (l *Ledger) BeginRebuild(_ context.Context, actor string, id firstcome.CampaignID, epoch int64) (r recovery.Rebuild, err error) {
	err = l.of(id, func(a *account) error {
		if epoch != 0 && epoch != a.epoch {
			return recovery.ErrSuperseded
		}
		r, err = l.begin(a, actor)
		return err
	})
	return r, err
}

// begin begins an attempt.
func (l *Ledger) begin(a *account, actor string) (r recovery.Rebuild, err error) {
	if a.underWay(l.Clock()) {
		return r, recovery.ErrSuperseded
	}
	left := !a.rebuildingAt.IsZero()
	a.attempt, a.rebuildingAt = l.nextAttempt(a.attempt), l.Clock()
	return recovery.Rebuild{
		Campaign: a.ID, CampaignUID: campaignUID, Attempt: a.attempt, Epoch: a.epoch, Version: a.Version, Drained: a.drained, Actor: actor, InForce: a.inForce(), Left: left,
	}, nil
}

// underWay reports whether an attempt has recently sent a heartbeat.
func (a *account) underWay(now time.Time) bool {
	return !a.rebuildingAt.IsZero() && now.Before(a.rebuildingAt.Add(attemptTime))
}

// Heartbeat implements recovery.Ledger.
func (l *Ledger) Heartbeat(_ context.Context, r recovery.Rebuild) error {
	return l.of(r.Campaign, func(a *account) error {
		if a.attempt != r.Attempt || a.rebuildingAt.IsZero() {
			return recovery.ErrSuperseded
		}
		a.rebuildingAt = l.Clock()
		return nil
	})
}

// GiveUpRebuild implements recovery.Ledger.
func (l *Ledger) GiveUpRebuild(_ context.Context, r recovery.Rebuild) error {
	return l.of(r.Campaign, func(a *account) error {
		if a.attempt == r.Attempt {
			a.rebuildingAt = time.Time{}
		}
		return nil
	})
}

// LastRebuild implements recovery.Ledger.
func (l *Ledger) LastRebuild(_ context.Context, id firstcome.CampaignID) (r recovery.Rebuilt, err error) {
	err = l.of(id, func(a *account) error {
		r = recovery.Rebuilt{Campaign: id, Epoch: a.epoch}
		return nil
	})
	return r, err
}

// FinishRebuild implements recovery.Ledger.
func (l *Ledger) FinishRebuild(_ context.Context, r recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (fill recovery.Refill, err error) {
	err = l.of(r.Campaign, func(a *account) error {
		switch {
		case a.attempt != r.Attempt, a.rebuildingAt.IsZero():
			return recovery.ErrSuperseded
		case l.mark(a) != loaded.Mark:
			return recovery.ErrMoved
		}
		if err := l.conclude(a, atGate{frozen.Version, frozen.TermsVersion, 0, frozen.LastNumber}); err != nil {
			return err
		}
		fill = l.nextEpoch(a, frozen, loaded)
		return nil
	})
	return fill, err
}

// An atGate is what a gate that no longer decides knows of a campaign.
type atGate struct{ version, termsVersion, inForce, last int64 }

// conclude does what the ledger has not noted as applied, as the gate did it or would have done it.
func (l *Ledger) conclude(a *account, g atGate) error {
	if a.applied == a.Version {
		return nil
	}
	if a.reconciling() != nil {
		a.applied = a.Version
		return nil
	}
	d := a.changes[a.applied]
	if d.Kind != firstcome.ChangeTerms || d.Version <= a.termsVersion {
		return a.conclude(false)
	}
	taken := g.termsVersion
	for _, c := range a.coupons {
		taken = max(taken, c.TermsVersion)
	}
	switch {
	case taken >= d.Version:
		return a.conclude(false)
	case g.version >= d.Version:
		return a.conclude(true)
	}
	lower := d.Terms.Quantity < max(g.inForce, a.inForce()+int64(len(l.letters)))
	return a.conclude(lower || d.Before > 0 && max(a.highest(), g.last) >= d.Before)
}

// nextEpoch ends an epoch: every number that may have been given, and that nobody has, is lost.
func (l *Ledger) nextEpoch(a *account, frozen recovery.Frozen, loaded recovery.Loaded) recovery.Refill {
	ended := max(a.ceiling, a.highest())
	if frozen.Through > 0 {
		ended = max(frozen.Through, a.highest())
	}
	a.epoch = max(a.epoch, loaded.LogEpoch) + 1
	lost := int64(0)
	for n := a.drained + 1; n <= ended; n++ {
		if a.coupon(n) == nil && !l.dead(n) {
			a.lost = append(a.lost, span{n, n, a.epoch})
			lost++
		}
	}
	given := min(ended, max(a.highest(), frozen.LastNumber))
	if n := len(a.Skips); n > 0 {
		given = max(given, a.Skips[n-1].After)
	}
	a.drained, a.ceiling, a.rebuildingAt = ended, ended, time.Time{}
	a.decidedAt = later(a.decidedAt, frozen.DecidedAt)
	a.applied = l.number(a, firstcome.Change{Kind: firstcome.ChangeRebuild, Epoch: a.epoch, Terms: firstcome.Terms{Log: loaded.Log}})
	a.changes[a.applied-1].anew = loaded.Anew
	if given < ended && !a.Closed {
		a.Terms = a.WithSkip(given, ended)
		a.applied = l.number(a, firstcome.Change{Kind: firstcome.ChangeTerms, Terms: a.Terms})
		a.termsVersion = a.applied
	}
	lostPlaces := a.carry(frozen.Line, loaded.Carried)
	begins := a.Campaign
	begins.Log = loaded.Log
	for _, c := range a.coupons {
		if !c.Direct && (begins.OpenedAt.IsZero() || c.IssuedAt.Before(begins.OpenedAt)) {
			begins.OpenedAt = c.IssuedAt
		}
	}
	return recovery.Refill{
		Campaign: begins, TermsVersion: a.termsVersion, Payload: payloadOf(a.Terms), Epoch: a.epoch, LastNumber: ended, Ceiling: l.grant(a).Ceiling,
		Issued: int64(len(a.coupons)), DecidedAt: a.decidedAt, Lost: lost,
		Line: a.line.Line, Past: slices.Clone(a.line.Past), LostPlaces: lostPlaces,
	}
}

// reasonLost is why a generation ended whose gate was rebuilt.
const reasonLost = "lost"

// carry ends the line's generation, as lost, and begins the next one with those who were carried over. It returns how many are not in line any
// more, at least.
func (a *account) carry(frozen firstcome.Line, carried recovery.Carried) (lostPlaces int64) {
	l := &a.line.Line
	if frozen.Later(*l) {
		*l = frozen
	}
	l.Due = frozen.Due
	lostPlaces = max(0, l.Waiting-carried.People-carried.LeftWithCoupon)
	if !a.lined() && l.LastTicket == 0 && carried.People == 0 {
		return lostPlaces
	}
	a.line.Past = slices.Insert(a.line.Past, 0, l.Ended(reasonLost, time.Time{}))
	*l = firstcome.Line{Generation: max(l.Generation+1, carried.Generation), Due: l.Due}
	if carried.People > 0 {
		l.LastTicket, l.ServedThrough, l.Waiting = carried.Last, carried.First-1, carried.People
	}
	return lostPlaces
}

// lined reports whether the campaign ever had a pace.
func (a *account) lined() bool {
	return slices.ContainsFunc(a.changes, func(d deed) bool { return d.Terms.Pace != nil })
}

// LoseLine implements gate.Book: it ends the line of a closed campaign whose gate has lost it, once.
func (l *Ledger) LoseLine(_ context.Context, id firstcome.CampaignID) error {
	return l.of(id, func(a *account) error {
		ended := len(a.line.Past) > 0 && a.line.Past[0].Reason == reasonLost && a.line.Line.LastTicket == 0
		if a.Closed && !ended {
			a.carry(a.line.Line, recovery.Carried{})
		}
		return nil
	})
}
