package kafka

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
)

// GroupOf is the group of the recorders of a name at the topic of an id.
func GroupOf(name, id string) string { return groupOf(name, id) }

// Left reports whether the topic has records of a campaign that are neither committed nor done here.
func (j *Journal) Left(ctx context.Context, id firstcome.CampaignID) (left bool, err error) {
	begin, is, err := j.uncommitted(ctx)
	if err != nil {
		return false, err
	}
	err = j.topic.readAll(ctx, begin, is.ends, func(r *kgo.Record) error {
		left = left || string(r.Key) == string(id) && !j.isDone(r)
		return nil
	}, ctx.Err)
	return left, err
}

// isDone reports whether this recorder has recorded a record, which it cannot commit while an earlier record of another campaign is not done.
func (j *Journal) isDone(r *kgo.Record) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.partitions[r.Partition]
	return p != nil && slices.ContainsFunc(p.pending, func(one *pending) bool { return one.over && one.record.Offset == r.Offset })
}

// Litter appends a value that is not a batch to a campaign's partition.
func (j *Journal) Litter(ctx context.Context, id firstcome.CampaignID, value string) error {
	return j.producer.Load().ProduceSync(ctx, &kgo.Record{Key: []byte(id), Value: []byte(value)}).FirstErr()
}

// Limit returns the most bytes of a batch that the topic takes, as far as the Publisher knows.
func (p *Publisher) Limit() int { return p.topic.limit() }

// PassCut does what Run does with the lease, up to the first pass. Just before that pass it raises the noted ends of partitions that have records, so
// that to the Publisher these partitions have lost their ends.
func (p *Publisher) PassCut(ctx context.Context, lost int64) error {
	f, err := p.cursors.Follow(ctx, p.Follower(), p.owner, leaseTime)
	if err != nil {
		return err
	}
	client, err := p.topic.connect(ctx, producing(p.topic)...)
	if err != nil {
		return err
	}
	defer client.Close()
	s := &session{Publisher: p, client: client, following: f, moved: map[firstcome.CampaignID]follow.Cursor{}}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	for n, end := range s.following.Ends {
		if end > 0 {
			s.following.Ends[n] += lost
		}
	}
	_, err = s.publishOnce(ctx)
	return errors.Join(err, p.leave(ctx, s.following, s.cursors()))
}
