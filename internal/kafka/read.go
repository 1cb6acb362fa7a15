package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
)

// ReadAll calls each with the facts of a ledger in the topic of a URL, in the order of each partition, up to the topic's end at the time of the call.
// complete means that the topic still has its first records.
func ReadAll(ctx context.Context, url, ledger string, each func(firstcome.Fact) error) (complete bool, err error) {
	t, err := readURL(url)
	if err != nil {
		return false, err
	}
	client, err := t.connect(ctx)
	if err != nil {
		return false, err
	}
	defer client.Close()
	is, err := t.look(ctx, client)
	if err != nil {
		return false, err
	}
	complete = true
	for _, start := range is.starts {
		complete = complete && start == 0
	}
	return complete, t.readAll(ctx, is.starts, is.ends, func(r *kgo.Record) error {
		e, ours := read(ledger, r)
		if !ours {
			return nil
		}
		return each(e.fact())
	}, ctx.Err)
}
