package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// An entry has the subject of a line of the audit log, and its detail.
type entry struct {
	campaign firstcome.CampaignID
	user     firstcome.UserID
	number   int64
	detail   string // JSON
}

func addLog(t *sqldb.Tx, at time.Time, actor, action string, e entry) error {
	_, err := t.Change(`INSERT INTO audit_log (at, actor, action, campaign_id, user_id, number, detail)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		at.UnixMicro(), actor, action, nullable(e.campaign), nullable(e.user), nullable(e.number), e.detail)
	return err
}

// termsDetail returns the detail of an audit log line about a change of terms. before and after are JSON.
func termsDetail(before, after string) string { return `{"old":` + before + `,"new":` + after + `}` }

// nullable returns the column value of v: NULL if v is the zero value.
func nullable[V comparable](v V) any {
	var none V
	if v == none {
		return nil
	}
	return v
}

// addLogJSON encodes a detail as JSON and calls addLog with it.
func addLogJSON(t *sqldb.Tx, at time.Time, actor, action string, detail map[string]any, e entry) error {
	e.detail = textOf(detail)
	return addLog(t, at, actor, action, e)
}

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
		terms, failed := decodeTerms(string(payload))
		err = errors.Join(err, failed)
		return &terms
	}
	return read(detail.Old), read(detail.New), err
}

// A LogFilter selects lines of the audit log. A Campaign, User or Before with its zero value excludes nothing.
type LogFilter struct {
	Campaign firstcome.CampaignID
	User     firstcome.UserID
	Before   int64 // only lines with a smaller id
	Limit    int   // the most lines to return
}

// AuditLog returns the selected lines of the audit log, latest first.
func (rd *Reads) AuditLog(ctx context.Context, f LogFilter) ([]LogEntry, error) {
	query, args := `SELECT id, at, actor, action, campaign_id, user_id, number, detail,
		action = 'campaign.update' AND EXISTS (SELECT 1 FROM changes
			WHERE changes.campaign_id = audit_log.campaign_id AND changed_at = at AND kind = 'terms' AND refused)
		FROM audit_log WHERE true`, []any{}
	if f.Campaign != "" {
		query, args = query+` AND campaign_id = ?`, append(args, f.Campaign)
	}
	if f.User != "" {
		query, args = query+` AND user_id = ?`, append(args, f.User)
	}
	if f.Before > 0 {
		query, args = query+` AND id < ?`, append(args, f.Before)
	}
	rows, err := rd.db.Read.QueryContext(ctx, query+` ORDER BY id DESC LIMIT ?`, append(args, f.Limit)...)
	entries, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (e LogEntry, err error) {
		err = take(&e.ID, when(&e.At), &e.Actor, &e.Action, orZero(&e.Campaign), orZero(&e.User), orZero(&e.Number), (*[]byte)(&e.Detail), &e.Refused)
		return e, err
	})
	return entries, sqldb.Wrap(err, "read the audit log")
}
