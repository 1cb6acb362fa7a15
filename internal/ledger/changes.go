package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// notRecorded returns the error for a number of a remote gate that is not in the ledger. If the number is above drained_through, the
// gate may have issued it.
func notRecorded(t *sqldb.Tx, s campaign.Row, number int64) error {
	letter, err := t.Exists(`SELECT count(*) FROM dead_letters WHERE campaign_id = ? AND number = ?`, string(s.ID), number)
	switch {
	case err != nil:
		return err
	case letter:
		return fmt.Errorf("%w: number %d is a dead letter; void the dead letter", firstcome.ErrNoCoupon, number)
	case number > s.DrainedThrough:
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
	which, args := `c.gate = ? AND c.secret = ?`, []any{cs.store.Gate, cs.store.Fingerprint}
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
			err = cs.store.Decides(gate, secret)
		}
		if err != nil {
			return err
		}
		c.At, c.CampaignUID = time.UnixMicro(at).UTC(), cs.store.CampaignUID(time.UnixMicro(createdAt), cs.store.Fingerprint)
		if err := campaign.DecodeChange(&c, payload, epoch); err != nil {
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
		if err := take(&c.Version, &c.Kind, &payload, sqldb.Time(&c.At), &refused); err != nil {
			return err
		}
		if err := campaign.DecodeChange(&c, payload, 0); err != nil {
			return fmt.Errorf("version %d: %w", c.Version, err)
		}
		return each(c, refused)
	})
	return sqldb.Wrap(err, "read the changes of %s", id)
}

// Applied notes that the gate has a change, or refused it. It may be repeated. Proposed terms become the campaign's terms, unless the
// gate refused them. gate.ErrGap means that an earlier change is not noted yet.
func (cs *Campaigns) Applied(ctx context.Context, change firstcome.Change, refused bool) error {
	err := cs.store.Locked(ctx, change.Campaign, func(t *sqldb.Tx, s campaign.Row) error {
		switch {
		case change.Version <= s.Applied:
			return nil
		case change.Version != s.Applied+1 || change.Version > s.Version:
			return fmt.Errorf("%w: the ledger has noted %d of %d changes", gate.ErrGap, s.Applied, s.Version)
		}
		if err := campaign.ConcludeChange(t, s, change.Version, refused); err != nil {
			return err
		}
		_, err := t.Change(`UPDATE campaigns SET applied = ? WHERE id = ?`, change.Version, string(s.ID))
		return err
	})
	return sqldb.Wrap(err, "note change %d of %s", change.Version, change.Campaign)
}

// Refusal returns why the gate refused a change of a campaign: firstcome.ErrPrizesFixed or ErrBelowInForce. It returns nil if the gate did not refuse
// the change. A change that moves prizes is refused only after a number was given, even if its quantity was below the coupons in force, too.
func (cs *Campaigns) Refusal(ctx context.Context, id firstcome.CampaignID, version int64) (refusal, err error) {
	change := firstcome.Change{Version: version, Kind: firstcome.ChangeTerms}
	var payload string
	err = cs.db.Conclude.QueryRowContext(ctx, `SELECT payload FROM changes WHERE campaign_id = ? AND version = ? AND refused`,
		string(id), version).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		err = campaign.DecodeChange(&change, payload, 0)
	}
	if refusal = firstcome.ErrBelowInForce; change.Before > 0 {
		refusal = firstcome.ErrPrizesFixed
	}
	return refusal, sqldb.Wrap(err, "read change %d of %s", version, id)
}

// Terms returns the terms of a campaign as of a version, or ErrNoCampaign. Once the gate has taken that version,
// they never change. Until then the gate may refuse them.
func (rd *Reads) Terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	return rd.store.Terms(ctx, id, version)
}
