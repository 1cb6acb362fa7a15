package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
)

// catchUp reads the records after the noted ends of the topic, which a node published that died before it noted them, and moves the cursors past
// them. It reads nothing of a topic that is new to the follower.
func (s *session) catchUp(ctx context.Context) error {
	is, err := s.topic.look(ctx, s.client)
	if err != nil {
		return err
	}
	f := &s.following
	if f.Target == "" {
		f.Target, f.Ends = is.id, is.ends
		return s.Publisher.cursors.Followed(ctx, *f, leaseTime, nil)
	}
	begin, err := s.readFrom(is)
	if err != nil {
		return err
	}
	last := map[firstcome.CampaignID]Event{}
	err = s.topic.readAll(ctx, begin, is.ends, func(r *kgo.Record) error {
		if e, ours := read(s.ledger, r); ours && e.Position > last[firstcome.CampaignID(e.Campaign)].Position {
			last[firstcome.CampaignID(e.Campaign)] = e
		}
		return nil
	}, func() error { return s.note(ctx) })
	if err != nil {
		return err
	}
	for id, e := range last {
		if err := s.moveTo(ctx, id, &e); err != nil {
			return err
		}
	}
	f.Ends = slices.Clone(is.ends)
	return s.Publisher.cursors.Followed(ctx, *f, leaseTime, s.cursors())
}

// readFrom returns the offsets after the noted ends, from which the topic must be read. It is an error if the topic was replaced, or lacks records
// that were appended.
func (s *session) readFrom(is found) ([]int64, error) {
	f := &s.following
	if is.id != f.Target {
		return nil, fmt.Errorf("the topic %s is not the one that it was: it was recreated, or this is another Kafka (its id is %s, and it was %s). "+
			"Name the right one with --facts, or have all facts published into this one with firstcome facts replay --all", s.topic.name, is.id, f.Target)
	}
	begin := make([]int64, len(is.ends))
	for p := range is.ends {
		if p < len(f.Ends) {
			begin[p] = f.Ends[p]
		}
		if begin[p] > is.ends[p] {
			return nil, s.topic.cut(p, is.ends[p], begin[p])
		}
		begin[p] = max(begin[p], is.starts[p])
	}
	return begin, nil
}

// cut returns the error of a partition that ends before records that were appended.
func (t *topic) cut(partition int, end, appended int64) error {
	return fmt.Errorf("the partition %d of the topic %s ends at offset %d, and facts were appended up to %d: Kafka has lost them. "+
		"Have all facts published again with firstcome facts replay --all", partition, t.name, end, appended)
}

// stillThere checks, every topicEvery, that the topic is the same and has all records that were appended. A Kafka client does not notice that a topic
// was recreated.
func (s *session) stillThere(ctx context.Context) error {
	if time.Since(s.looked) < topicEvery {
		return nil
	}
	is, err := s.topic.look(ctx, s.client)
	if err == nil {
		_, err = s.readFrom(is)
	}
	s.looked = time.Now()
	return err
}

// moveTo moves a campaign's cursor to its last event in the topic, unless an operator has ordered the facts to be published again.
func (s *session) moveTo(ctx context.Context, id firstcome.CampaignID, e *Event) error {
	c, err := s.Publisher.cursors.CursorOf(ctx, s.Follower(), id)
	switch {
	case errors.Is(err, firstcome.ErrNoCampaign):
		s.fail(fmt.Errorf("the topic %s has facts of the campaign %s, which the ledger does not have: the ledger is older than it was", s.topic.name, id))
		return nil
	case err != nil:
		return err
	case c.State != follow.Follows || e.Position <= c.Position:
		return nil
	}
	c.Position = e.Position
	if e.Position > c.Top {
		s.ahead(c, fmt.Errorf("the ledger has facts up to %d, and the topic has them up to %d", c.Top, e.Position))
		return nil
	}
	var is Event
	err = s.facts(ctx, id, e.Position-1, 1, func(f firstcome.Fact) error {
		t, err := s.termsOf(ctx, &f)
		is = eventOf(s.ledger, &f, &t)
		return err
	})
	if err != nil {
		return err
	}
	if !is.same(e) {
		s.ahead(c, fmt.Errorf("the fact at %d is %s in the ledger, and another one in the topic (%s)", e.Position, is.ID, e.ID))
		return nil
	}
	s.moved[id] = follow.Cursor{Campaign: id, Position: e.Position}
	return nil
}
