package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Proof is the result of the last audit of a campaign that a user of the console ran.
type Proof struct {
	Campaign     firstcome.CampaignID
	By           string // the user of the console
	Began, Ended time.Time
	Read         int64  // rows that the audit read
	Found        []byte // JSON: see console.Proof
}

// KeepProof replaces the stored proof of a campaign, unless the stored proof ended later.
func (d *Deployment) KeepProof(ctx context.Context, p Proof) error {
	err := d.db.Repeat(ctx, func(t *sqldb.Tx) error {
		var ended int64
		err := t.Row(`SELECT ended_at FROM proofs WHERE campaign_id = ?`+d.db.Dialect.ForUpdate, string(p.Campaign)).Scan(&ended)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = t.Change(`INSERT INTO proofs (campaign_id, proved_by, began_at, ended_at, read_rows, found) VALUES (?, ?, ?, ?, ?, ?)`,
				string(p.Campaign), p.By, p.Began.UnixMicro(), p.Ended.UnixMicro(), p.Read, string(p.Found))
		case err == nil && ended <= p.Ended.UnixMicro():
			_, err = t.Change(`UPDATE proofs SET proved_by = ?, began_at = ?, ended_at = ?, read_rows = ?, found = ? WHERE campaign_id = ?`,
				p.By, p.Began.UnixMicro(), p.Ended.UnixMicro(), p.Read, string(p.Found), string(p.Campaign))
		}
		return err
	})
	return sqldb.Wrap(err, "keep the proof of %s", p.Campaign)
}

// Proofs returns the last proof of each campaign that has one.
func (d *Deployment) Proofs(ctx context.Context, ids []firstcome.CampaignID) (all []Proof, err error) {
	err = sqldb.InChunks(ids, func(ids []firstcome.CampaignID) error {
		args := make([]any, len(ids))
		for n, id := range ids {
			args[n] = string(id)
		}
		rows, err := d.db.Read.QueryContext(ctx, sqldb.Repeated(`SELECT campaign_id, proved_by, began_at, ended_at, read_rows, found FROM proofs WHERE campaign_id IN (%s)`, `?`, len(ids)), args...)
		return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
			var p Proof
			var found string
			err := take(&p.Campaign, &p.By, sqldb.Time(&p.Began), sqldb.Time(&p.Ended), &p.Read, &found)
			p.Found = []byte(found)
			all = append(all, p)
			return err
		})
	})
	return all, sqldb.Wrap(err, "read the last proofs")
}
