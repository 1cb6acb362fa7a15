package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
)

// A LineReader reads lines in a topic. Make one with ReadLines.
type LineReader struct {
	topic  *topic
	client *kgo.Client
	is     found
}

// ReadLines returns the LineReader of the topic of a URL.
func ReadLines(ctx context.Context, url string) (*LineReader, error) {
	t, err := readURL(url)
	if err != nil {
		return nil, err
	}
	client, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	is, err := t.look(ctx, client)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &LineReader{t, client, is}, nil
}

// Close ends the connections.
func (r *LineReader) Close() { r.client.Close() }

// Records calls each with the users of the offsets from first on, before end, of those that a line's topic still has, in their order. A
// record of another campaign or generation is nobody's: its user is empty.
func (r *LineReader) Records(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed, generation, first, end int64, each func(offset int64, user firstcome.UserID)) error {
	switch {
	case feed.Topic != r.is.id:
		return fmt.Errorf("the topic %s has the id %s, and that of the line of %s is %s: name the topic of its line, or it was recreated", r.topic.name, r.is.id, id, feed.Topic)
	case int(feed.Partition) >= len(r.is.ends) || r.is.ends[feed.Partition] < end:
		return fmt.Errorf("the partition %d of the topic %s does not have the offset %d, and tickets of %s up to it are served", feed.Partition, r.topic.name, end-1, id)
	}
	begin, ends := make([]int64, len(r.is.ends)), make([]int64, len(r.is.ends))
	begin[feed.Partition], ends[feed.Partition] = max(first, r.is.starts[feed.Partition]), end
	return r.topic.readAll(ctx, begin, ends, func(record *kgo.Record) error {
		if record.Offset < end {
			each(record.Offset, userOf(record, id, generation))
		}
		return nil
	}, ctx.Err)
}
