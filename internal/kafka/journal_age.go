package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

const (
	// ageRecords is how many records of each partition are read to find out how old a backlog is: the first one tells that of the partition,
	// and those behind it of campaigns that share it.
	ageRecords = 20
	// ageBytes bounds what the brokers send of a partition at once for that.
	ageBytes = 256 << 10
)

// Lag returns how far the ledger is behind the gate: see flow.Source. An age is at least how long ago the oldest coupons were issued that are in
// the topic and not recorded. It asks as an audit does, so that the answer does not depend on any recorder. Of a campaign that is not among the
// first records of the partitions that are behind, that is taken to be the age of the last of these.
func (j *Journal) Lag(ctx context.Context, active []gate.Revision) ([]flow.Lag, error) {
	lags, err := j.options.Gate.Lag(ctx, active)
	if err == nil && len(lags) > 0 {
		err = j.age(ctx, active, lags)
	}
	return lags, err
}

// age raises the ages of lags.
func (j *Journal) age(ctx context.Context, active []gate.Revision, lags []flow.Lag) error {
	begin, is, err := j.uncommitted(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", flow.ErrUnaged, err)
	}
	end, cut := slices.Clone(is.ends), make([]bool, len(is.ends))
	for p := range end {
		if most := begin[p] + ageRecords; end[p] > most {
			end[p], cut[p] = most, true
		}
	}
	first, last := map[firstcome.CampaignID]time.Time{}, make([]time.Time, len(end)) // when the first of each campaign, and the last of each partition, were issued
	err = j.topic.readAll(ctx, begin, end, func(r *kgo.Record) error {
		b, err := readBatch(j.options.Secret, r)
		if err != nil || len(b.Coupons) == 0 {
			return nil
		}
		last[r.Partition] = b.Coupons[len(b.Coupons)-1].IssuedAt
		at := slices.IndexFunc(active, func(a gate.Revision) bool { return a.Campaign == b.Campaign && a.Marker == b.Marker })
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
		return fmt.Errorf("%w: %w", flow.ErrUnaged, err)
	}
	var behind time.Time // what was not read was issued after that
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

// Ping returns nil if the brokers answer about the topic.
func (j *Journal) Ping(ctx context.Context) error {
	client, err := j.client(ctx)
	if err == nil {
		_, err = j.topic.look(ctx, client)
	}
	return err
}
