package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// appliedAt returns the last change that the gate has when the ledger adds change v. This is v if the ledger is the gate, and otherwise
// the change before v.
func (r *rows) appliedAt(v int64) int64 {
	if r.remote() {
		return v - 1
	}
	return v
}

// addChange adds the next numbered change to a campaign, and writes the ceiling and the quarantine of s. In s, the caller has
// already raised a quantity that the change raises. With a remote gate, the change is then pending.
func (r *rows) addChange(t *sqldb.Tx, s stock, kind firstcome.ChangeKind, payload string) (firstcome.Change, error) {
	made := firstcome.Change{Campaign: s.ID, Version: s.Version + 1, Kind: kind, At: r.decidesAt(s)}
	if err := insertChange(t, s.ID, made.Version, kind, payload, made.At); err != nil {
		return made, err
	}
	_, err := t.Change(`UPDATE campaigns SET version = ?, applied = ?, ceiling = ?, decided_at = ?,
		quarantined = ?, quarantined_until = ?, was_opens_at = ?, was_closes_at = ?, was_sold_out = ? WHERE id = ?`,
		made.Version, r.appliedAt(made.Version), r.grant(&s), made.At.UnixMicro(),
		s.quarantined.coupons, s.quarantined.until.UnixMicro(), micros(s.quarantined.opensAt), micros(s.quarantined.closesAt), s.quarantined.soldOut, string(s.ID))
	return made, err
}

// insertChange writes a change. For a change of terms it also writes the quantity and the window as columns, for the audit.
func insertChange(t *sqldb.Tx, id firstcome.CampaignID, version int64, kind firstcome.ChangeKind, payload string, at time.Time) error {
	var terms storedTerms
	if kind == firstcome.ChangeTerms || kind == firstcome.ChangeReconcile {
		if err := json.Unmarshal([]byte(payload), &terms); err != nil {
			return sqldb.Wrap(err, "read the terms of a change")
		}
	}
	_, err := t.Change(`INSERT INTO changes (campaign_id, version, kind, payload, changed_at, quantity, opens_at, closes_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		string(id), version, string(kind), payload, at.UnixMicro(), column(terms.Quantity), column(terms.OpensAt), column(terms.ClosesAt))
	return err
}

// notRecorded returns the error for a number of a remote gate that is not in the ledger. If the number is above drained_through, the
// gate may have issued it.
func notRecorded(t *sqldb.Tx, s stock, number int64) error {
	letter, err := t.Exists(`SELECT count(*) FROM dead_letters WHERE campaign_id = ? AND number = ?`, string(s.ID), number)
	switch {
	case err != nil:
		return err
	case letter:
		return fmt.Errorf("%w: number %d is a dead letter; void the dead letter", firstcome.ErrNoCoupon, number)
	case number > s.drained:
		return firstcome.ErrNotRecorded
	}
	return firstcome.ErrNoCoupon
}

// maxPending bounds the answer of Pending. More are unlikely: a campaign has at most one pending change, and operators make the changes.
const maxPending = 1000

// Pending returns the changes that the gate lacks, at most 1,000, in the order of the campaigns' ids and of their versions. If id is
// empty, it returns the changes of all campaigns of this node's gate, and otherwise the changes of one campaign. A campaign of another
// gate is an error: see Decides. Unreadable changes are also an error, which Pending returns together with the changes that it
// could read.
func (cs *Campaigns) Pending(ctx context.Context, id firstcome.CampaignID) ([]firstcome.Change, error) {
	query := `SELECT h.campaign_id, h.version, h.kind, h.payload, h.changed_at, c.epoch, c.ceiling, c.created_at, c.gate, c.secret
		FROM campaigns c JOIN changes h ON h.campaign_id = c.id AND h.version > c.applied
		WHERE c.applied < c.version AND `
	which, args := `c.gate = ? AND c.secret = ?`, []any{cs.rows.gate, cs.rows.fingerprint}
	if id != "" {
		which, args = `c.id = ?`, []any{string(id)}
	}
	rows, err := cs.db.Conclude.QueryContext(ctx, query+which+` ORDER BY h.campaign_id, h.version LIMIT ?`, append(args, maxPending)...)
	var all []firstcome.Change
	var unreadable []error
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var c firstcome.Change
		var payload, gate, secret string
		var at, epoch, createdAt int64
		err := take(&c.Campaign, &c.Version, &c.Kind, &payload, &at, &epoch, &c.Ceiling, &createdAt, &gate, &secret)
		if err == nil {
			err = cs.rows.decides(gate, secret)
		}
		if err != nil {
			return err
		}
		c.At, c.Marker = time.UnixMicro(at).UTC(), cs.rows.marker(time.UnixMicro(createdAt), cs.rows.fingerprint)
		if err := decodeChange(&c, payload, epoch); err != nil {
			unreadable = append(unreadable, fmt.Errorf("change %d of %s cannot be read: %w", c.Version, c.Campaign, err))
			return nil
		}
		all = append(all, c)
		return nil
	})
	return all, errors.Join(append(unreadable, sqldb.Wrap(err, "read the changes that the gate lacks"))...)
}

// Changes calls each for the changes of a campaign with versions above after, in order. refused reports whether the gate refused the
// change. Changes stops after limit changes, or when each returns an error.
func (rd *Reads) Changes(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(c firstcome.Change, refused bool) error) error {
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT version, kind, payload, changed_at, refused FROM changes
		WHERE campaign_id = ? AND version > ? ORDER BY version LIMIT ?`, id, after, limit)
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		c := firstcome.Change{Campaign: id}
		var payload string
		var refused bool
		if err := take(&c.Version, &c.Kind, &payload, when(&c.At), &refused); err != nil {
			return err
		}
		if err := decodeChange(&c, payload, 0); err != nil {
			return fmt.Errorf("version %d: %w", c.Version, err)
		}
		return each(c, refused)
	})
	return sqldb.Wrap(err, "read the changes of %s", id)
}

// decodeChange sets the fields of a change from its payload.
func decodeChange(c *firstcome.Change, payload string, epoch int64) (err error) {
	switch c.Kind {
	case firstcome.ChangeTerms:
		c.Terms, err = decodeTerms(payload)
		if c.Version == 1 {
			c.Epoch = epoch
		}
	case firstcome.ChangeReconcile:
		var r struct {
			Paused, Closed bool
			ClosedAt       *int64 `json:"closed_at"`
		}
		if c.Terms, err = decodeTerms(payload); err == nil {
			err = json.Unmarshal([]byte(payload), &r)
		}
		c.Paused, c.Closed, c.ClosedAt = r.Paused, r.Closed, instant(column(r.ClosedAt))
	case firstcome.ChangeVoid:
		var v storedVoid
		err = json.Unmarshal([]byte(payload), &v)
		c.Number, c.User = v.Number, v.User
	}
	return err
}

// errRefusal means that a gate refused a change that it must accept.
var errRefusal = errors.New("the gate refused a change that does not lower the quantity")

// Applied notes that the gate has a change, or refused it. It may be repeated. Proposed terms become the campaign's terms, unless the
// gate refused them. gate.ErrGap means that an earlier change is not noted yet.
func (cs *Campaigns) Applied(ctx context.Context, change firstcome.Change, refused bool) error {
	err := cs.rows.locked(ctx, change.Campaign, func(t *sqldb.Tx, s stock) error {
		switch {
		case change.Version <= s.applied:
			return nil
		case change.Version != s.applied+1 || change.Version > s.Version:
			return fmt.Errorf("%w: the ledger has noted %d of %d changes", gate.ErrGap, s.applied, s.Version)
		}
		if err := concludeChange(t, s, change.Version, refused); err != nil {
			return err
		}
		_, err := t.Change(`UPDATE campaigns SET applied = ? WHERE id = ?`, change.Version, string(s.ID))
		return err
	})
	return sqldb.Wrap(err, "note change %d of %s", change.Version, change.Campaign)
}

// concludeChange makes proposed terms effective, or notes that they were refused.
func concludeChange(t *sqldb.Tx, s stock, version int64, refused bool) error {
	var kind firstcome.ChangeKind
	var payload string
	err := t.Row(`SELECT kind, payload FROM changes WHERE campaign_id = ? AND version = ?`, string(s.ID), version).Scan(&kind, &payload)
	if err != nil {
		return err
	}
	proposed := kind == firstcome.ChangeTerms && version > s.termsVersion
	switch {
	case refused && !proposed:
		return errRefusal
	case refused:
		_, err := t.Change(`UPDATE changes SET refused = TRUE WHERE campaign_id = ? AND version = ?`, string(s.ID), version)
		return err
	case !proposed:
		return nil
	}
	terms, err := decodeTerms(payload)
	if err != nil {
		return err
	}
	return putTerms(t, s.ID, terms, version, time.Time{})
}

// Refused reports whether the gate refused a change of a campaign.
func (cs *Campaigns) Refused(ctx context.Context, id firstcome.CampaignID, version int64) (refused bool, err error) {
	err = cs.db.Conclude.QueryRowContext(ctx, `SELECT count(*) > 0 FROM changes WHERE campaign_id = ? AND version = ? AND refused`,
		string(id), version).Scan(&refused)
	return refused, sqldb.Wrap(err, "read change %d of %s", version, id)
}
