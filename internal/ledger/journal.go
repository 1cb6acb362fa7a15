package ledger

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/firstcome/firstcome/internal/sqldb"
)

// JournalName returns the name of the recorders of this node's campaigns: see the function JournalName.
func (l *Ledger) JournalName() string {
	return JournalName(l.store.CampaignUID(time.Time{}, l.store.Fingerprint))
}

// JournalName returns the name that distinguishes the recorders of a ledger and secret from others that share a topic. The UID is
// that of any campaign of this ledger and secret.
func JournalName(uid string) string {
	identity, rest, _ := strings.Cut(uid, ".")
	return identity + rest[strings.LastIndexByte(rest, '.')+1:]
}

const journalQuery = `SELECT topic, topic_id FROM journals WHERE gate = ?`

// JournalOf returns the topic through which a gate's coupons go to the ledger, or an empty string if there is none.
func (l *Ledger) JournalOf(ctx context.Context, gate string) (topic string, err error) {
	var id string
	err = l.db.Conclude.QueryRowContext(ctx, journalQuery, gate).Scan(&topic, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return topic, sqldb.Wrap(err, "read which topic the coupons of %s pass", gate)
}

// NoteJournal notes the topic of UseGate and its current id. It must be called before the first coupon goes through the topic. again
// reports that the topic has the noted name and another id, so it was recreated. Only the call that notes the new id reports this. NoteJournal may
// be repeated.
func (l *Ledger) NoteJournal(ctx context.Context, id string) (again bool, err error) {
	if l.store.Gate == "" {
		return false, nil // a Redis without a name has no campaigns
	}
	err = l.db.Repeat(ctx, func(t *sqldb.Tx) error {
		var name, was string
		err := t.Row(journalQuery+l.db.Dialect.ForUpdate, l.store.Gate).Scan(&name, &was)
		known := err == nil
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err == nil {
			err = l.store.CheckNewTopic(name)
		}
		again = name == l.store.Journal && was != id
		switch {
		case err != nil || name == l.store.Journal && was == id:
			return err
		case !known:
			_, err = t.Change(`INSERT INTO journals (gate, topic, topic_id) VALUES (?, ?, ?)`, l.store.Gate, l.store.Journal, id)
		default:
			_, err = t.Change(`UPDATE journals SET topic = ?, topic_id = ? WHERE gate = ?`, l.store.Journal, id, l.store.Gate)
		}
		return err
	})
	return again && err == nil, sqldb.Wrap(err, "note which topic the coupons of the gate pass")
}
