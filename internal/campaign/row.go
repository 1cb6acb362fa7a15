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

// A Row is a campaign as its row has it. The row lacks the terms on which no decision depends, such as the name.
type Row struct {
	firstcome.Campaign
	Gate         string    // the name of the gate that decides
	Secret       string    // fingerprint of the code secret
	TermsVersion int64     // the version of the terms in force
	InForce      int64     // coupons in force
	Issued       int64     // coupons ever issued, including voided coupons
	LastNumber   int64     // the highest number that the ledger has
	Position     int64     // of the last fact
	Burns        bool      // stock does not come back: see firstcome.Terms.HasImported
	DecidedAt    time.Time // no later decision has an earlier time
	Line         firstcome.Line
	// These fields are set if nodes share the ledger:
	Clock       time.Time            // the server's clock, read after the row was locked
	Quarantined firstcome.Quarantine // stock and terms that claims do not see yet
	// QuarantineMoved is true if recallQuarantine changed the quarantine, so that it differs from the row.
	QuarantineMoved bool
	// These fields are set if the campaign has a remote gate:
	Applied        int64  // version of the last change that the gate has. Less than Version while a change is pending
	Epoch          int64  // of the gate
	Ceiling        int64  // the highest number that the gate may assign: see Store.Grant
	DrainedThrough int64  // see record.Result.Through
	DeadLetters    int64  // dead letters with a number, including resolved ones
	CampaignUID    string // see firstcome.Change
	// Away is why this node does not decide the campaign, or nil. Apart from a Status, only a campaign that another Redis decides has it.
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

// Remote reports whether a gate beside the ledger decides the campaign's claims.
func (s *Row) Remote() bool { return s.Gate != OwnGate }

// Creating reports whether the campaign is still being created at its gate, as far as the ledger knows: claims may be undecided. If a node created it
// there and died before it noted that, Creating is true until a number is recorded.
func (s *Row) Creating() bool { return s.Applied == 0 && s.LastNumber == 0 && s.DrainedThrough == 0 }

// This is the condition of Row.Creating in SQL.
const creating = `c.applied = 0 AND c.last_number = 0 AND c.drained_through = 0`

// rowColumns are the columns of the campaign c that scanRow reads.
const rowColumns = `c.id, c.quantity, c.opens_at, c.closes_at, c.paused, c.closed, c.version, c.terms_version,
	c.gate, c.secret, c.in_force, c.issued, c.last_number, c.position, c.decided_at,
	c.quarantined, c.quarantined_until, c.was_opens_at, c.was_closes_at, c.was_sold_out,
	c.applied, c.epoch, c.ceiling, c.attempt, c.rebuilding_at, c.drained_through, c.dead_letters, c.created_at, c.retired_at,
	c.opened_at, c.sold_out_at, c.closed_at,
	c.pace, c.waitlist, c.burns, c.generation, c.last_ticket, c.served_through, c.served, c.waiting, c.due_at`

// rowQuery reads the campaign with an id.
const rowQuery = `SELECT ` + rowColumns + ` FROM campaigns c WHERE c.id = ?`

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
	s, err := r.scanOwnRow(t.Row(rowQuery+r.DB.Dialect.ForUpdate, id))
	if err == nil && r.DB.Dialect.Shared {
		s.Clock, err = r.DB.Now(t)
		s.recallQuarantine()
	}
	return s, err
}

// scanRow reads a row of rowColumns, and the columns after them into more. It does not set the clock.
func (r *Store) scanRow(take sqldb.Scan, more ...any) (s Row, err error) {
	err = take(append([]any{
		&s.ID, Quantity(&s.Quantity), sqldb.Time(&s.OpensAt), sqldb.Time(&s.ClosesAt), &s.Paused, &s.Closed, &s.Version, &s.TermsVersion,
		&s.Gate, &s.Secret, &s.InForce, &s.Issued, &s.LastNumber, &s.Position, sqldb.Time(&s.DecidedAt),
		&s.Quarantined.Coupons, sqldb.Time(&s.Quarantined.Until), sqldb.Time(&s.Quarantined.OpensAt), sqldb.Time(&s.Quarantined.ClosesAt), &s.Quarantined.SoldOut,
		&s.Applied, &s.Epoch, &s.Ceiling, &s.Attempt, sqldb.Time(&s.RebuildingAt), &s.DrainedThrough, &s.DeadLetters, sqldb.Time(&s.CreatedAt), sqldb.Time(&s.RetiredAt),
		sqldb.Time(&s.OpenedAt), sqldb.Time(&s.SoldOutAt), sqldb.Time(&s.ClosedAt),
		Pace(&s.Pace), &s.Waitlist, &s.Burns, &s.Line.Generation, &s.Line.LastTicket, &s.Line.ServedThrough, &s.Line.Served, &s.Line.Waiting, sqldb.Time(&s.Line.Due),
	}, more...)...)
	s.CampaignUID, s.Away = r.CampaignUID(s.CreatedAt, s.Secret), r.Decides(s.Gate, s.Secret)
	return s, err
}

// scanOwnRow is scanRow for the only row of a query. It refuses a campaign that another kind of gate or another secret decides.
func (r *Store) scanOwnRow(row interface{ Scan(...any) error }) (Row, error) {
	s, err := r.scanRow(row.Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = firstcome.ErrNoCampaign
	case err == nil && !errors.Is(s.Away, gate.ErrGone):
		err = s.Away
	}
	return s, err
}

// ReadRow returns a campaign's state from its row, and the gate's time.
func (r *Store) ReadRow(ctx context.Context, at *sqldb.Snapshot, id firstcome.CampaignID) (s Row, now time.Time, err error) {
	s, err = r.scanOwnRow(at.QueryRowContext(ctx, rowQuery, id))
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
