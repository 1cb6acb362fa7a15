package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Reads reads the ledger for callers and operators: lists, searches and exports.
type Reads struct {
	db     *sqldb.DB
	rows   *rows
	news   *news
	search chan struct{} // held during a search for a code
}

// A Status is a campaign with its counters, from one snapshot.
type Status struct {
	firstcome.Campaign
	InForce  int64     // coupons in force
	Issued   int64     // coupons ever issued, including voided coupons
	Recorded int64     // issued coupons that the ledger has
	Position int64     // of the last fact
	Now      time.Time // the gate's time
	Line     firstcome.Line

	Gate       string // the name of the gate that decides
	Secret     string // fingerprint of the code secret
	Applied    int64  // version of the last change that the gate has. Less than Version while a change is pending
	Epoch      int64  // of the gate
	Drained    int64  // see record.Drained.Through; 0 if the ledger decides
	LastNumber int64  // the highest number that the ledger has
	Marker     string // see firstcome.Change
	Rebuilding bool   // a rebuild of the gate is in progress
	// RetiredAt is when the ledger began to answer instead of the gate. Zero if the campaign is not retired.
	RetiredAt time.Time
	// Unreadable is why the terms cannot be read, or nil. If it is set, Terms holds the columns of the campaign's
	// row, and the campaign's ID as its name.
	Unreadable error
}

// Remote reports whether a gate beside the ledger decides the campaign's claims.
func (s *Status) Remote() bool { return s.Gate != gateKind }

// Unmade reports whether the gate never had the campaign, as far as the ledger knows. A node may have created
// the campaign on the gate and died before it noted that. Then a recorded number shows it.
func (s *Status) Unmade() bool { return isUnmade(s.Applied, s.LastNumber, s.Drained) }

func isUnmade(applied, lastNumber, drained int64) bool {
	return applied == 0 && lastNumber == 0 && drained == 0
}

// This is the condition of isUnmade in SQL.
const unmade = `c.applied = 0 AND c.last_number = 0 AND c.drained_through = 0`

// statusQuery returns the query of campaigns' statuses, up to its WHERE.
func statusQuery(d *sqldb.Dialect) string {
	return `SELECT c.id, c.paused, c.closed, c.version, c.in_force, c.issued, c.position, c.decided_at, c.created_at,
	c.gate, c.secret, c.applied, c.epoch, c.drained_through, c.last_number, c.retired_at, c.opened_at, c.sold_out_at, c.closed_at,
	c.quantity, c.opens_at, c.closes_at, c.pace, c.waitlist,
	c.generation, c.last_ticket, c.served_through, c.served, c.waiting, c.due_at, c.rebuilding_at IS NOT NULL, t.payload, ` + d.Clock + `
	FROM campaigns c LEFT JOIN changes t ON t.campaign_id = c.id AND t.version = c.terms_version `
}

// Ping returns an error if the ledger cannot be used for decisions: it does not answer, or only a standby does.
func (l *Ledger) Ping(ctx context.Context) error {
	var campaigns int
	err := l.db.Conclude.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT id FROM campaigns LIMIT 1) AS first_of_all`).Scan(&campaigns)
	return sqldb.Wrap(err, "read a campaign")
}

// Campaign returns a campaign, or ErrNoCampaign.
func (rd *Reads) Campaign(ctx context.Context, id firstcome.CampaignID) (Status, error) {
	return rd.rows.campaign(ctx, id)
}

// campaign implements Reads.Campaign.
func (r *rows) campaign(ctx context.Context, id firstcome.CampaignID) (Status, error) {
	s, err := r.status(ctx, id)
	if err == nil {
		err = s.Unreadable
	}
	if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
		return Status{}, fmt.Errorf("read the campaign %s: %w", id, err)
	}
	return s, err
}

// status is like campaign, but also returns a campaign whose terms cannot be read.
func (r *rows) status(ctx context.Context, id firstcome.CampaignID) (Status, error) {
	all, err := r.statuses(ctx, r.db.Conclude, `WHERE c.id = ?`, id)
	if err == nil && len(all) == 0 {
		err = firstcome.ErrNoCampaign
	}
	if err != nil {
		return Status{}, err
	}
	return all[0], nil
}

// statuses returns the campaigns that a query selects. what is its end, from WHERE on, in which c is the campaign, and t the change
// that has its terms. It includes campaigns whose terms cannot be read: see Status.Unreadable.
func (r *rows) statuses(ctx context.Context, from *sqldb.Pool, what string, args ...any) ([]Status, error) {
	rows, err := from.QueryContext(ctx, statusQuery(r.db.Dialect)+what, args...)
	return sqldb.AllRows(rows, err, r.scanStatus)
}

// Campaigns returns at most limit campaigns in the order of their IDs, starting after the ID after. It includes
// campaigns whose terms cannot be read: see Status.Unreadable.
func (rd *Reads) Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]Status, error) {
	all, err := rd.rows.statuses(ctx, rd.db.Read, `WHERE c.id > ? ORDER BY c.id LIMIT ?`, after, limit)
	return all, sqldb.Wrap(err, "read the campaigns")
}

// A Listing chooses campaigns for a page of a list.
type Listing struct {
	Text          string    // part of the ID or the name. Empty matches all campaigns
	At            time.Time // the time at which campaigns count as open, next or over
	Offset, Limit int
}

// found is how many campaigns a search examines at most.
const found = 10_000

// List returns a page of campaigns in four groups, in this order:
//
//   - open, the latest first
//   - not open yet, the soonest first
//   - in an open window, but paused, or sold out as far as the ledger knows; the latest first
//   - over, the latest first
func (rd *Reads) List(ctx context.Context, f Listing) ([]Status, error) {
	query, args := ``, []any{}
	limit, offset := f.Limit, f.Offset
	if f.Text != "" { // the terms are JSON, so other fields than the name may also match: they are removed below
		like := `%` + likeEscaped.Replace(strings.ToLower(f.Text)) + `%`
		query, args = `WHERE (lower(c.id) LIKE ? ESCAPE '!' OR lower(t.payload) LIKE ? ESCAPE '!')`, append(args, like, like)
		limit, offset = found, 0
	}
	at := f.At.UnixMicro()
	all, err := rd.rows.statuses(ctx, rd.db.Read, query+` ORDER BY CASE WHEN c.closed OR c.closes_at <= ? THEN 3 WHEN c.opens_at > ? THEN 1 WHEN c.paused OR c.in_force >= c.quantity THEN 2 ELSE 0 END,
		CASE WHEN NOT c.closed AND c.opens_at > ? THEN c.opens_at ELSE -COALESCE(c.opens_at, c.created_at) END, c.id LIMIT ? OFFSET ?`,
		append(args, at, at, at, limit, offset)...)
	if f.Text != "" {
		all = slices.DeleteFunc(all, func(s Status) bool {
			return !strings.Contains(strings.ToLower(string(s.ID)+" "+s.Name), strings.ToLower(f.Text))
		})
		all = all[min(f.Offset, len(all)):min(f.Offset+f.Limit, len(all))]
	}
	return all, sqldb.Wrap(err, "list the campaigns")
}

// likeEscaped escapes the wildcards of LIKE.
var likeEscaped = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

func (r *rows) scanStatus(take sqldb.Scan) (s Status, err error) {
	var seen stock
	var payload sql.NullString
	err = take(&s.ID, &s.Paused, &s.Closed, &s.Version, &s.InForce, &s.Issued, &s.Position, when(&seen.decidedAt), when(&s.CreatedAt),
		&s.Gate, &s.Secret, &s.Applied, &s.Epoch, &s.Drained, &s.LastNumber, when(&s.RetiredAt),
		when(&s.OpenedAt), when(&s.SoldOutAt), when(&s.ClosedAt), quantityInto(&s.Quantity), when(&s.OpensAt), when(&s.ClosesAt), paceInto(&s.Pace), &s.Waitlist,
		&s.Line.Generation, &s.Line.LastTicket, &s.Line.ServedThrough, &s.Line.Served, &s.Line.Waiting, when(&s.Line.Due), &s.Rebuilding, &payload, when(&seen.clock))
	if err != nil {
		return s, err
	}
	s.Name, s.Answer = string(s.ID), firstcome.Recorded
	if terms, err := readTerms(payload); err == nil {
		s.Terms = terms
	} else {
		s.Unreadable = err
	}
	s.Recorded, s.Marker = s.Issued, r.marker(s.CreatedAt, s.Secret)
	if r.db.Clock != nil {
		seen.clock = time.Time{}
	}
	s.Now = r.decidesAt(seen)
	return s, nil
}

// readTerms reads the terms of a change. The payload is NULL if the change is not in the ledger.
func readTerms(payload sql.NullString) (firstcome.Terms, error) {
	if !payload.Valid {
		return firstcome.Terms{}, errors.New("the change that has its terms is not in the ledger: see firstcome audit")
	}
	terms, err := decodeTerms(payload.String)
	if err != nil {
		err = fmt.Errorf("its terms: %w: see firstcome audit", err)
	}
	return terms, err
}

// Counts are the numbers of dead letters and changes that wait for an operator or for the gate.
type Counts struct {
	Letters int64 // open dead letters
	Pending int64 // changes that this node's gate lacks
}

// Counts returns the current counts.
func (rd *Reads) Counts(ctx context.Context) (Counts, error) {
	var c Counts
	err := rd.db.Conclude.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL),
		(SELECT count(*) FROM campaigns c JOIN changes h ON h.campaign_id = c.id AND h.version > c.applied
			WHERE c.applied < c.version AND c.gate = ? AND c.secret = ?)`, rd.rows.gate, rd.rows.fingerprint).Scan(&c.Letters, &c.Pending)
	return c, sqldb.Wrap(err, "count what waits in the ledger")
}
