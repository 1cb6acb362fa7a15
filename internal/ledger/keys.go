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

// AddKey keeps a key. It is good on every node as soon as they read the keys again.
func (l *Ledger) AddKey(ctx context.Context, actor string, k firstcome.Key) error {
	err := l.update(ctx, func(t *tx) error {
		_, err := t.change(`INSERT INTO api_keys (id, name, role, hash, created_at) VALUES (?, ?, ?, ?, ?)`,
			k.ID, k.Name, k.Role, k.Hash[:], k.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		return t.logKey(k.CreatedAt, actor, "key.create", map[string]string{"key": k.ID, "name": k.Name, "role": string(k.Role)})
	})
	if err != nil {
		return fmt.Errorf("add a key: %w", err)
	}
	return nil
}

// ErrNoKey says that there is no such key.
var ErrNoKey = errors.New("no such key")

// RevokeKey makes a key bad, for good. Twice is the same as once.
func (l *Ledger) RevokeKey(ctx context.Context, actor, id string) error {
	err := l.update(ctx, func(t *tx) error {
		var revoked sql.NullInt64
		err := t.row(`SELECT revoked_at FROM api_keys WHERE id = ?`+l.dialect.forUpdate, id).Scan(&revoked)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNoKey
		}
		if err != nil || revoked.Valid {
			return err
		}
		now, err := l.now(t)
		if err != nil {
			return err
		}
		if _, err := t.change(`UPDATE api_keys SET revoked_at = ? WHERE id = ?`, now.UnixMicro(), id); err != nil {
			return err
		}
		return t.logKey(now, actor, "key.revoke", map[string]string{"key": id})
	})
	if err != nil {
		return fmt.Errorf("revoke the key %s: %w", id, err)
	}
	return nil
}

func (t *tx) logKey(at time.Time, actor, action string, of map[string]string) error {
	detail, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return t.log(at, actor, action, entry{detail: string(detail)})
}

// Keys returns every key, revoked ones too, in the order of their making.
func (l *Ledger) Keys(ctx context.Context) ([]firstcome.Key, error) {
	rows, err := l.conclude.QueryContext(ctx, `SELECT id, name, role, hash, created_at, revoked_at FROM api_keys ORDER BY created_at, id`)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	defer rows.Close()
	var keys []firstcome.Key
	for rows.Next() {
		var k firstcome.Key
		var hash []byte
		var createdAt, revokedAt sql.NullInt64
		if err := rows.Scan(&k.ID, &k.Name, &k.Role, &hash, &createdAt, &revokedAt); err != nil {
			return nil, fmt.Errorf("read the keys: %w", err)
		}
		copy(k.Hash[:], hash)
		k.CreatedAt, k.RevokedAt = instant(createdAt), instant(revokedAt)
		keys = append(keys, k)
	}
	return keys, rows.Err()
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
