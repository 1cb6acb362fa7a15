package epoch

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/codes"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// BeginReconcile is like BeginRebuild, for a campaign whose gate is ahead of the ledger in any epoch. last is the
// last attempt that the gate knows. The ledger may have forgotten that attempt, and the new attempt's number
// must be higher.
func (e *Epochs) BeginReconcile(ctx context.Context, actor string, id firstcome.CampaignID, last int64) (recovery.Rebuild, error) {
	r, err := e.begin(ctx, actor, id, func(s campaign.Row) (int64, error) { return nextAttempt(max(s.Attempt, last)), s.Away })
	return r, sqldb.Wrap(err, "begin to reconcile %s", id)
}

// A storedReconcile is the JSON of a reconcile in the table changes. It begins with the fields of terms, so code
// that reads the terms of a change can read it.
type storedReconcile struct {
	campaign.StoredTerms
	Paused   bool   `json:"paused"`
	Closed   bool   `json:"closed"`
	ClosedAt *int64 `json:"closed_at,omitempty"` // by the gate
	// Behind was the ledger's version before the reconcile, or an earlier version: see forked. Gate is the gate's version, and Through the last number
	// that the gate assigned.
	Behind      int64 `json:"behind"`
	Gate        int64 `json:"gate_version"`
	Epoch       int64 `json:"epoch"`
	Through     int64 `json:"through"`
	Voided      int64 `json:"voided,omitempty"`
	Unexplained int64 `json:"unexplained,omitempty"`
	// FactsFrom is the first position at which facts may differ from the published facts. Followers must begin
	// again there.
	FactsFrom int64    `json:"facts_from,omitempty"`
	Followers []string `json:"followers,omitempty"`
}

// Adopt copies the state of the frozen gate g into the ledger, which was rolled back. One transaction writes a
// change of the kind reconcile, with the gate's epoch, terms, pause and close. The change's
// version is one more than the higher of the two versions, and the change is pending until FinishRebuild.
//
// absent are the ledger's coupons that the gate does not have. Adopt voids them if the gate is complete, and if they
// are no more than the versions that the ledger has forgotten. Otherwise it keeps them and counts them as
// unexplained.
//
// Followers stop publishing the campaign's facts until an operator replays them. The facts that were published
// after the backup had positions that other facts get now.
//
// A second call does nothing. recovery.ErrSuperseded means that another attempt has begun.
func (e *Epochs) Adopt(ctx context.Context, r recovery.Rebuild, g recovery.GateState, absent []firstcome.Coupon, complete bool) (a recovery.Adopted, err error) {
	err = e.store.Locked(ctx, r.Campaign, func(t *sqldb.Tx, s campaign.Row) (err error) {
		if s.Attempt != r.Attempt || s.RebuildingAt.IsZero() {
			return recovery.ErrSuperseded
		}
		done, is, err := reconcilingOf(t, s)
		if err != nil || is {
			a = done.adopted()
			return err
		}
		a, err = e.adopt(t, s, r.Actor, g, absent, complete)
		return err
	})
	return a, sqldb.Wrap(err, "adopt what the gate of %s has", r.Campaign)
}

func (s *storedReconcile) adopted() recovery.Adopted {
	return recovery.Adopted{Epoch: s.Epoch, Behind: s.Behind, Version: s.Gate, Voided: s.Voided, Unexplained: s.Unexplained, FactsFrom: s.FactsFrom, Followers: s.Followers}
}

// reconcilingOf returns a campaign's pending reconcile, if there is one.
func reconcilingOf(t *sqldb.Tx, s campaign.Row) (r storedReconcile, is bool, err error) {
	rows, err := t.Query(`SELECT payload FROM changes WHERE campaign_id = ? AND version > ? AND kind = 'reconcile'`, string(s.ID), s.Applied)
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

// adopt is the transaction of Adopt.
func (e *Epochs) adopt(t *sqldb.Tx, s campaign.Row, actor string, g recovery.GateState, absent []firstcome.Coupon, complete bool) (a recovery.Adopted, err error) {
	terms, before, err := e.gateTerms(t, &s, g)
	if err == nil {
		err = compareCodes(t, s.ID, g.Codes)
	}
	if err != nil {
		return a, err
	}
	made := storedReconcile{Behind: s.Version, Gate: g.Version, Epoch: max(s.Epoch, g.Epoch), Through: g.LastNumber}
	voided := absent
	if forgotten := max(0, g.Version-s.Version); !complete || int64(len(absent)) > forgotten {
		made.Unexplained, voided = int64(len(absent)), nil
	}
	made.Voided = int64(len(voided))
	if is, err := forked(t, s, g); err != nil {
		return a, err
	} else if is {
		made.Behind = g.TermsVersion - 1
	}
	if made.FactsFrom, made.Followers, err = campaign.StopFollowers(t, s); err != nil {
		return a, err
	}
	terms.Quantity = max(terms.Quantity, s.InForce-made.Voided)
	made.StoredTerms, made.Paused, made.Closed = campaign.StoredTermsOf(terms), s.Paused, s.Closed
	made.ClosedAt = sqldb.ToPointer(sqldb.Micros(s.ClosedAt))
	s.Epoch, s.Ceiling = made.Epoch, max(s.Ceiling, g.Ceiling, g.LastNumber)
	payload := campaign.JSON(made)
	version, at := max(s.Version, g.Version)+1, e.store.DecidesAt(s)
	if err := campaign.InsertChange(t, s.ID, version, firstcome.ChangeReconcile, payload, at); err != nil {
		return a, err
	}
	detail := campaign.LogDetail(firstcome.ChangeReconcile, before, payload)
	if err := campaign.AddLog(t, at, actor, "campaign.reconcile", campaign.Entry{Campaign: s.ID, Detail: detail}); err != nil {
		return a, err
	}
	if err := voidBehind(t, &s, actor, version, at, voided); err != nil {
		return a, err
	}
	if err := campaign.PutTerms(t, s.ID, terms, version, time.Time{}); err != nil {
		return a, err
	}
	_, err = t.Change(`UPDATE campaigns SET paused = ?, closed = ?, closed_at = ?, version = ?, applied = ?, epoch = ?, ceiling = ?, decided_at = ? WHERE id = ?`,
		s.Paused, s.Closed, sqldb.Micros(s.ClosedAt), version+made.Voided, version-1, s.Epoch, s.Ceiling, at.UnixMicro(), string(s.ID))
	return made.adopted(), err
}

// compareCodes returns recovery.ErrOtherCodes if the ledger's lists of imported codes do not begin as the gate notes that they were when the campaign
// was resumed: coupons would get other codes than they had.
func compareCodes(t *sqldb.Tx, id firstcome.CampaignID, atGate string) error {
	var noted campaign.NotedLists
	if atGate == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(atGate), &noted); err != nil {
		return fmt.Errorf("read what the gate notes of imported codes: %w", err)
	}
	for _, list := range noted.Lists {
		if list.Entries == 0 {
			continue // it needs none, and may never have been imported
		}
		var digest codes.Digest
		entries := int64(0)
		rows, err := t.Query(`SELECT e.mac FROM code_lists l JOIN code_entries e ON e.campaign_id = l.campaign_id AND e.prize_id = l.prize_id
			WHERE l.campaign_id = ? AND l.prize_id = ? AND e.entry <= l.entries AND e.entry <= ? ORDER BY e.entry`, string(id), string(list.Prize), list.Entries)
		err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
			mac, err := sqldb.One[[]byte](take)
			digest.Add(mac)
			entries++
			return err
		})
		if err != nil {
			return err
		}
		if entries != list.Entries || hex.EncodeToString(digest[:]) != list.Digest {
			return fmt.Errorf("%w: of the list %q, %d of %d entries are there", recovery.ErrOtherCodes, list.Prize, entries, list.Entries)
		}
	}
	return nil
}

// gateTerms returns the terms by which the gate decides, and the payload of the ledger's terms. If the ledger has a change that the gate
// lacks, gateTerms concludes it first, as a rebuild does, and returns the ledger's terms.
func (e *Epochs) gateTerms(t *sqldb.Tx, s *campaign.Row, g recovery.GateState) (terms firstcome.Terms, before string, err error) {
	behind := s.Version > g.Version
	if behind {
		err = e.concludeRebuilt(t, s, atGate{version: g.Version, inForce: g.InForce, lastNumber: g.LastNumber})
	}
	if err == nil {
		terms, before, err = campaign.TermsInForce(t, *s)
	}
	if err != nil || behind {
		return terms, before, err
	}
	if terms, err = campaign.DecodeTerms(g.Payload); err != nil {
		return terms, before, fmt.Errorf("read the terms that the gate keeps: %w", err)
	}
	if terms.HasImported() { // voids may have lowered the quantity since the terms were set
		terms.Burnt += terms.Quantity - g.Quantity
	}
	terms.Quantity = g.Quantity
	if g.Log != nil {
		terms.Log = g.Log
	}
	s.Paused, s.Closed, s.ClosedAt = g.Paused, g.Closed, g.ClosedAt
	return terms, before, refuseProposed(t, s, g, terms)
}

// forked reports whether the ledger has another change under the version of the gate's terms. Then the ledger was changed after it was restored, while
// the gate was away. Coupons of this version have the gate's terms, as if the ledger had forgotten the version.
func forked(t *sqldb.Tx, s campaign.Row, g recovery.GateState) (bool, error) {
	var payload string
	err := t.Row(`SELECT payload FROM changes WHERE campaign_id = ? AND version = ?`, string(s.ID), g.TermsVersion).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return payload != g.Payload, err
}

// refuseProposed notes that the gate refused a change that the ledger has only proposed, if the gate's terms are older, or have other prizes than the
// change. No coupon names such a change: a coupon under it would have fixed its prizes.
func refuseProposed(t *sqldb.Tx, s *campaign.Row, g recovery.GateState, terms firstcome.Terms) error {
	if !s.Pending() {
		return nil
	}
	change, is, err := proposed(t, s)
	if err == nil && is && (g.TermsVersion < s.Version || change.Before > 0 && terms.MovesPrizes(change.Terms)) {
		err = campaign.ConcludeChange(t, *s, s.Version, true)
	}
	return err
}

// behindReason is the void reason of a coupon that the gate no longer has.
const behindReason = "voided behind the backup that was restored"

// voidBehind voids coupons that were voided by changes that the ledger has forgotten. Each void is a change. Their
// versions follow version.
func voidBehind(t *sqldb.Tx, s *campaign.Row, actor string, version int64, at time.Time, voided []firstcome.Coupon) error {
	for n, c := range voided {
		if err := campaign.AddVoidFact(t, *s, c.Number); err != nil {
			return err
		}
		s.Position++
		if err := campaign.InsertChange(t, s.ID, version+int64(n)+1, firstcome.ChangeVoid, campaign.VoidPayload(c.Number, c.User, false), at); err != nil {
			return err
		}
		if _, err := t.Change(`UPDATE coupons SET voided_at = ?, void_reason = ? WHERE campaign_id = ? AND number = ?`,
			at.UnixMicro(), behindReason, string(s.ID), c.Number); err != nil {
			return err
		}
		about := campaign.Entry{Campaign: s.ID, User: c.User, Number: c.Number}
		if err := campaign.AddLogJSON(t, at, actor, "coupon.void", map[string]any{"reason": behindReason}, about); err != nil {
			return err
		}
	}
	_, err := t.Change(`UPDATE campaigns SET in_force = in_force - ?, position = ? WHERE id = ?`, len(voided), s.Position, string(s.ID))
	return err
}
