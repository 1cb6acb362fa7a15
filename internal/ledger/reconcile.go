package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// BeginReconcile is BeginRebuild of a campaign whose gate is ahead of the ledger, in whichever epoch. last is the last attempt of which
// the gate knows: the ledger has forgotten it, and the new one has to be higher.
func (e *Epochs) BeginReconcile(ctx context.Context, actor string, id firstcome.CampaignID, last int64) (recovery.Rebuild, error) {
	r, err := e.begin(ctx, actor, id, func(s stock) (int64, error) { return nextAttempt(max(s.attempt, last)), s.away })
	return r, sqldb.Wrap(err, "begin to reconcile %s", id)
}

// A storedReconcile is a reconcile as the ledger keeps it among the changes: terms, and what the gate said besides. So whatever reads terms
// of a change can read it.
type storedReconcile struct {
	storedTerms
	Paused   bool   `json:"paused"`
	Closed   bool   `json:"closed"`
	ClosedAt *int64 `json:"closed_at,omitempty"` // by the gate
	// Behind is the ledger's version before, Gate that of the gate, and Through the last number that the gate gave.
	Behind      int64 `json:"behind"`
	Gate        int64 `json:"gate_version"`
	Epoch       int64 `json:"epoch"`
	Through     int64 `json:"through"`
	Voided      int64 `json:"voided,omitempty"`
	Unexplained int64 `json:"unexplained,omitempty"`
	// FactsFrom is the position from which on facts may be others than those that were told, and Followers are who has to begin again there.
	FactsFrom int64    `json:"facts_from,omitempty"`
	Followers []string `json:"followers,omitempty"`
}

// Adopt takes over what the frozen gate g says of a campaign whose ledger is older, in one transaction: epoch, quantity, window,
// pace, pause and close are the gate's from then on, by a change of the kind reconcile. Its version is one more than the higher of the two, and
// it is pending until FinishRebuild. The coupons of absent are those that the gate does not have. They are voided if the gate is whole, and if they are
// not more than there are versions that the ledger has forgotten; else they are unexplained, and stay. Nobody brings facts of the campaign elsewhere until they are replayed, because
// those that were told after the backup had the positions that others get now. Adopting again does nothing. recovery.ErrOutdone: another attempt has begun.
func (e *Epochs) Adopt(ctx context.Context, r recovery.Rebuild, g recovery.Stopped, absent []firstcome.Coupon, whole bool) (a recovery.Adopted, err error) {
	err = e.rows.locked(ctx, r.Campaign, func(t *sqldb.Tx, s stock) (err error) {
		if s.attempt != r.Attempt || s.rebuildingAt.IsZero() {
			return recovery.ErrOutdone
		}
		done, is, err := reconcilingOf(t, s)
		if err != nil || is {
			a = done.adopted()
			return err
		}
		a, err = e.adopt(t, s, r.Actor, g, absent, whole)
		return err
	})
	return a, sqldb.Wrap(err, "adopt what the gate of %s has", r.Campaign)
}

func (s *storedReconcile) adopted() recovery.Adopted {
	return recovery.Adopted{Epoch: s.Epoch, Behind: s.Behind, Version: s.Gate, Voided: s.Voided, Unexplained: s.Unexplained, FactsFrom: s.FactsFrom, Followers: s.Followers}
}

// reconcilingOf returns the reconcile of a campaign that has not ended, if there is one.
func reconcilingOf(t *sqldb.Tx, s stock) (r storedReconcile, is bool, err error) {
	rows, err := t.Query(`SELECT payload FROM changes WHERE campaign_id = ? AND version > ? AND kind = 'reconcile'`, string(s.ID), s.applied)
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		payload, err := sqldb.One[string](take)
		if err == nil {
			err = json.Unmarshal([]byte(payload), &r)
		}
		is = true
		return err
	})
	return r, is, err
}

// adopt is Adopt in its transaction.
func (e *Epochs) adopt(t *sqldb.Tx, s stock, actor string, g recovery.Stopped, absent []firstcome.Coupon, whole bool) (a recovery.Adopted, err error) {
	terms, before, err := e.gateTerms(t, &s, g)
	if err != nil {
		return a, err
	}
	made := storedReconcile{Behind: s.Version, Gate: g.Version, Epoch: max(s.epoch, g.Epoch), Through: g.LastNumber}
	voided := absent
	if forgotten := max(0, g.Version-s.Version); !whole || int64(len(absent)) > forgotten {
		made.Unexplained, voided = int64(len(absent)), nil
	}
	made.Voided = int64(len(voided))
	if made.FactsFrom, made.Followers, err = stopFollowers(t, s); err != nil {
		return a, err
	}
	terms.Quantity = max(terms.Quantity, s.inForce-made.Voided)
	made.storedTerms, made.Paused, made.Closed = storedTermsOf(terms), s.Paused, s.Closed
	made.ClosedAt = pointer(micros(s.ClosedAt))
	s.epoch, s.ceiling = made.Epoch, max(s.ceiling, g.Ceiling, g.LastNumber)
	payload := textOf(made)
	version, at := max(s.Version, g.Version)+1, e.rows.decidesAt(s)
	if err := insertChange(t, s.ID, version, firstcome.ChangeReconcile, payload, at); err != nil {
		return a, err
	}
	detail := logDetail(firstcome.ChangeReconcile, before, payload)
	if err := addLog(t, at, actor, "campaign.reconcile", entry{campaign: s.ID, detail: detail}); err != nil {
		return a, err
	}
	if err := voidBehind(t, &s, actor, version, at, voided); err != nil {
		return a, err
	}
	if err := putTerms(t, s.ID, terms, version, time.Time{}); err != nil {
		return a, err
	}
	_, err = t.Change(`UPDATE campaigns SET paused = ?, closed = ?, closed_at = ?, version = ?, applied = ?, epoch = ?, ceiling = ?, decided_at = ? WHERE id = ?`,
		s.Paused, s.Closed, micros(s.ClosedAt), version+made.Voided, version-1, s.epoch, s.ceiling, at.UnixMicro(), string(s.ID))
	return made.adopted(), err
}

// gateTerms returns the terms that the gate decides by, and the payload of the ledger's. What no gate has is as the ledger knows it. A change
// that the ledger numbered and that the gate does not have is done first, as a rebuild does it.
func (e *Epochs) gateTerms(t *sqldb.Tx, s *stock, g recovery.Stopped) (terms firstcome.Terms, before string, err error) {
	if s.Version > g.Version {
		if err := e.concludeRebuilt(t, s, g.InForce); err != nil {
			return terms, "", err
		}
	}
	if terms, before, err = knownTerms(t, s, g); err != nil || s.Version > g.Version {
		return terms, before, err
	}
	terms.Quantity, terms.OpensAt, terms.ClosesAt = g.Quantity, g.OpensAt, g.ClosesAt
	if g.Line {
		terms.Pace, terms.Waitlist = g.Pace, g.Waitlist
		if g.Log != nil {
			terms.Log = g.Log
		}
	}
	s.Paused, s.Closed, s.ClosedAt = g.Paused, g.Closed, g.ClosedAt
	return terms, before, nil
}

// knownTerms returns the last terms of a ledger, and the payload of the last ones that were not refused. Those that were only proposed are the
// last ones if the gate decides by them.
func knownTerms(t *sqldb.Tx, s *stock, g recovery.Stopped) (terms firstcome.Terms, last string, err error) {
	err = t.Row(`SELECT payload FROM changes WHERE campaign_id = ? AND kind IN ('terms', 'reconcile') AND NOT refused ORDER BY version DESC LIMIT 1`, string(s.ID)).Scan(&last)
	if err != nil {
		return terms, "", err
	}
	terms, err = decodeTerms(last)
	if err != nil || terms.Quantity == g.Quantity && terms.OpensAt.Equal(g.OpensAt) && terms.ClosesAt.Equal(g.ClosesAt) {
		return terms, last, err
	}
	effective, err := payloadOf(t, s.ID, s.termsVersion)
	if err == nil {
		terms, err = decodeTerms(effective)
	}
	return terms, last, err
}

// behindReason is why a coupon is void that the gate does not have any more.
const behindReason = "voided behind the backup that was restored"

// voidBehind notes that coupons were voided by changes that the ledger has forgotten. Each is a change behind a version.
func voidBehind(t *sqldb.Tx, s *stock, actor string, version int64, at time.Time, voided []firstcome.Coupon) error {
	for n, c := range voided {
		if err := addVoidFact(t, *s, c.Number); err != nil {
			return err
		}
		s.position++
		if err := insertChange(t, s.ID, version+int64(n)+1, firstcome.ChangeVoid, voidPayload(c.Number, c.User), at); err != nil {
			return err
		}
		if _, err := t.Change(`UPDATE coupons SET voided_at = ?, void_reason = ? WHERE campaign_id = ? AND number = ?`,
			at.UnixMicro(), behindReason, string(s.ID), c.Number); err != nil {
			return err
		}
		about := entry{campaign: s.ID, user: c.User, number: c.Number}
		if err := addLogJSON(t, at, actor, "coupon.void", map[string]any{"reason": behindReason}, about); err != nil {
			return err
		}
	}
	_, err := t.Change(`UPDATE campaigns SET in_force = in_force - ?, position = ? WHERE id = ?`, len(voided), s.position, string(s.ID))
	return err
}
