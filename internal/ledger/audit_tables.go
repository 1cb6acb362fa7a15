package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Tables reads the ledger's tables for an audit, row by row, even if they contradict each other. Each call reads a snapshot of its
// own. Within AtOnce, all calls read the same snapshot.
type Tables struct {
	db interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	dialect *sqldb.Dialect
}

// Tables returns a reader of the ledger's tables.
func (l *Ledger) Tables() *Tables { return &Tables{l.db.Audits, l.db.Dialect} }

// AtOnce calls read with Tables that all read the same snapshot.
func (l *Ledger) AtOnce(ctx context.Context, read func(*Tables) error) error {
	return l.db.Read.AtOnce(ctx, func(s *sqldb.Snapshot) error { return read(&Tables{s, l.db.Dialect}) })
}

// Source returns the functions through which an audit reads the tables.
func (b *Tables) Source() audit.Source {
	return audit.Source{
		Each: b.each, Campaign: b.campaign, Changes: b.changes, Coupons: b.coupons, Past: b.past,
		Letters: b.letters, OtherLetters: b.otherLetters, Lost: b.lost,
	}
}

// each calls each with the rows of a query, as text.
func (b *Tables) each(ctx context.Context, query string, args []any, each func(columns, values []string)) error {
	rows, err := b.db.QueryContext(ctx, query, args...)
	if err == nil {
		defer rows.Close()
		err = b.texts(rows, each)
	}
	switch {
	case b.dialect.Damaged(err):
		err = fmt.Errorf("%w: %w", audit.ErrUnreadable, err)
	case ctx.Err() == nil && b.dialect.Declined(err):
		return fmt.Errorf("%w: %w", audit.ErrNotMade, err)
	}
	return sqldb.Wrap(err, "run a check of the audit")
}

// texts calls each with every row, as text.
func (b *Tables) texts(rows *sql.Rows, each func(columns, values []string)) error {
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	raw, into, values := make([]sql.RawBytes, len(columns)), make([]any, len(columns)), make([]string, len(columns))
	for n := range raw {
		into[n] = &raw[n]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for n := range raw {
			values[n] = string(raw[n])
		}
		each(columns, values)
	}
	return rows.Err()
}

// Campaigns returns the ids of all campaigns that a table names, in order, including campaigns whose row is gone. audit.ErrUnreadable
// means that some tables could not be read; then the ids are from the other tables.
func (b *Tables) Campaigns(ctx context.Context) ([]firstcome.CampaignID, error) {
	var ids []firstcome.CampaignID
	var unreadable error
	for _, table := range []string{"campaigns", "audit_log", "coupons", "tickets", "past_lines", "facts", "changes", "lost"} {
		found, err := b.idsIn(ctx, table)
		if errors.Is(err, audit.ErrUnreadable) {
			unreadable = errors.Join(unreadable, err)
		} else if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), unreadable
}

// idsIn returns the ids of the campaigns that a table names. A table whose primary key begins with the campaign's id may have
// millions of rows for each campaign. From such a table idsIn reads one id per query. With a single query, MariaDB would read
// all rows.
func (b *Tables) idsIn(ctx context.Context, table string) (ids []firstcome.CampaignID, err error) {
	read := func(query string, args ...any) error {
		return every(ctx, b, "the campaigns' ids", func(id firstcome.CampaignID) { ids = append(ids, id) }, sqldb.One[firstcome.CampaignID], query, args...)
	}
	switch table {
	case "campaigns":
		err = read(`SELECT id FROM campaigns`)
		return ids, err
	case "audit_log":
		err = read(`SELECT DISTINCT campaign_id FROM audit_log WHERE action = 'campaign.create' AND campaign_id IS NOT NULL`)
		return ids, err
	}
	for after := ""; ; after = string(ids[len(ids)-1]) {
		known := len(ids)
		err := read(`SELECT campaign_id FROM `+table+` WHERE campaign_id > ? ORDER BY campaign_id LIMIT 1`, after)
		if err != nil || len(ids) == known {
			return ids, err
		}
	}
}

// every reads each row of a query with read, and calls each with the result. It returns audit.ErrUnreadable if read fails, for example
// because a value does not fit its variable, or if the database answers with an error.
func every[V any](ctx context.Context, b *Tables, what string, each func(V), read func(sqldb.Scan) (V, error), query string, args ...any) error {
	rows, err := b.db.QueryContext(ctx, query, args...)
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		v, err := read(take)
		switch {
		case err == nil:
			each(v)
		case ctx.Err() == nil:
			err = fmt.Errorf("%w: %w", audit.ErrUnreadable, err)
		}
		return err
	})
	if ctx.Err() == nil && b.dialect.Declined(err) && !errors.Is(err, audit.ErrUnreadable) {
		err = fmt.Errorf("%w: %w", audit.ErrUnreadable, err)
	}
	return sqldb.Wrap(err, "read %s", what)
}

func (b *Tables) campaign(ctx context.Context, id firstcome.CampaignID) (c audit.Campaign, err error) {
	found := false
	keep := func(row audit.Campaign) { c, found = row, true }
	err = every(ctx, b, "the campaign", keep, func(take sqldb.Scan) (audit.Campaign, error) {
		var c audit.Campaign
		c.ID = id
		var gate string
		line := &c.Line
		err := take(campaign.Quantity(&c.Quantity), sqldb.Time(&c.OpensAt), sqldb.Time(&c.ClosesAt), &c.Paused, &c.Closed, &c.Version, &c.TermsVersion, &c.Applied, &gate, &c.Epoch,
			&c.Secret, &c.LastNumber, &c.Drained, &c.Position, sqldb.Time(&c.CreatedAt), sqldb.Time(&c.OpenedAt), sqldb.Time(&c.SoldOutAt), sqldb.Time(&c.ClosedAt),
			campaign.Pace(&c.Pace), &c.Waitlist, &line.Generation, &line.LastTicket, &line.ServedThrough, &line.Served, &line.Waiting)
		c.Remote = gate != campaign.OwnGate
		return c, err
	}, `SELECT quantity, opens_at, closes_at, paused, closed, version, terms_version, applied, gate, epoch, secret, last_number, drained_through, position, created_at,
		opened_at, sold_out_at, closed_at, pace, waitlist, generation, last_ticket, served_through, served, waiting FROM campaigns WHERE id = ?`, string(id))
	if err == nil && !found {
		err = firstcome.ErrNoCampaign
	}
	return c, err
}

func (b *Tables) coupons(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon)) error {
	return every(ctx, b, "the coupons", each, func(take sqldb.Scan) (firstcome.Coupon, error) {
		c := firstcome.Coupon{Campaign: id, Recorded: true}
		err := take(&c.Number, &c.User, &c.Code, sqldb.Time(&c.IssuedAt), sqldb.Time(&c.VoidedAt), sqldb.OrZero(&c.Generation), sqldb.OrZero(&c.Ticket), &c.Direct)
		return c, err
	}, `SELECT number, user_id, code, issued_at, voided_at, generation, ticket, direct FROM coupons WHERE campaign_id = ? ORDER BY number`, string(id))
}

func (b *Tables) past(ctx context.Context, id firstcome.CampaignID, each func(firstcome.PastLine)) error {
	return every(ctx, b, "the lines that ended", each, campaign.ScanPast, `SELECT `+campaign.PastColumns+` FROM past_lines WHERE campaign_id = ? ORDER BY generation`, string(id))
}

func (b *Tables) lost(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Range)) error {
	return every(ctx, b, "the lost numbers", each, func(take sqldb.Scan) (r firstcome.Range, err error) {
		err = take(&r.First, &r.Count)
		return r, err
	}, `SELECT number, count FROM lost WHERE campaign_id = ? ORDER BY number`, string(id))
}

// errKind means that the payload of a pause or close is not empty. errResume means that of a resume has more than the lists of imported codes.
var (
	errKind   = errors.New("it is a pause or close, and its payload is not empty")
	errResume = errors.New("it is a resume, and its payload is neither empty nor has the lists of imported codes")
)
