package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A rows reads and changes the rows of the campaigns that this node decides.
type rows struct {
	queries *queries
	db      *sqldb.DB
	secret  firstcome.Secret // makes the codes
	// fingerprint identifies the secret. It is empty if this process decides nothing.
	fingerprint string
	gate        string // the name of this node's gate: gateKind, or the name of a remote gate
	backlog     int64  // see grant
	journal     string // the topic through which the gate's coupons pass. Empty if there is none
	abandons    bool   // see Beside.Abandons
}

// The rowsOptions are what rows need to know of a node.
type rowsOptions struct {
	secret      firstcome.Secret // makes the codes
	fingerprint string           // identifies the secret. Empty if this process decides nothing
	gate        string           // see rows.gate
	backlog     int64            // as in Options
}

// newRows returns the rows of a database, whose transactions remember campaigns from now on, and the news of facts. It must be called
// before the first transaction.
func newRows(d *sqldb.DB, o rowsOptions) (*rows, *news) {
	n := &news{read: d.Read, waiters: map[firstcome.CampaignID]map[chan struct{}]bool{}}
	r := &rows{db: d, queries: byDialect[d.Dialect], secret: o.secret, fingerprint: o.fingerprint, gate: cmp.Or(o.gate, gateKind), backlog: backlogOf(o.backlog)}
	d.Local, d.Watch = func() sqldb.Local { return newMemory(r.queries, n) }, n.watch
	return r, n
}

// useGate sets the gate beside the ledger that decides this node's campaigns, and the topic through which its coupons pass. See Beside.
// It must be called before Run.
func (r *rows) useGate(name, journal string, abandons bool) {
	r.gate, r.journal, r.abandons = name, journal, abandons
}

// A stock is the part of a campaign's row on which decisions depend.
type stock struct {
	firstcome.Campaign
	termsVersion int64
	inForce      int64
	issued       int64
	lastNumber   int64
	position     int64
	decidedAt    time.Time
	line         firstcome.Line
	// These fields are set if nodes share the ledger:
	clock       time.Time // the server's clock, read after the row was locked
	quarantined quarantined
	// quarantineMoved is true if recallQuarantine changed the quarantine, so that it differs from the row.
	quarantineMoved bool
	// These fields are set if the campaign has a remote gate:
	applied int64 // version of the last change that the gate has
	epoch   int64
	ceiling int64  // the highest number that the gate may assign: see rows.grant
	drained int64  // see record.Drained.Through
	letters int64  // dead letters with a number, including resolved ones
	marker  string // see firstcome.Change
	// away is the error of a campaign that another Redis decides, or nil.
	away error
	// attempt is the number of the last rebuild of the gate. rebuildingAt is its last heartbeat, or zero if no
	// rebuild is in progress.
	attempt      int64
	rebuildingAt time.Time
	// retiredAt is when the ledger began to answer instead of the gate. Zero if the campaign is not retired.
	retiredAt time.Time
}

// pending reports whether the gate lacks changes.
func (s *stock) pending() bool { return s.applied < s.Version }

const stockColumns = `quantity, opens_at, closes_at, paused, closed, version, terms_version,
	gate, secret, in_force, issued, last_number, position, decided_at,
	quarantined, quarantined_until, was_opens_at, was_closes_at, was_sold_out, applied, epoch, ceiling, attempt, rebuilding_at, drained_through, dead_letters, created_at, retired_at,
	opened_at, sold_out_at, closed_at,
	pace, waitlist, generation, last_ticket, served_through, served, waiting, due_at`

// stock returns the state by which the campaign's claims are decided. It refuses a campaign that has another
// gate or another secret. A retired campaign has no gate, so only the secret and the kind of gate must match.
func (r *rows) stock(t *sqldb.Tx, id firstcome.CampaignID) (stock, error) {
	if s, ok := memoryOf(t).stocks[id]; ok {
		return s, nil
	}
	s, err := r.readStock(t, id)
	if err == nil && s.retiredAt.IsZero() {
		err = s.away
	}
	if err == nil {
		memoryOf(t).stocks[id] = s
	}
	return s, err
}

func (r *rows) readStock(t *sqldb.Tx, id firstcome.CampaignID) (stock, error) {
	row := t.Row(`SELECT `+stockColumns+` FROM campaigns WHERE id = ?`+r.db.Dialect.ForUpdate, id)
	s, err := r.scanStock(id, row)
	if err == nil && r.db.Dialect.Shared {
		s.clock, err = r.db.Now(t)
		s.recallQuarantine()
	}
	return s, err
}

// scanStock reads a row of stockColumns. It does not set the clock.
func (r *rows) scanStock(id firstcome.CampaignID, row interface{ Scan(...any) error }) (stock, error) {
	s := stock{Campaign: firstcome.Campaign{ID: id}}
	var createdAt time.Time
	var name, secret string
	err := row.Scan(
		quantityInto(&s.Quantity), when(&s.OpensAt), when(&s.ClosesAt), &s.Paused, &s.Closed, &s.Version, &s.termsVersion,
		&name, &secret, &s.inForce, &s.issued, &s.lastNumber, &s.position, when(&s.decidedAt),
		&s.quarantined.coupons, when(&s.quarantined.until), when(&s.quarantined.opensAt), when(&s.quarantined.closesAt), &s.quarantined.soldOut,
		&s.applied, &s.epoch, &s.ceiling, &s.attempt, when(&s.rebuildingAt), &s.drained, &s.letters, when(&createdAt), when(&s.retiredAt),
		when(&s.OpenedAt), when(&s.SoldOutAt), when(&s.ClosedAt),
		paceInto(&s.Pace), &s.Waitlist, &s.line.Generation, &s.line.LastTicket, &s.line.ServedThrough, &s.line.Served, &s.line.Waiting, when(&s.line.Due))
	if errors.Is(err, sql.ErrNoRows) {
		return s, firstcome.ErrNoCampaign
	}
	if err != nil {
		return s, err
	}
	s.marker = r.marker(createdAt, secret)
	if s.away = r.decides(name, secret); s.away != nil && !errors.Is(s.away, gate.ErrLost) {
		return s, s.away
	}
	return s, nil
}

// see returns a campaign's state from its row, and the gate's time.
func (r *rows) see(ctx context.Context, at *sqldb.Snapshot, id firstcome.CampaignID) (s stock, now time.Time, err error) {
	s, err = r.scanStock(id, at.QueryRowContext(ctx, `SELECT `+stockColumns+` FROM campaigns WHERE id = ?`, id))
	if err == nil && r.db.Dialect.Shared {
		if r.db.Clock != nil {
			s.clock = r.db.Clock().UTC().Truncate(time.Microsecond)
		} else {
			err = at.QueryRowContext(ctx, `SELECT `+r.db.Dialect.Clock).Scan(when(&s.clock))
		}
		s.recallQuarantine()
	}
	if err == nil {
		now = r.decidesAt(s)
	}
	return s, now, err
}

// rowToChange reads the campaign's row from the database for a caller that will change the row. It removes the
// row from memory.
func (r *rows) rowToChange(t *sqldb.Tx, id firstcome.CampaignID) (stock, error) {
	forget(t, id)
	return r.readStock(t, id)
}
