package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Status is a campaign with its counters, from one snapshot: see campaign.Status.
type Status = campaign.Status

// Reads reads the ledger for callers and operators: lists, searches and exports.
type Reads struct {
	db    *sqldb.DB
	store *campaign.Store
	news  *campaign.News
	codes *codeIndex
}

// Ping returns an error if the ledger cannot be used for decisions: it does not answer, or only a standby does.
func (l *Ledger) Ping(ctx context.Context) error {
	var campaigns int
	err := l.db.Conclude.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT id FROM campaigns LIMIT 1) AS first_of_all`).Scan(&campaigns)
	return sqldb.Wrap(err, "read a campaign")
}

// Campaign returns a campaign, or ErrNoCampaign.
func (rd *Reads) Campaign(ctx context.Context, id firstcome.CampaignID) (Status, error) {
	return rd.store.Campaign(ctx, id)
}

// Campaigns returns at most limit campaigns in the order of their IDs, starting after the ID after. It includes
// campaigns whose terms cannot be read: see Status.Unreadable.
func (rd *Reads) Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]Status, error) {
	all, err := rd.store.Statuses(ctx, rd.db.Read, `WHERE c.id > ? ORDER BY c.id LIMIT ?`, after, limit)
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
	all, err := rd.store.Statuses(ctx, rd.db.Read, query+` ORDER BY CASE WHEN c.closed OR c.closes_at <= ? THEN 3 WHEN c.opens_at > ? THEN 1 WHEN c.paused OR c.in_force >= c.quantity THEN 2 ELSE 0 END,
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

// Counts are the numbers of dead letters and changes that wait for an operator or for the gate, and whether commits are replicated.
type Counts struct {
	Letters int64 // open dead letters
	Pending int64 // changes that this node's gate lacks
	// Unreplicated is true if the ledger's server commits without a replica although it is set to wait for one.
	Unreplicated bool
}

// Counts returns the current counts.
func (rd *Reads) Counts(ctx context.Context) (Counts, error) {
	var c Counts
	err := rd.db.Conclude.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL),
		(SELECT count(*) FROM campaigns c JOIN changes h ON h.campaign_id = c.id AND h.version > c.applied
			WHERE c.applied < c.version AND c.gate = ? AND c.secret = ?)`, rd.store.Gate, rd.store.Fingerprint).Scan(&c.Letters, &c.Pending)
	if err == nil {
		c.Unreplicated, err = rd.db.Lapsed(ctx)
	}
	return c, sqldb.Wrap(err, "count what waits in the ledger")
}

// OldTransaction returns the oldest transaction, of at least an age, that keeps PostgreSQL from removing old versions of
// rows: who has it, and its age. who is empty if there is none, if this user may not see it, and on other databases.
func (rd *Reads) OldTransaction(ctx context.Context, least time.Duration) (who string, age time.Duration, err error) {
	return rd.db.OldTransaction(ctx, least)
}
