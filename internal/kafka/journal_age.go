package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

const (
	// ageRecords is how many records of each partition are read to find the age of a backlog. The first record gives the age of the partition, and
	// the next ones those of campaigns that share it.
	ageRecords = 20
	// ageBytes is the most bytes of a partition that the brokers send at once for that.
	ageBytes = 256 << 10
)

// Lag returns how far the ledger lags behind the gate: see record.Source. An age is at least the time since the issue of the campaign's oldest coupon
// that is in the topic and not recorded. Lag reads committed offsets and records as an audit does, so it needs no running recorder. For a campaign
// that is not among the first records of a lagging partition, it returns the age of the last of these records.
func (j *Journal) Lag(ctx context.Context, active []gate.Revision) ([]record.Lag, error) {
	lags, err := j.options.Gate.Lag(ctx, active)
	if err == nil && len(lags) > 0 {
		err = j.age(ctx, active, lags)
	}
	return lags, err
}

// age raises Oldest of each lag to the age of the campaign's oldest unrecorded coupon in the topic.
func (j *Journal) age(ctx context.Context, active []gate.Revision, lags []record.Lag) error {
	begin, is, err := j.uncommitted(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrUnaged, err)
	}
	end, cut := slices.Clone(is.ends), make([]bool, len(is.ends))
	for p := range end {
		if most := begin[p] + ageRecords; end[p] > most {
			end[p], cut[p] = most, true
		}
	}
	first, last := map[firstcome.CampaignID]time.Time{}, make([]time.Time, len(end)) // issue times: of the first coupon of each campaign, and of the last one read of each partition
	err = j.topic.readAll(ctx, begin, end, func(r *kgo.Record) error {
		b, err := readBatch(j.options.Secret, r)
		if err != nil || len(b.Coupons) == 0 {
			return nil
		}
		last[r.Partition] = b.Coupons[len(b.Coupons)-1].IssuedAt
		at := slices.IndexFunc(active, func(a gate.Revision) bool { return a.Campaign == b.Campaign && a.CampaignUID == b.CampaignUID })
		if at < 0 {
			return nil
		}
		for _, c := range b.Coupons {
			if known, ok := first[c.Campaign]; c.Number > active[at].Drained && (!ok || c.IssuedAt.Before(known)) {
				first[c.Campaign] = c.IssuedAt
			}
		}
		return nil
	}, ctx.Err, kgo.FetchMaxPartitionBytes(ageBytes))
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrUnaged, err)
	}
	var behind time.Time // records that were not read were issued after this time
	for p := range cut {
		if cut[p] && (behind.IsZero() || last[p].Before(behind)) {
			behind = last[p]
		}
	}
	for n := range lags {
		issued, ok := first[lags[n].Campaign]
		if !ok {
			issued = behind
		}
		if !issued.IsZero() && lags[n].Numbers > 0 {
			lags[n].Oldest = max(lags[n].Oldest, time.Since(issued))
		}
	}
	return nil
}

// Ping returns nil if the brokers answer a request for the topic.
func (j *Journal) Ping(ctx context.Context) error {
	client, err := j.client(ctx)
	if err == nil {
		_, err = j.topic.look(ctx, client)
	}
	return err
}
