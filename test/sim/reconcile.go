package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// An archive is what a ledger keeps, and what a backup of it has.
type archive struct {
	campaigns map[firstcome.CampaignID]*account
	letters   map[string]letter    // dead letters, by their coupons or entries
	runs      map[string]bool      // of the gate's server: whether they are durable
	seen      map[string]time.Time // and when a node saw them last
}

// copied returns a copy of an archive.
func (a *archive) copied() archive {
	other := archive{map[firstcome.CampaignID]*account{}, maps.Clone(a.letters), maps.Clone(a.runs), maps.Clone(a.seen)}
	for id, one := range a.campaigns {
		c := *one
		c.changes, c.coupons, c.facts, c.lost = slices.Clone(c.changes), slices.Clone(c.coupons), slices.Clone(c.facts), slices.Clone(c.lost)
		c.line.Past = slices.Clone(c.line.Past)
		other.campaigns[id] = &c
	}
	return other
}

// nextAttempt returns a number that no attempt has had, not even one that the ledger has forgotten: a real one has a random part. mu is held.
func (l *Ledger) nextAttempt(last int64) int64 {
	l.attempts = max(l.attempts, last) + 1
	return l.attempts
}

// Created implements recovery.Gate. No campaign is made twice.
func (g *Gate) Created(context.Context, firstcome.CampaignID) (bool, error) { return false, nil }

// Held implements recovery.Gate.
func (g *Gate) Held(_ context.Context, r recovery.Rebuild, each func(firstcome.Coupon) error) error {
	var all []firstcome.Coupon
	err := g.of(r.Campaign, func(c *course) { all = slices.Collect(maps.Values(c.Holders)) })
	slices.SortFunc(all, func(a, b firstcome.Coupon) int { return int(a.Number - b.Number) })
	for n := 0; err == nil && n < len(all); n++ {
		all[n].Buried = false
		err = each(all[n])
	}
	return err
}

// ahead returns recovery.ErrAhead if the gate has more of a campaign than a revision of the ledger says.
func (g *Gate) ahead(r gate.Revision) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.campaigns[r.Campaign]
	if c != nil && c.Version > 0 && (c.Epoch > r.Epoch || c.Version > r.Version || c.Drained > r.Drained) {
		return recovery.ErrAhead
	}
	return nil
}

// BeginReconcile implements recovery.Ledger.
func (l *Ledger) BeginReconcile(_ context.Context, actor string, id firstcome.CampaignID, last int64) (r recovery.Rebuild, err error) {
	err = l.of(id, func(a *account) error {
		a.attempt = max(a.attempt, last)
		r, err = l.begin(a, actor)
		return err
	})
	return r, err
}

// reconciling returns the unfinished reconcile of a campaign, or nil.
func (a *account) reconciling() *deed {
	n := slices.IndexFunc(a.changes[a.applied:], func(d deed) bool { return d.Kind == firstcome.ChangeReconcile })
	if n < 0 {
		return nil
	}
	return &a.changes[a.applied+int64(n)]
}

// forgotten is the kind of a change that a ledger which was put back does not know.
const forgotten firstcome.ChangeKind = "forgotten"

// Adopt implements recovery.Ledger.
func (l *Ledger) Adopt(_ context.Context, r recovery.Rebuild, g recovery.GateState, absent []firstcome.Coupon, complete bool) (adopted recovery.Adopted, err error) {
	err = l.of(r.Campaign, func(a *account) error {
		switch {
		case a.attempt != r.Attempt, a.rebuildingAt.IsZero():
			return recovery.ErrSuperseded
		case a.reconciling() != nil:
			adopted.Epoch = a.epoch
			return nil
		}
		voids := absent
		if !complete || int64(len(absent)) > max(0, g.Version-a.Version) {
			voids = nil
		}
		if err := l.adopt(a, g, int64(len(voids))); err != nil {
			return err
		}
		for _, c := range voids {
			made := l.number(a, firstcome.Change{Kind: firstcome.ChangeVoid, Number: c.Number, User: c.User})
			a.fact(firstcome.CouponVoided, c.Number)
			a.coupon(c.Number).VoidedAt = a.changes[made-1].At
		}
		adopted = recovery.Adopted{Epoch: a.epoch, Voided: int64(len(voids)), Unexplained: int64(len(absent) - len(voids))}
		return nil
	})
	return adopted, err
}

// adopt takes over terms and switches of a gate, as a change of one version more than either has.
func (l *Ledger) adopt(a *account, g recovery.GateState, voids int64) error {
	terms := a.Terms
	if a.Version > g.Version { // the gate lacks a change: it is done first
		if a.applied < a.Version {
			if err := l.conclude(a, atGate{version: g.Version, inForce: g.InForce, last: g.LastNumber}); err != nil {
				return err
			}
		}
		terms = a.Terms
	} else {
		terms = termsIn(g.Payload)
		terms.Log = cmp.Or(g.Log, terms.Log) // from where the gate's epoch begins
		a.Paused, a.Closed, a.ClosedAt = g.Paused, g.Closed, g.ClosedAt
	}
	for a.Version < g.Version {
		l.number(a, firstcome.Change{Kind: forgotten})
	}
	terms.Quantity = max(terms.Quantity, a.inForce()-voids)
	a.applied = a.Version
	made := l.number(a, firstcome.Change{Kind: firstcome.ChangeReconcile, Epoch: max(a.epoch, g.Epoch), Terms: terms, Paused: a.Paused, Closed: a.Closed, ClosedAt: a.ClosedAt})
	a.Terms, a.termsVersion = terms, made
	a.epoch, a.ceiling = max(a.epoch, g.Epoch), max(a.ceiling, g.Ceiling, g.LastNumber)
	return nil
}
