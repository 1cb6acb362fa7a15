package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// JournalName names the recorders of this node's campaigns: see the function.
func (l *Ledger) JournalName() string {
	return JournalName(l.rows.marker(time.Time{}, l.rows.fingerprint))
}

// JournalName names the recorders of this ledger and secret among all that may share a topic. The marker is of any campaign of theirs.
func JournalName(marker string) string {
	identity, rest, _ := strings.Cut(marker, ".")
	return identity + rest[strings.LastIndexByte(rest, '.')+1:]
}

const journalQuery = `SELECT topic, topic_id FROM journals WHERE gate = ?`

// follows returns an error if this node's topic may not come behind another.
func (r *rows) follows(was string) error {
	if was != "" && was != r.journal && !r.abandons {
		return anotherJournal(was)
	}
	return nil
}

// JournalOf returns the topic that coupons of a gate pass; empty: none.
func (l *Ledger) JournalOf(ctx context.Context, gate string) (topic string, err error) {
	var id string
	err = l.db.Conclude.QueryRowContext(ctx, journalQuery, gate).Scan(&topic, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return topic, sqldb.Wrap(err, "read which topic the coupons of %s pass", gate)
}

// NoteJournal notes the topic of UseGate, which has this id now, before the first coupon passes it. again tells that the topic was recreated:
// it is not the one that it was, which only the call that notes it says. It may be repeated.
func (l *Ledger) NoteJournal(ctx context.Context, id string) (again bool, err error) {
	if l.rows.gate == "" {
		return false, nil // a Redis without a name has no campaigns
	}
	err = l.db.Repeat(ctx, func(t *sqldb.Tx) error {
		var name, was string
		err := t.Row(journalQuery+l.db.Dialect.ForUpdate, l.rows.gate).Scan(&name, &was)
		known := err == nil
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err == nil {
			err = l.rows.follows(name)
		}
		again = name == l.rows.journal && was != id
		switch {
		case err != nil || name == l.rows.journal && was == id:
			return err
		case !known:
			_, err = t.Change(`INSERT INTO journals (gate, topic, topic_id) VALUES (?, ?, ?)`, l.rows.gate, l.rows.journal, id)
		default:
			_, err = t.Change(`UPDATE journals SET topic = ?, topic_id = ? WHERE gate = ?`, l.rows.journal, id, l.rows.gate)
		}
		return err
	})
	return again && err == nil, sqldb.Wrap(err, "note which topic the coupons of the gate pass")
}

func anotherJournal(topic string) error {
	return fmt.Errorf("%w: its coupons pass the topic %s, where some may be that nobody has recorded. Name that topic with --journal; or let its nodes record all that is in it, stop them, and start one with --journal redis",
		firstcome.ErrGateMismatch, topic)
}

// passes returns an error if coupons of a campaign may be in a topic that is not this node's: whoever rebuilt the gate without it would
// lose them.
func (r *rows) passes(t *sqldb.Tx, id firstcome.CampaignID) error {
	rows, err := t.Query(`SELECT topic FROM journals WHERE gate = ? OR gate = (SELECT gate FROM campaigns WHERE id = ?)`, r.gate, string(id))
	return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		topic, err := sqldb.One[string](take)
		if err == nil && topic != "" && topic != r.journal {
			err = anotherJournal(topic)
		}
		return err
	})
}
