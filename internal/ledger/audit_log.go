package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
)

// An entry is what a line of the audit log is about.
type entry struct {
	campaign firstcome.CampaignID
	user     firstcome.UserID
	number   int64
	detail   string // JSON
}

func (t *tx) log(at time.Time, actor, action string, e entry) error {
	_, err := t.change(`INSERT INTO audit_log (at, actor, action, campaign_id, user_id, number, detail)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		at.UnixMicro(), actor, action, nullable(e.campaign), nullable(e.user), nullable(e.number), e.detail)
	return err
}

// termsDetail is what a line of the audit log has of terms, before and after.
func termsDetail(before, after string) string { return `{"old":` + before + `,"new":` + after + `}` }

// nullable returns the column of a value of which the zero value is none.
func nullable[V comparable](v V) any {
	var none V
	if v == none {
		return nil
	}
	return v
}

// logReason is log with the reason that an operator gave.
func (t *tx) logReason(at time.Time, actor, action, reason string, e entry) error {
	detail, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		return err
	}
	e.detail = string(detail)
	return t.log(at, actor, action, e)
}

func (t *tx) logKey(at time.Time, actor, action string, of map[string]string) error {
	detail, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return t.log(at, actor, action, entry{detail: string(detail)})
}

// A LogEntry is a line of the audit log: who changed what.
type LogEntry struct {
	ID       int64
	At       time.Time
	Actor    string
	Action   string // campaign.create, coupon.void, key.revoke, …
	Campaign firstcome.CampaignID
	User     firstcome.UserID
	Number   int64
	Refused  bool // the gate refused the change: nothing became another
	Detail   json.RawMessage
}

// TermsOf returns the terms that a line of the audit log has, before and after; nil where it has none.
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

// A LogFilter chooses lines of the audit log. The zero value of a field chooses all.
type LogFilter struct {
	Campaign firstcome.CampaignID
	User     firstcome.UserID
	Before   int64 // lines with a smaller id
	Limit    int   // at most so many
}

// AuditLog returns the chosen lines of the audit log, the latest first.
func (l *Ledger) AuditLog(ctx context.Context, f LogFilter) ([]LogEntry, error) {
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
	rows, err := l.read.QueryContext(ctx, query+` ORDER BY id DESC LIMIT ?`, append(args, f.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer rows.Close()
	var entries []LogEntry
	for rows.Next() {
		var e LogEntry
		var at, number sql.NullInt64
		var campaign, user sql.NullString
		var detail string
		if err := rows.Scan(&e.ID, &at, &e.Actor, &e.Action, &campaign, &user, &number, &detail, &e.Refused); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		e.At, e.Number, e.Detail = instant(at), number.Int64, json.RawMessage(detail)
		e.Campaign, e.User = firstcome.CampaignID(campaign.String), firstcome.UserID(user.String)
		entries = append(entries, e)
	}
	return entries, rows.Err()
}
