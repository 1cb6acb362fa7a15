package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A deed is a numbered change as the ledger keeps it.
type deed struct {
	firstcome.Change
	refused bool
	anew    bool // of a rebuild: earlier records of the log no longer count
}

// Create makes a campaign: its change 1, which its gate lacks yet.
func (l *Ledger) Create(_ context.Context, _ string, id firstcome.CampaignID, terms firstcome.Terms) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.campaigns[id] != nil {
		return firstcome.ErrCampaignExists
	}
	a := &account{termsVersion: 1, line: gate.LineState{View: firstcome.View{Line: firstcome.Line{Generation: 1}}}, gateRow: gateRow{epoch: 1}}
	a.ID, a.Terms, a.CreatedAt = id, terms, l.Clock()
	l.number(a, firstcome.Change{Kind: firstcome.ChangeTerms, Terms: terms, Epoch: 1})
	l.grant(a)
	l.campaigns[id] = a
	return nil
}

// number gives a change the next number, and an instant after all that the campaign has seen.
func (l *Ledger) number(a *account, change firstcome.Change) int64 {
	a.Version++
	a.decidedAt = later(a.decidedAt, l.Clock())
	change.Campaign, change.Version, change.At = a.ID, a.Version, a.decidedAt
	if change.Kind == firstcome.ChangeTerms {
		change.Payload = payloadOf(change.Terms)
	}
	a.changes = append(a.changes, deed{Change: change})
	return a.Version
}

// change calls do with a campaign whose gate has all changes.
func (l *Ledger) change(id firstcome.CampaignID, do func(*account) error) error {
	return l.of(id, func(a *account) error {
		if a.applied < a.Version {
			return firstcome.ErrPending
		}
		err := do(a)
		if err == nil {
			l.grant(a) // stock that comes back makes room for more numbers
		}
		return err
	})
}

// SetTerms is operate.Ledger's. A lower quantity, and prizes that move, are only proposed: the gate may refuse them.
func (l *Ledger) SetTerms(_ context.Context, _ string, id firstcome.CampaignID, _ int64, edit func(*firstcome.Terms)) (made int64, err error) {
	err = l.change(id, func(a *account) error {
		terms := a.Terms
		edit(&terms)
		terms.Skips = a.Skips
		before := int64(0)
		if terms.MovesPrizes(a.Terms) {
			before = terms.NumberOf(1)
		}
		switch {
		case a.Closed:
			return firstcome.ErrClosed
		case terms.Check() != nil:
			return terms.Check()
		case terms.Quantity < a.inForce():
			return firstcome.ErrBelowInForce
		case before > 0 && a.highest() >= before:
			return firstcome.ErrPrizesFixed
		case payloadOf(terms) == payloadOf(a.Terms):
			return nil
		}
		made = l.number(a, firstcome.Change{Kind: firstcome.ChangeTerms, Terms: terms, Before: before})
		if terms.Quantity >= a.Quantity && before == 0 {
			a.Terms, a.termsVersion = terms, made
		}
		return nil
	})
	return made, err
}

func samePace(a, b *firstcome.Pace) bool { return a == b || a != nil && b != nil && *a == *b }

// ChangeState is operate.Ledger's.
func (l *Ledger) ChangeState(_ context.Context, _ string, id firstcome.CampaignID, _ int64, to firstcome.ChangeKind) (made int64, err error) {
	err = l.change(id, func(a *account) error {
		if a.Closed && to != firstcome.ChangeClose {
			return firstcome.ErrClosed
		}
		paused, closed := to == firstcome.ChangePause || to == firstcome.ChangeClose && a.Paused, a.Closed || to == firstcome.ChangeClose
		if paused == a.Paused && closed == a.Closed {
			return nil
		}
		made = l.number(a, firstcome.Change{Kind: firstcome.ChangeKind(to)})
		if a.Paused, a.Closed = paused, closed; closed {
			a.ClosedAt = a.changes[made-1].At
		}
		return nil
	})
	return made, err
}

// Void is operate.Ledger's.
func (l *Ledger) Void(_ context.Context, _ string, id firstcome.CampaignID, number int64, _ string) (voided firstcome.Coupon, err error) {
	err = l.change(id, func(a *account) error {
		c := a.coupon(number)
		switch {
		case c == nil && number > a.drained:
			return firstcome.ErrNotRecorded
		case c == nil:
			return firstcome.ErrNoCoupon
		case !c.VoidedAt.IsZero():
			return firstcome.ErrAlreadyVoided
		}
		made := l.number(a, firstcome.Change{Kind: firstcome.ChangeVoid, Number: number, User: c.User})
		a.fact(firstcome.CouponVoided, number)
		c.VoidedAt = a.changes[made-1].At
		voided = c.Coupon
		return nil
	})
	return voided, err
}

// Campaign is operate.Ledger's.
func (l *Ledger) Campaign(_ context.Context, id firstcome.CampaignID) (s ledger.Status, err error) {
	err = l.of(id, func(a *account) error {
		s.Campaign, s.Applied, s.InForce, s.DrainedThrough = a.Campaign, a.applied, a.inForce(), a.drained
		return nil
	})
	return s, err
}

// Terms returns the terms of a campaign as of a version: those of the reconcile after it if the ledger has forgotten the version.
func (l *Ledger) Terms(_ context.Context, id firstcome.CampaignID, version int64) (terms firstcome.Terms, err error) {
	err = l.of(id, func(a *account) error {
		if version > a.Version {
			return &gate.LedgerRolledBackError{Campaign: id}
		}
		for version > 0 && a.changes[version-1].Kind == forgotten {
			version++
		}
		for _, d := range a.changes[:version] {
			if hasTerms(d) && !d.refused {
				terms = d.Terms
			}
		}
		return nil
	})
	return terms, err
}

// hasTerms reports whether a change says terms.
func hasTerms(d deed) bool {
	return d.Kind == firstcome.ChangeTerms || d.Kind == firstcome.ChangeReconcile
}

// Pending implements gate.ChangeBook.
func (l *Ledger) Pending(_ context.Context, id firstcome.CampaignID) (all []firstcome.Change, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, a := range l.campaigns {
		if id != "" && of != id {
			continue
		}
		for _, d := range a.changes[a.applied:] {
			d.Ceiling = a.ceiling
			all = append(all, d.Change)
		}
	}
	slices.SortStableFunc(all, func(x, y firstcome.Change) int { return slices.Compare([]byte(x.Campaign), []byte(y.Campaign)) })
	return all, nil
}

// Applied implements gate.ChangeBook: proposed terms hold from then on, unless the gate refused them.
func (l *Ledger) Applied(_ context.Context, change firstcome.Change, refused bool) error {
	return l.of(change.Campaign, func(a *account) error {
		switch {
		case change.Version <= a.applied:
			return nil
		case change.Version != a.applied+1 || change.Version > a.Version:
			return fmt.Errorf("%w: the ledger has noted %d of %d changes", gate.ErrGap, a.applied, a.Version)
		}
		return a.conclude(refused)
	})
}

// conclude notes that the gate has the next change, or refused it.
func (a *account) conclude(refused bool) error {
	d := &a.changes[a.applied]
	proposed := d.Kind == firstcome.ChangeTerms && d.Version > a.termsVersion
	switch {
	case refused && !proposed:
		return errors.New("the gate refused a change that it must accept")
	case proposed && !refused:
		a.Terms, a.termsVersion = d.Terms, d.Version
	}
	d.refused, a.applied = refused, d.Version
	return nil
}

// Refusal implements gate.ChangeLog.
func (l *Ledger) Refusal(_ context.Context, id firstcome.CampaignID, version int64) (refusal, err error) {
	err = l.of(id, func(a *account) error {
		switch d := a.changes[version-1]; {
		case d.refused && d.Before > 0:
			refusal = firstcome.ErrPrizesFixed
		case d.refused:
			refusal = firstcome.ErrBelowInForce
		}
		return nil
	})
	return refusal, err
}
