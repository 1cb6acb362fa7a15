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

// A Status is a campaign with all its terms, from one snapshot. Its quarantine may be over.
type Status struct {
	Row
	Recorded int64     // issued coupons that the ledger has
	Now      time.Time // the gate's time
	// Unreadable is why the terms cannot be read, or nil. If it is set, Terms holds the columns of the campaign's
	// row, and the campaign's ID as its name.
	Unreadable error
}

// statusQuery returns the query of campaigns' statuses, up to its WHERE.
func statusQuery(d *sqldb.Dialect) string {
	return `SELECT ` + rowColumns + `, t.payload, ` + d.Clock + `
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
	var payload sql.NullString
	var clock time.Time
	if s.Row, err = r.scanRow(take, &payload, sqldb.Time(&clock)); err != nil {
		return s, err
	}
	s.Name, s.Answer = string(s.ID), firstcome.Recorded
	if terms, err := readTerms(payload); err == nil {
		s.Terms = s.with(terms)
	} else {
		s.Unreadable = err
	}
	if s.Recorded = s.Issued; r.DB.Clock == nil {
		s.Clock = clock
	}
	s.Now = r.DecidesAt(s.Row)
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
