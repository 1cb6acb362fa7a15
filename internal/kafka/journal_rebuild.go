package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A Relayed is a remote gate with a Journal behind its own journal, for a recovery.Machine: entries that have left the gate's journal are in the
// topic.
type Relayed struct {
	recovery.Gate
	Journal *Journal
}

// Empty passes all coupons of a frozen campaign's journal to a sink, and then all of its coupons in the topic: see recovery.Gate. It reads the
// topic's end after the freeze. Entries that a relay removed from the gate's journal before are below that end. Entries that a relay appends later
// were still in the gate's journal, so the sink already has them.
func (g Relayed) Empty(ctx context.Context, r recovery.Rebuild, to record.Sink) error {
	if err := g.Gate.Empty(ctx, r, to); err != nil {
		return err
	}
	return g.Journal.unrecorded(ctx, r.Campaign, r.CampaignUID, func(b record.Batch) error {
		b.Attempt = r.Attempt
		_, err := to(ctx, b)
		return err
	})
}

// Unrecorded calls each with every coupon of a campaign that is in the gate's journal or in the topic: see recovery.Gate. Entries move from the
// journal to the topic, so it reads the journal first.
func (g Relayed) Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	if err := g.Gate.Unrecorded(ctx, id, each); err != nil {
		return err
	}
	uid, err := g.Journal.options.Ledger.Whose(ctx, id)
	if err != nil {
		return err
	}
	return g.Journal.Unrecorded(ctx, id, uid, each)
}

// Unrecorded calls each with every coupon in the topic that may not be recorded, of the campaign with a UID.
func (j *Journal) Unrecorded(ctx context.Context, id firstcome.CampaignID, uid string, each func(firstcome.Coupon) error) error {
	return j.unrecorded(ctx, id, uid, func(b record.Batch) error {
		for _, c := range b.Coupons {
			if err := each(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// unrecorded calls each with the batches of the campaign with a UID that are in the topic and not committed, up to the topic's current end. It skips
// records that cannot be read; a record of a newer release is an error.
func (j *Journal) unrecorded(ctx context.Context, id firstcome.CampaignID, uid string, each func(record.Batch) error) error {
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
		case b.CampaignUID != uid: // another ledger's campaign, or a record that its recorder will bury
			return nil
		case errors.Is(err, errNewer):
			return err
		case err != nil: // its recorder will bury it
			return nil
		}
		return each(b)
	}, ctx.Err)
	if err != nil {
		return fmt.Errorf("read the topic's records of %s: %w", id, err)
	}
	return nil
}
