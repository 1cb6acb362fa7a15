package campaign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// ErrNotRetired means that the ledger cannot answer for the campaign, because only its gate can.
var ErrNotRetired = fmt.Errorf("%w: it is not retired", gate.ErrGone)

// A Status is a campaign with its counters, from one snapshot.
type Status struct {
	firstcome.Campaign
	InForce  int64     // coupons in force
	Issued   int64     // coupons ever issued, including voided coupons
	Recorded int64     // issued coupons that the ledger has
	Position int64     // of the last fact
	Now      time.Time // the gate's time
	Line     firstcome.Line

	Gate        string // the name of the gate that decides
	Secret      string // fingerprint of the code secret
	Applied     int64  // version of the last change that the gate has. Less than Version while a change is pending
	Epoch       int64  // of the gate
	Drained     int64  // see record.Result.Through; 0 if the ledger decides
	LastNumber  int64  // the highest number that the ledger has
	CampaignUID string // see firstcome.Change
	Rebuilding  bool   // a rebuild of the gate is in progress
	// RetiredAt is when the ledger began to answer instead of the gate. Zero if the campaign is not retired.
	RetiredAt time.Time
	// Unreadable is why the terms cannot be read, or nil. If it is set, Terms holds the columns of the campaign's
	// row, and the campaign's ID as its name.
	Unreadable error
}

// Remote reports whether a gate beside the ledger decides the campaign's claims.
func (s *Status) Remote() bool { return s.Gate != OwnGate }

// Creating reports whether the campaign is still being created at its gate, as far as the ledger knows: claims may be undecided. If a node created it
// there and died before it noted that, Creating is true until a number is recorded.
func (s *Status) Creating() bool { return IsCreating(s.Applied, s.LastNumber, s.Drained) }

// IsCreating is Status.Creating for the three numbers of a row.
func IsCreating(applied, lastNumber, drained int64) bool {
	return applied == 0 && lastNumber == 0 && drained == 0
}

// This is the condition of IsCreating in SQL.
const creating = `c.applied = 0 AND c.last_number = 0 AND c.drained_through = 0`

// statusQuery returns the query of campaigns' statuses, up to its WHERE.
func statusQuery(d *sqldb.Dialect) string {
	return `SELECT c.id, c.paused, c.closed, c.version, c.in_force, c.issued, c.position, c.decided_at, c.created_at,
	c.gate, c.secret, c.applied, c.epoch, c.drained_through, c.last_number, c.retired_at, c.opened_at, c.sold_out_at, c.closed_at,
	c.quantity, c.opens_at, c.closes_at, c.pace, c.waitlist,
	c.generation, c.last_ticket, c.served_through, c.served, c.waiting, c.due_at, c.rebuilding_at IS NOT NULL, t.payload, ` + d.Clock + `
	FROM campaigns c LEFT JOIN changes t ON t.campaign_id = c.id AND t.version = c.terms_version `
}

// Campaign implements ledger.Reads.Campaign.
func (r *Store) Campaign(ctx context.Context, id firstcome.CampaignID) (Status, error) {
	s, err := r.Status(ctx, id)
	if err == nil {
		err = s.Unreadable
	}
	if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
		return Status{}, fmt.Errorf("read the campaign %s: %w", id, err)
	}
	return s, err
}

// Status is like Campaign, but also returns a campaign whose terms cannot be read.
func (r *Store) Status(ctx context.Context, id firstcome.CampaignID) (Status, error) {
	all, err := r.Statuses(ctx, r.DB.Conclude, `WHERE c.id = ?`, id)
	if err == nil && len(all) == 0 {
		err = firstcome.ErrNoCampaign
	}
	if err != nil {
		return Status{}, err
	}
	return all[0], nil
}

// Statuses returns the campaigns that a query selects. what is its end, from WHERE on, in which c is the campaign, and t the change
// that has its terms. It includes campaigns whose terms cannot be read: see Status.Unreadable.
func (r *Store) Statuses(ctx context.Context, from *sqldb.Pool, what string, args ...any) ([]Status, error) {
	rows, err := from.QueryContext(ctx, statusQuery(r.DB.Dialect)+what, args...)
	return sqldb.AllRows(rows, err, r.scanStatus)
}

func (r *Store) scanStatus(take sqldb.Scan) (s Status, err error) {
	var seen Row
	var payload sql.NullString
	err = take(&s.ID, &s.Paused, &s.Closed, &s.Version, &s.InForce, &s.Issued, &s.Position, sqldb.Time(&seen.DecidedAt), sqldb.Time(&s.CreatedAt),
		&s.Gate, &s.Secret, &s.Applied, &s.Epoch, &s.Drained, &s.LastNumber, sqldb.Time(&s.RetiredAt),
		sqldb.Time(&s.OpenedAt), sqldb.Time(&s.SoldOutAt), sqldb.Time(&s.ClosedAt), Quantity(&s.Quantity), sqldb.Time(&s.OpensAt), sqldb.Time(&s.ClosesAt), Pace(&s.Pace), &s.Waitlist,
		&s.Line.Generation, &s.Line.LastTicket, &s.Line.ServedThrough, &s.Line.Served, &s.Line.Waiting, sqldb.Time(&s.Line.Due), &s.Rebuilding, &payload, sqldb.Time(&seen.Clock))
	if err != nil {
		return s, err
	}
	s.Name, s.Answer = string(s.ID), firstcome.Recorded
	if terms, err := readTerms(payload); err == nil {
		s.Terms = terms
	} else {
		s.Unreadable = err
	}
	s.Recorded, s.CampaignUID = s.Issued, r.CampaignUID(s.CreatedAt, s.Secret)
	if r.DB.Clock != nil {
		seen.Clock = time.Time{}
	}
	s.Now = r.DecidesAt(seen)
	return s, nil
}

// readTerms reads the terms of a change. The payload is NULL if the change is not in the ledger.
func readTerms(payload sql.NullString) (firstcome.Terms, error) {
	if !payload.Valid {
		return firstcome.Terms{}, errors.New("the change that has its terms is not in the ledger: see firstcome audit")
	}
	terms, err := DecodeTerms(payload.String)
	if err != nil {
		err = fmt.Errorf("its terms: %w: see firstcome audit", err)
	}
	return terms, err
}
