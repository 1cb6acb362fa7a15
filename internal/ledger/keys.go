package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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
