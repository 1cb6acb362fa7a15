package campaign

import (
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// PutCursor writes a cursor. The caller has locked the follower's row.
func PutCursor(t *sqldb.Tx, follower string, c follow.Cursor) error {
	known, err := t.Exists(`SELECT count(*) FROM cursors WHERE follower = ? AND campaign_id = ?`, follower, string(c.Campaign))
	switch {
	case err != nil:
	case known:
		_, err = t.Change(`UPDATE cursors SET position = ?, state = ? WHERE follower = ? AND campaign_id = ?`, c.Position, string(c.State), follower, string(c.Campaign))
	default:
		_, err = t.Change(`INSERT INTO cursors (follower, campaign_id, position, state) VALUES (?, ?, ?, ?)`, follower, string(c.Campaign), c.Position, string(c.State))
	}
	return err
}

// Interrupt locks the row of a follower and ends its lease.
func Interrupt(t *sqldb.Tx, follower, set string) error {
	n, err := t.Change(`UPDATE followers SET attempt = attempt + 1, leased_until = 0`+set+` WHERE name = ?`, follower)
	if err == nil && n == 0 {
		err = follow.ErrNoFollower
	}
	return err
}

// StopFollowers marks the cursors of all followers as ahead for a campaign, because their targets may have facts that the ledger has
// lost. It also ends their leases, because a node with a lease may still note a position that this ledger never reached. It returns
// the followers, and the position from which a replay covers what any of them lacks.
func StopFollowers(t *sqldb.Tx, s Row) (from int64, followers []string, err error) {
	rows, err := t.Query(`SELECT name FROM followers ORDER BY name`)
	if followers, err = sqldb.AllRows(rows, err, sqldb.One[string]); err != nil {
		return 0, nil, err
	}
	from = s.Position + 1
	for _, name := range followers {
		if err := Interrupt(t, name, ``); err != nil {
			return 0, nil, err
		}
		at := follow.Cursor{Campaign: s.ID, State: follow.Ahead}
		err := t.Row(`SELECT position FROM cursors WHERE follower = ? AND campaign_id = ?`, name, string(s.ID)).Scan(&at.Position)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, nil, err
		}
		at.Position = min(at.Position, s.Position)
		if err := PutCursor(t, name, at); err != nil {
			return 0, nil, err
		}
		from = min(from, at.Position+1)
	}
	return from, followers, nil
}
