package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// over reports whether the campaign never issues again, because an operator closed it or because it is retired.
// The window of a retired campaign is not opened again.
func (s *stock) over() bool { return s.Closed || !s.retiredAt.IsZero() }

// Retiring returns two kinds of campaigns of this node's gate: those that were retired at least the duration
// retired ago and not forgotten, and those that may be retired. The latter have been closed for at least the
// duration closed, by an operator or by their window, and the gate has all their changes. Retire checks more.
func (e *Epochs) Retiring(ctx context.Context, closed, retired time.Duration) ([]recovery.Retiring, error) {
	now, err := e.db.ReadNow(ctx)
	if err != nil {
		return nil, fmt.Errorf("read which campaigns retire: %w", err)
	}
	by := now.Add(-closed).UnixMicro()
	over, err1 := e.rows.atGate(ctx, `c.retired_at IS NULL AND c.applied = c.version AND (c.closes_at <= ? OR c.closed_at <= ?)`, by, by)
	marked, err2 := e.rows.atGate(ctx, `c.retired_at <= ?`, now.Add(-retired).UnixMicro())
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("read which campaigns retire: %w", err)
	}
	var all []recovery.Retiring
	for n, r := range append(marked, over...) {
		all = append(all, recovery.Retiring{Campaign: r.Campaign, Marked: n < len(marked)})
	}
	return all, nil
}

// retiredBy is the actor of retirements in the audit log.
const retiredBy = "firstcome"

// Retire marks a campaign as retired, and reports whether it is retired. The campaign must have been closed for
// age, by the ledger's time and by the gate's. Its version and epoch must be those of the gate's state seen. All
// its numbers must be drained, and it must have no open dead letter. After Retire the ledger answers for the
// campaign, and the gate may forget it. A second call does nothing.
func (e *Epochs) Retire(ctx context.Context, id firstcome.CampaignID, seen gate.State, age time.Duration) (retired bool, err error) {
	err = e.rows.locked(ctx, id, func(t *sqldb.Tx, s stock) (err error) {
		if retired = !s.retiredAt.IsZero(); retired {
			return nil
		}
		now := e.rows.decidesAt(s)
		by := now
		if seen.Now.Before(by) {
			by = seen.Now
		}
		if retired, err = e.mayRetire(t, s, seen, by.Add(-age)); err != nil || !retired {
			return err
		}
		// decided_at keeps the window closed if the clock goes back.
		_, err = t.Change(`UPDATE campaigns SET retired_at = ?, decided_at = ?, opened_at = ?, sold_out_at = ?, closed_at = ? WHERE id = ?`,
			now.UnixMicro(), now.UnixMicro(), micros(seen.OpenedAt), micros(seen.SoldOutAt), micros(seen.ClosedAt), string(id))
		if err != nil {
			return err
		}
		return addLog(t, now, retiredBy, "campaign.retire", entry{campaign: id, detail: "{}"})
	})
	return retired, sqldb.Wrap(err, "retire the campaign %s", id)
}

// mayRetire reports whether a campaign was closed at the time by, and has no pending change, undrained number,
// rebuild or open dead letter. The caller has locked the campaign's row.
func (e *Epochs) mayRetire(t *sqldb.Tx, s stock, seen gate.State, by time.Time) (bool, error) {
	changed := s.pending() || seen.Version != s.Version || seen.Epoch != s.epoch
	undrained := s.drained < max(seen.LastNumber, s.lastNumber)
	if !e.rows.remote() || changed || undrained || !s.rebuildingAt.IsZero() || !s.closedBy(by) {
		return false, nil
	}
	open, err := t.Exists(`SELECT count(*) FROM dead_letters WHERE campaign_id = ? AND resolved_at IS NULL`, string(s.ID))
	return !open, err
}

// closedBy reports whether a campaign was closed at the time by, by its window or an operator.
func (s *stock) closedBy(by time.Time) bool {
	return !s.ClosesAt.IsZero() && !s.ClosesAt.After(by) || !s.ClosedAt.IsZero() && !s.ClosedAt.After(by)
}

// Forgotten notes that the gate has deleted a retired campaign. A second call does nothing.
func (e *Epochs) Forgotten(ctx context.Context, id firstcome.CampaignID) error {
	err := e.rows.locked(ctx, id, func(t *sqldb.Tx, s stock) error {
		if s.retiredAt.IsZero() {
			return errNotRetired
		}
		_, err := t.Change(`UPDATE campaigns SET forgotten_at = ? WHERE id = ? AND forgotten_at IS NULL`, e.rows.decidesAt(s).UnixMicro(), string(id))
		return err
	})
	return sqldb.Wrap(err, "note that the gate has forgotten %s", id)
}

// errNotRetired means that the ledger cannot answer for the campaign, because only its gate can.
var errNotRetired = fmt.Errorf("%w: it is not retired", gate.ErrLost)

// ClaimRetired decides claims of a retired campaign as its gate did. It returns the coupons of holders, and issues
// no coupon. For any other campaign it returns gate.ErrLost.
func (g *Gate) ClaimRetired(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	var decisions []firstcome.Decision
	err := g.db.Repeat(ctx, func(t *sqldb.Tx) (err error) {
		decisions, err = g.decideRetired(t, id, users)
		return err
	})
	if err != nil { // the writer may still be at decisions
		return nil, sqldb.Wrap(err, "decide %d claims of %s", len(users), id)
	}
	return decisions, nil
}

// decideRetired is the transaction of ClaimRetired.
func (g *Gate) decideRetired(t *sqldb.Tx, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	s, err := g.rows.stock(t, id)
	if err != nil {
		return nil, err
	}
	if s.retiredAt.IsZero() {
		return nil, errNotRetired
	}
	holders, err := holdersOf(t, []claimants{{id: id, users: users}})
	if err != nil {
		return nil, err
	}
	now := g.rows.decidesAt(s)
	decisions := make([]firstcome.Decision, len(users))
	for n, user := range users {
		coupon := holders[id][user]
		outcome := firstcome.Decide(s.Campaign, now, s.inForce, coupon != nil, false)
		decisions[n] = firstcome.Decision{
			Outcome: outcome, At: now, Version: s.Version, TermsVersion: s.termsVersion, InForce: s.inForce,
			Since: s.Since(outcome), OpenedAt: s.OpenedAt, Lease: leaseOf(t, &s, now, outcome),
		}
		if coupon != nil {
			decisions[n].Coupon = *coupon
		}
	}
	return decisions, nil
}

// StateRetired returns the counters of a retired campaign, as its gate reported them. For any other campaign it
// returns gate.ErrLost.
func (g *Gate) StateRetired(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	s, err := g.rows.status(ctx, id)
	switch {
	case errors.Is(err, firstcome.ErrNoCampaign):
		return gate.State{}, err
	case err != nil:
		return gate.State{}, fmt.Errorf("read the retired campaign %s: %w", id, err)
	case s.RetiredAt.IsZero():
		return gate.State{}, errNotRetired
	}
	return gate.State{
		Now: s.Now, Version: s.Version, Epoch: s.Epoch, InForce: s.InForce, Issued: s.Issued, DrainedThrough: s.Drained, Instants: s.Instants,
		LastNumber: max(s.LastNumber, s.Drained), // the last number may be lost
	}, nil
}
