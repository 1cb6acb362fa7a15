package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Deployment keeps a deployment's own data, apart from its campaigns: API keys, nodes, and the last proofs.
type Deployment struct{ db *sqldb.DB }

// AddKey stores a key. Each node accepts the key as soon as it reads the keys again.
func (d *Deployment) AddKey(ctx context.Context, actor string, k firstcome.Key) error {
	err := d.db.Update(ctx, func(t *sqldb.Tx) error {
		_, err := t.Change(`INSERT INTO api_keys (id, name, role, hash, created_at) VALUES (?, ?, ?, ?, ?)`,
			k.ID, k.Name, k.Role, k.Hash[:], k.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		return campaign.AddLogJSON(t, k.CreatedAt, actor, "key.create", map[string]any{"key": k.ID, "name": k.Name, "role": k.Role}, campaign.Entry{})
	})
	return sqldb.Wrap(err, "add a key")
}

// ErrNoKey means that there is no such key.
var ErrNoKey = errors.New("no such key")

// RevokeKey revokes a key permanently. It may be repeated.
func (d *Deployment) RevokeKey(ctx context.Context, actor, id string) error {
	err := d.db.Update(ctx, func(t *sqldb.Tx) error {
		var revoked sql.NullInt64
		err := t.Row(`SELECT revoked_at FROM api_keys WHERE id = ?`+d.db.Dialect.ForUpdate, id).Scan(&revoked)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNoKey
		}
		if err != nil || revoked.Valid {
			return err
		}
		now, err := d.db.Now(t)
		if err != nil {
			return err
		}
		if _, err := t.Change(`UPDATE api_keys SET revoked_at = ? WHERE id = ?`, now.UnixMicro(), id); err != nil {
			return err
		}
		return campaign.AddLogJSON(t, now, actor, "key.revoke", map[string]any{"key": id}, campaign.Entry{})
	})
	return sqldb.Wrap(err, "revoke the key %s", id)
}

// EndSessions ends the sessions of a key that began at or before a time: see firstcome.Key.LoggedOutAt. It may be repeated.
func (d *Deployment) EndSessions(ctx context.Context, id string, until time.Time) error {
	err := d.db.Update(ctx, func(t *sqldb.Tx) error {
		_, err := t.Change(`UPDATE api_keys SET logged_out_at = ? WHERE id = ? AND (logged_out_at IS NULL OR logged_out_at < ?)`, until.UnixMicro(), id, until.UnixMicro())
		return err
	})
	return sqldb.Wrap(err, "end the sessions of the key %s", id)
}

// Keys returns all keys, also revoked keys, oldest first.
func (d *Deployment) Keys(ctx context.Context) ([]firstcome.Key, error) {
	rows, err := d.db.Conclude.QueryContext(ctx, `SELECT `+keyColumns+` FROM api_keys ORDER BY created_at, id`)
	keys, err := sqldb.AllRows(rows, err, scanKey)
	return keys, sqldb.Wrap(err, "read the keys")
}

const keyColumns = `id, name, role, hash, created_at, revoked_at, logged_out_at`

func scanKey(take sqldb.Scan) (k firstcome.Key, err error) {
	var hash []byte
	err = take(&k.ID, &k.Name, &k.Role, &hash, sqldb.Time(&k.CreatedAt), sqldb.Time(&k.RevokedAt), sqldb.Time(&k.LoggedOutAt))
	copy(k.Hash[:], hash)
	return k, err
}
