package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
)

// A Topic is one of Kafka that coupons pass between a gate's journal and the ledger. The zero value: there is none.
type Topic struct{ Name, ID string }

// UseJournal has this node take it that coupons of its gate pass a topic, or, of the zero Topic, none. Call it behind UseGate, before Run.
// leave says that an operator knows that all is recorded that passed another topic. firstcome.ErrGateMismatch says that some may not be.
func (l *Ledger) UseJournal(ctx context.Context, topic Topic, leave bool) error {
	l.journal, l.abandons = topic, leave
	var was Topic
	err := l.conclude.QueryRowContext(ctx, journalQuery, l.gate).Scan(&was.Name, &was.ID)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err == nil {
		err = l.follows(was)
	}
	return wrap(err, "read which topic the coupons of the gate pass")
}

// JournalName names the recorders of this node's campaigns: see the function.
func (l *Ledger) JournalName() string { return JournalName(l.marker(time.Time{}, l.fingerprint)) }

// JournalName names the recorders of this ledger and secret among all that may share a topic. The marker is of any campaign of theirs.
func JournalName(marker string) string {
	identity, rest, _ := strings.Cut(marker, ".")
	return identity + rest[strings.LastIndexByte(rest, '.')+1:]
}

const journalQuery = `SELECT topic, topic_id FROM journals WHERE gate = ?`

// follows returns an error if this node's topic may not come behind another.
func (l *Ledger) follows(was Topic) error {
	if was.Name != "" && was.Name != l.journal.Name && !l.abandons {
		return anotherJournal(was.Name)
	}
	return nil
}

// JournalOf returns the topic that coupons of a gate pass; empty: none.
func (l *Ledger) JournalOf(ctx context.Context, gate string) (topic string, err error) {
	var id string
	err = l.conclude.QueryRowContext(ctx, journalQuery, gate).Scan(&topic, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return topic, wrap(err, "read which topic the coupons of %s pass", gate)
}

// NoteJournal notes what UseJournal was given, before the first coupon passes the topic. again tells that the topic was made again: it is not
// the one that it was. It may be repeated.
func (l *Ledger) NoteJournal(ctx context.Context) (again bool, err error) {
	if l.gate == "" {
		return false, nil // a Redis without a name has no campaigns
	}
	err = l.repeat(ctx, func(t *tx) error {
		var was Topic
		err := t.row(journalQuery+l.dialect.forUpdate, l.gate).Scan(&was.Name, &was.ID)
		known := err == nil
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err == nil {
			err = l.follows(was)
		}
		again = was.Name == l.journal.Name && was.ID != l.journal.ID
		switch {
		case err != nil || was == l.journal:
			return err
		case !known:
			_, err = t.change(`INSERT INTO journals (gate, topic, topic_id) VALUES (?, ?, ?)`, l.gate, l.journal.Name, l.journal.ID)
		default:
			_, err = t.change(`UPDATE journals SET topic = ?, topic_id = ? WHERE gate = ?`, l.journal.Name, l.journal.ID, l.gate)
		}
		return err
	})
	return again, wrap(err, "note which topic the coupons of the gate pass")
}

func anotherJournal(topic string) error {
	return fmt.Errorf("%w: its coupons pass the topic %s, where some may be that nobody has recorded. Name that topic with --journal; or let its nodes record all that is in it, stop them, and start one with --journal redis",
		firstcome.ErrGateMismatch, topic)
}

// passes returns an error if coupons of a campaign may be in a topic that is not this node's: whoever rebuilt the gate without it would
// lose them.
func (l *Ledger) passes(t *tx, id firstcome.CampaignID) error {
	rows, err := t.query(`SELECT topic FROM journals WHERE gate = ? OR gate = (SELECT gate FROM campaigns WHERE id = ?)`, l.gate, string(id))
	return eachRow(rows, err, func(take scan) error {
		topic, err := one[string](take)
		if err == nil && topic != "" && topic != l.journal.Name {
			err = anotherJournal(topic)
		}
		return err
	})
}
