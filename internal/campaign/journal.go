package campaign

import (
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// CheckNewTopic returns an error if this node's topic must not replace the topic that the gate had.
func (r *Store) CheckNewTopic(was string) error {
	if was != "" && was != r.Journal && !r.abandons {
		return anotherJournal(was)
	}
	return nil
}

func anotherJournal(topic string) error {
	return fmt.Errorf("%w: its coupons go through the topic %s, which may hold coupons that are not recorded yet. Name that topic with --journal; or let its nodes record all of its coupons, stop them, and start one node with --journal redis",
		firstcome.ErrGateMismatch, topic)
}

// CheckTopics returns an error if coupons of a campaign may be in a topic that is not this node's. A rebuild without that topic would lose
// these coupons.
func (r *Store) CheckTopics(t *sqldb.Tx, id firstcome.CampaignID) error {
	rows, err := t.Query(`SELECT topic FROM journals WHERE gate = ? OR gate = (SELECT gate FROM campaigns WHERE id = ?)`, r.Gate, string(id))
	return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		topic, err := sqldb.One[string](take)
		if err == nil && topic != "" && topic != r.Journal {
			err = anotherJournal(topic)
		}
		return err
	})
}
