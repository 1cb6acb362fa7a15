package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	_ "modernc.org/sqlite"
)

const tables = `
CREATE TABLE IF NOT EXISTS coupons (
	campaign   TEXT    NOT NULL,
	number     INTEGER NOT NULL,
	user_id    TEXT,
	code       TEXT,
	state      TEXT    NOT NULL, -- in_force or voided
	changed_at TEXT,
	used_at    TEXT,             -- the shop's own column: no fact changes it
	PRIMARY KEY (campaign, number)
);
CREATE TABLE IF NOT EXISTS cursors (
	campaign TEXT    PRIMARY KEY,
	source   TEXT    NOT NULL,   -- the ledger
	position INTEGER NOT NULL,   -- all facts up to this one are in coupons
	met      INTEGER NOT NULL    -- the highest position that came: above position if facts between are missing
);
CREATE TABLE IF NOT EXISTS offsets (topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition));`

// A shop is a shop's own database.
type shop struct{ db *sql.DB }

// open makes the tables, if there are none, and says which campaigns have a gap.
func open(ctx context.Context, file string) (*shop, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	var gaps sql.NullString
	if _, err = db.ExecContext(ctx, tables); err == nil {
		err = db.QueryRowContext(ctx, `SELECT group_concat(campaign || ' --from ' || (position + 1), ', ') FROM cursors WHERE met > position`).Scan(&gaps)
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	if gaps.Valid {
		log.Printf("facts are missing still; ask for firstcome facts replay %s", gaps.String)
	}
	return &shop{db}, nil
}

func (s *shop) close() { _ = s.db.Close() }

// offsets replaces the offsets that Kafka has of partitions by the database's.
func (s *shop) offsets(ctx context.Context, all map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for topic, partitions := range all {
		for p := range partitions {
			var next int64
			err := s.db.QueryRowContext(ctx, `SELECT next FROM offsets WHERE topic = ? AND partition = ?`, topic, p).Scan(&next)
			switch {
			case err == nil:
				partitions[p] = kgo.NewOffset().At(next)
			case errors.Is(err, sql.ErrNoRows):
				partitions[p] = kgo.NewOffset().AtStart()
			default:
				return nil, err
			}
		}
	}
	return all, nil
}

// take keeps what records say, and where to read on, in one transaction: after an error it has kept nothing. It may be repeated, and to
// take old records again changes nothing.
func (s *shop) take(ctx context.Context, records []*kgo.Record) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, r := range records {
		if err := takeOne(ctx, tx, r); err != nil {
			return fmt.Errorf("partition %d, offset %d: %w", r.Partition, r.Offset, err)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO offsets (topic, partition, next) VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET next = excluded.next`, r.Topic, r.Partition, r.Offset+1)
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

// A fact is what is needed of an event. Whatever else it has is ignored.
type fact struct {
	Source     string          `json:"source"`
	Type       string          `json:"type"`
	DataSchema string          `json:"dataschema"`
	Campaign   string          `json:"campaign"`
	Position   int64           `json:"position"`
	Data       json.RawMessage `json:"data"` // of an unknown kind it may be anything
}

// takeOne keeps the fact of a record if it is the next one of its campaign. A fact that came before is dropped. One behind a gap is left
// out: it comes again when what is missing is published again.
func takeOne(ctx context.Context, tx *sql.Tx, r *kgo.Record) error {
	var f fact
	if json.Unmarshal(r.Value, &f) != nil || !strings.HasPrefix(f.Source, "urn:firstcome:ledger:") || f.Campaign == "" || f.Position < 1 {
		log.Printf("partition %d, offset %d: no fact", r.Partition, r.Offset) // if it should have been one, the next one shows a gap
		return nil
	}
	source, position, met := f.Source, int64(0), int64(0)
	err := tx.QueryRowContext(ctx, `SELECT source, position, met FROM cursors WHERE campaign = ?`, f.Campaign).Scan(&source, &position, &met)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = nil // it is the first fact of the campaign
	case err != nil:
		return err
	case source != f.Source:
		return fmt.Errorf("the campaign %s is of %s, and this fact of it is of %s: two ledgers publish to one topic", f.Campaign, source, f.Source)
	}
	switch next := position + 1; {
	case f.Position < next:
		return f.keep(ctx, tx, false)
	case f.Position == next:
		position = next
		err = f.keep(ctx, tx, true)
	case met == position:
		log.Printf("%s: after the fact %d came %d. Nothing more of this campaign is kept until what is missing comes; ask for firstcome facts replay %s --from %d",
			f.Campaign, position, f.Position, f.Campaign, next)
	}
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO cursors (campaign, source, position, met) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET position = excluded.position, met = excluded.met`, f.Campaign, source, position, max(met, f.Position))
	return err
}

// keep writes a fact into the table of coupons. One that is not new only must not say otherwise than the table.
func (f *fact) keep(ctx context.Context, tx *sql.Tx, isNew bool) error {
	state := map[string]string{"coupon.issued": "in_force", "coupon.voided": "voided"}[f.Type]
	if state == "" {
		return nil // a kind that is not known
	}
	if f.DataSchema != "urn:firstcome:fact:1" {
		return fmt.Errorf("%s/%d: the fields of %s mean something else than this program knows: bring it up to date", f.Campaign, f.Position, f.DataSchema)
	}
	var data struct {
		Number int64   `json:"number"`
		UserID *string `json:"user_id"` // null, as code and at, of a coupon that the ledger has lost
		Code   *string `json:"code"`
		At     *string `json:"at"`
	}
	if err := json.Unmarshal(f.Data, &data); err != nil {
		return err
	}
	var holder *string
	err := tx.QueryRowContext(ctx, `SELECT user_id FROM coupons WHERE campaign = ? AND number = ?`, f.Campaign, data.Number).Scan(&holder)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if holder != nil && data.UserID != nil && *holder != *data.UserID {
		return fmt.Errorf("the coupon %s/%d is another user's in the topic than in the table: the ledger is older than it was. Settle with its operators "+
			"what holds, delete the campaign from coupons and cursors, start this again, and ask for firstcome facts replay %s --from 1",
			f.Campaign, data.Number, f.Campaign)
	}
	if !isNew {
		return nil
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO coupons (campaign, number, user_id, code, state, changed_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET state = excluded.state, changed_at = excluded.changed_at`,
		f.Campaign, data.Number, data.UserID, data.Code, state, data.At)
	return err
}
