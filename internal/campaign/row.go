package campaign

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Row is the part of a campaign's row on which decisions depend.
type Row struct {
	firstcome.Campaign
	TermsVersion int64     // the version of the terms in force
	InForce      int64     // coupons in force
	Issued       int64     // coupons ever issued, including voided coupons
	LastNumber   int64     // the highest number that the ledger has
	Position     int64     // of the last fact
	DecidedAt    time.Time // no later decision has an earlier time
	Line         firstcome.Line
	// These fields are set if nodes share the ledger:
	Clock       time.Time            // the server's clock, read after the row was locked
	Quarantined firstcome.Quarantine // stock and terms that claims do not see yet
	// QuarantineMoved is true if recallQuarantine changed the quarantine, so that it differs from the row.
	QuarantineMoved bool
	// These fields are set if the campaign has a remote gate:
	Applied        int64  // version of the last change that the gate has
	Epoch          int64  // of the gate
	Ceiling        int64  // the highest number that the gate may assign: see Store.Grant
	DrainedThrough int64  // see record.Result.Through
	DeadLetters    int64  // dead letters with a number, including resolved ones
	CampaignUID    string // see firstcome.Change
	// Away is the error of a campaign that another Redis decides, or nil.
	Away error
	// Attempt is the number of the last rebuild of the gate. RebuildingAt is its last heartbeat, or zero if no
	// rebuild is in progress.
	Attempt      int64
	RebuildingAt time.Time
	// RetiredAt is when the ledger began to answer instead of the gate. Zero if the campaign is not retired.
	RetiredAt time.Time
}

// Pending reports whether the gate lacks changes.
func (s *Row) Pending() bool { return s.Applied < s.Version }

// Over reports whether the campaign never issues again, because an operator closed it or because it is retired.
// The window of a retired campaign is not opened again.
func (s *Row) Over() bool { return s.Closed || !s.RetiredAt.IsZero() }

// ClosedBy reports whether a campaign was closed at the time by, by its window or an operator.
func (s *Row) ClosedBy(by time.Time) bool {
	return !s.ClosesAt.IsZero() && !s.ClosesAt.After(by) || !s.ClosedAt.IsZero() && !s.ClosedAt.After(by)
}

const rowColumns = `quantity, opens_at, closes_at, paused, closed, version, terms_version,
	gate, secret, in_force, issued, last_number, position, decided_at,
	quarantined, quarantined_until, was_opens_at, was_closes_at, was_sold_out, applied, epoch, ceiling, attempt, rebuilding_at, drained_through, dead_letters, created_at, retired_at,
	opened_at, sold_out_at, closed_at,
	pace, waitlist, generation, last_ticket, served_through, served, waiting, due_at`

// Row returns the state by which the campaign's claims are decided, to be changed only with PutRow. It refuses a campaign that has
// another gate or another secret. A retired campaign has no gate, so only the secret and the kind of gate must match.
func (r *Store) Row(t *sqldb.Tx, id firstcome.CampaignID) (*Row, error) {
	if s, ok := cacheOf(t).rows[id]; ok {
		return s, nil
	}
	s, err := r.readRow(t, id)
	if err == nil && s.RetiredAt.IsZero() {
		err = s.Away
	}
	if err != nil {
		return nil, err
	}
	cacheOf(t).rows[id] = &s
	return &s, nil
}

func (r *Store) readRow(t *sqldb.Tx, id firstcome.CampaignID) (Row, error) {
	row := t.Row(`SELECT `+rowColumns+` FROM campaigns WHERE id = ?`+r.DB.Dialect.ForUpdate, id)
	s, err := r.scanRow(id, row)
	if err == nil && r.DB.Dialect.Shared {
		s.Clock, err = r.DB.Now(t)
		s.recallQuarantine()
	}
	return s, err
}

// scanRow reads a row of rowColumns. It does not set the clock.
func (r *Store) scanRow(id firstcome.CampaignID, row interface{ Scan(...any) error }) (Row, error) {
	s := Row{Campaign: firstcome.Campaign{ID: id}}
	var createdAt time.Time
	var name, secret string
	err := row.Scan(
		Quantity(&s.Quantity), sqldb.Time(&s.OpensAt), sqldb.Time(&s.ClosesAt), &s.Paused, &s.Closed, &s.Version, &s.TermsVersion,
		&name, &secret, &s.InForce, &s.Issued, &s.LastNumber, &s.Position, sqldb.Time(&s.DecidedAt),
		&s.Quarantined.Coupons, sqldb.Time(&s.Quarantined.Until), sqldb.Time(&s.Quarantined.OpensAt), sqldb.Time(&s.Quarantined.ClosesAt), &s.Quarantined.SoldOut,
		&s.Applied, &s.Epoch, &s.Ceiling, &s.Attempt, sqldb.Time(&s.RebuildingAt), &s.DrainedThrough, &s.DeadLetters, sqldb.Time(&createdAt), sqldb.Time(&s.RetiredAt),
		sqldb.Time(&s.OpenedAt), sqldb.Time(&s.SoldOutAt), sqldb.Time(&s.ClosedAt),
		Pace(&s.Pace), &s.Waitlist, &s.Line.Generation, &s.Line.LastTicket, &s.Line.ServedThrough, &s.Line.Served, &s.Line.Waiting, sqldb.Time(&s.Line.Due))
	if errors.Is(err, sql.ErrNoRows) {
		return s, firstcome.ErrNoCampaign
	}
	if err != nil {
		return s, err
	}
	s.CampaignUID = r.CampaignUID(createdAt, secret)
	if s.Away = r.Decides(name, secret); s.Away != nil && !errors.Is(s.Away, gate.ErrGone) {
		return s, s.Away
	}
	return s, nil
}

// ReadRow returns a campaign's state from its row, and the gate's time.
func (r *Store) ReadRow(ctx context.Context, at *sqldb.Snapshot, id firstcome.CampaignID) (s Row, now time.Time, err error) {
	s, err = r.scanRow(id, at.QueryRowContext(ctx, `SELECT `+rowColumns+` FROM campaigns WHERE id = ?`, id))
	if err == nil && r.DB.Dialect.Shared {
		if r.DB.Clock != nil {
			s.Clock = r.DB.Clock().UTC().Truncate(time.Microsecond)
		} else {
			err = at.QueryRowContext(ctx, `SELECT `+r.DB.Dialect.Clock).Scan(sqldb.Time(&s.Clock))
		}
		s.recallQuarantine()
	}
	if err == nil {
		now = r.DecidesAt(s)
	}
	return s, now, err
}

// RowToChange reads the campaign's row from the database for a caller that will change the row. It removes the
// row from memory.
func (r *Store) RowToChange(t *sqldb.Tx, id firstcome.CampaignID) (Row, error) {
	Forget(t, id)
	return r.readRow(t, id)
}
