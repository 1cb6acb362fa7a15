package ledger

import (
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// Beside a gate, the ledger hears of a generation of a feed before anybody has a ticket of it, and how it ended from the journal.

// refeed ends a generation that has begun, if the terms that a gate has taken have another feed than the campaign: the gate has ended it too, and
// the journal may not have said so yet. A partition that another campaign has meanwhile is none.
func (t *tx) refeed(s *stock, terms *firstcome.Terms) error {
	if s.Feed == nil || terms.Feed == nil || *terms.Feed == *s.Feed {
		return nil
	}
	err := t.holdFeed(s.ID, terms.Feed)
	if errors.Is(err, firstcome.ErrFeedTaken) {
		err = nil
		terms.Feed.Partition = -1
	}
	if err == nil && s.line.Begun {
		err = t.loseGeneration(s, s.decidedAt)
	}
	if err == nil {
		topic, partition := feedColumns(terms.Feed)
		_, err = t.change(`UPDATE campaigns SET feed_topic = ?, feed_partition = ? WHERE id = ?`, topic, partition, string(s.ID))
	}
	return err
}

// settledFeed returns an error while another feed of a campaign is on its way to the gate: nobody can say in which of them a generation
// begins.
func (t *tx) settledFeed(s stock) error {
	if !s.pending() {
		return nil
	}
	rows, err := t.query(`SELECT payload FROM changes WHERE campaign_id = ? AND version > ? AND kind = 'terms'`, string(s.ID), s.applied)
	return eachRow(rows, err, func(take scan) error {
		payload, err := one[string](take)
		if err != nil {
			return err
		}
		terms, err := decodeTerms(payload)
		if err == nil && terms.Feed != nil && *terms.Feed != *s.Feed {
			err = errMoved
		}
		return err
	})
}

// loseUntold ends the generations before that of the line of which nobody said how they ended: the journal that was to say it is lost.
func (t *tx) loseUntold(s *stock, now time.Time) error {
	var told int64
	if err := t.row(`SELECT COALESCE(MAX(generation), 0) FROM past_lines WHERE campaign_id = ?`, string(s.ID)).Scan(&told); err != nil {
		return err
	}
	for g := told + 1; g < s.line.Generation; g++ {
		if err := t.insertPast(pastLine{s.ID, firstcome.Line{Generation: g}, reasonLost, now.UnixMicro()}); err != nil {
			return err
		}
	}
	return nil
}

// refillLeaver is Refills of somebody who left the line of a feed.
func refillLeaver(take scan, each func(firstcome.Coupon) error) error {
	var c firstcome.Coupon
	if err := take(&c.Campaign, &c.User, &c.Generation, &c.Ticket); err != nil {
		return err
	}
	c.VoidedAt = time.UnixMicro(1).UTC()
	return each(c)
}

var _ gate.FedBook = (*Ledger)(nil)
