package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// CouponIssue is the action of a direct issue in the audit log.
const CouponIssue = campaign.CouponIssue

// A LogEntry is a line of the audit log: an actor changed something.
type LogEntry struct {
	ID       int64
	At       time.Time
	Actor    string
	Action   string // campaign.create, coupon.void, key.revoke, …
	Campaign firstcome.CampaignID
	User     firstcome.UserID
	Number   int64
	Refused  bool // the gate refused the change, so it had no effect
	Detail   json.RawMessage
}

// TermsOf returns the terms before and after the change, as the line's detail holds them. Each is nil if the line has none.
func (e *LogEntry) TermsOf() (before, after *firstcome.Terms, err error) {
	var detail struct{ Old, New json.RawMessage }
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return nil, nil, err
	}
	read := func(payload json.RawMessage) *firstcome.Terms {
		if len(payload) == 0 || string(payload) == "null" {
			return nil
		}
		terms, failed := campaign.DecodeTerms(string(payload))
		err = errors.Join(err, failed)
		return &terms
	}
	return read(detail.Old), read(detail.New), err
}

// A LogFilter selects lines of the audit log. A Campaign, User, CampaignOnly or Before with its zero value excludes nothing.
type LogFilter struct {
	Campaign     firstcome.CampaignID
	User         firstcome.UserID
	CampaignOnly bool  // only lines about no single coupon: their action begins with "campaign."
	Before       int64 // only lines with a smaller id
	Limit        int   // the most lines to return
}

// AuditLog returns the selected lines of the audit log, latest first.
func (rd *Reads) AuditLog(ctx context.Context, f LogFilter) ([]LogEntry, error) {
	query, args := f.query()
	rows, err := rd.db.Read.QueryContext(ctx, query, args...)
	entries, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (e LogEntry, err error) {
		err = take(&e.ID, sqldb.Time(&e.At), &e.Actor, &e.Action, sqldb.OrZero(&e.Campaign), sqldb.OrZero(&e.User), sqldb.OrZero(&e.Number), (*[]byte)(&e.Detail), &e.Refused)
		return e, err
	})
	return entries, sqldb.Wrap(err, "read the audit log")
}

// query returns the query of the selected lines, and its arguments.
func (f *LogFilter) query() (query string, args []any) {
	query = `SELECT id, at, actor, action, campaign_id, user_id, number, detail,
		action = 'campaign.update' AND EXISTS (SELECT 1 FROM changes
			WHERE changes.campaign_id = audit_log.campaign_id AND changed_at = at AND kind = 'terms' AND refused)
		FROM audit_log WHERE true`
	if f.Campaign != "" {
		query, args = query+` AND campaign_id = ?`, append(args, f.Campaign)
	}
	if f.User != "" {
		query, args = query+` AND user_id = ?`, append(args, f.User)
	}
	if f.CampaignOnly {
		query += ` AND number IS NULL AND action LIKE 'campaign.%'`
	}
	if f.Before > 0 {
		query, args = query+` AND id < ?`, append(args, f.Before)
	}
	return query + ` ORDER BY id DESC LIMIT ?`, append(args, f.Limit)
}
