package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A Relayed gate is a remote gate whose entries go through a topic, as a recovery.Machine needs it: what the gate's own journal does not
// have any more is in the topic.
type Relayed struct {
	recovery.Gate
	Journal *Journal
}

// Empty gives all that is in a frozen campaign's journal to a sink, and then all of it that is in the topic: see recovery.Gate. The
// topic's end is read behind the freeze. What a relay had removed from the journal before is below it; what a relay appends later it had
// not removed, so that the sink has it already.
func (g Relayed) Empty(ctx context.Context, r recovery.Rebuild, to flow.Sink) error {
	if err := g.Gate.Empty(ctx, r, to); err != nil {
		return err
	}
	return g.Journal.unrecorded(ctx, r.Campaign, r.Marker, func(b flow.Batch) error {
		b.Attempt = r.Attempt
		_, err := to(ctx, b)
		return err
	})
}

// Unrecorded calls each with every coupon of a campaign that is in the gate's journal, or in the topic: see recovery.Gate. Entries
// move from the journal to the topic, so the journal is read first.
func (g Relayed) Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	if err := g.Gate.Unrecorded(ctx, id, each); err != nil {
		return err
	}
	marker, err := g.Journal.options.Ledger.Whose(ctx, id)
	if err != nil {
		return err
	}
	return g.Journal.Unrecorded(ctx, id, marker, each)
}

// Unrecorded calls each with every coupon of the campaign of a marker that the topic has, and that may not be recorded.
func (j *Journal) Unrecorded(ctx context.Context, id firstcome.CampaignID, marker string, each func(firstcome.Coupon) error) error {
	return j.unrecorded(ctx, id, marker, func(b flow.Batch) error {
		for _, c := range b.Coupons {
			if err := each(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// unrecorded calls each with what the topic has of the campaign of a marker and is not committed, up to where the topic ends now. What cannot
// be read is garbage; a newer release's record is an error.
func (j *Journal) unrecorded(ctx context.Context, id firstcome.CampaignID, marker string, each func(flow.Batch) error) error {
	begin, is, err := j.uncommitted(ctx)
	if err != nil {
		return err
	}
	err = j.topic.readAll(ctx, begin, is.ends, func(r *kgo.Record) error {
		if string(r.Key) != string(id) {
			return nil
		}
		b, err := readBatch(j.options.Secret, r)
		switch {
		case b.Marker != marker: // it is of another ledger's campaign, or its recorder buries it
			return nil
		case errors.Is(err, errNewer):
			return err
		case err != nil: // its recorder buries it
			return nil
		}
		return each(b)
	}, ctx.Err)
	if err != nil {
		return fmt.Errorf("read what the topic has of %s: %w", id, err)
	}
	return nil
}
