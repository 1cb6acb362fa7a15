package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// both starts firstcome and the reference.
func (b *bench) both(ctx context.Context, ledger string) (s, bare *server, err error) {
	if s, err = b.firstcome(ctx, ledger); err != nil {
		return nil, nil, err
	}
	if bare, err = b.bare(ctx); err != nil {
		s.stop()
		return nil, nil, err
	}
	return s, bare, nil
}

// winners: every claim is issued a coupon, fsynced in SQLite before its answer.
func winners(ctx context.Context, b *bench) error {
	s, bare, err := b.both(ctx, "winners.db")
	if err != nil {
		return err
	}
	defer s.stop()
	defer bare.stop()
	for _, connections := range []int{64, 256} {
		for name, users := range orders {
			from := 0
			issue := func() (figure, error) {
				id, err := b.campaign(ctx, s, -1)
				if err != nil {
					return figure{}, err
				}
				from += b.claims
				return drive(ctx, at(s, id, users(from)), b.claims, connections, 0, "issued")
			}
			id, err := b.campaign(ctx, s, -1)
			if err != nil {
				return err
			}
			if err := copyAnswer(ctx, s, bare, id, "somebody"); err != nil {
				return err
			}
			reference := func() (figure, error) {
				return drive(ctx, at(bare, id, users(0)), b.claims, connections, 0, "issued")
			}
			c, err := b.pair(issue, reference)
			if err != nil {
				return err
			}
			if connections == 64 && name == "in order" {
				b.capacity = c.got
			}
			what := fmt.Sprintf("winners, %d connections, user ids %s", connections, name)
			b.printRate(what, c, "bare", wantWinners)
			b.printCPU(c, wantCPU)
		}
	}
	return nil
}

// floor: what winners at 64 connections would be if nothing but the queue and the syncs of its
// batches took time: no database, no API.
func floor(ctx context.Context, b *bench) error {
	s, bare, err := b.both(ctx, "floor.db")
	if err != nil {
		return err
	}
	defer s.stop()
	defer bare.stop()
	synced, err := b.reference(ctx, "-synced", filepath.Join(b.dir, "synced"))
	if err != nil {
		return err
	}
	defer synced.stop()
	id, err := b.campaign(ctx, s, -1)
	if err != nil {
		return err
	}
	asked := func(to *server) (func() (figure, error), error) {
		return func() (figure, error) { return drive(ctx, at(to, id, sequential(0)), b.claims, 64, 0, "issued") },
			copyAnswer(ctx, s, to, id, to.address) // the first who asks is issued one
	}
	measured, err := asked(synced)
	if err != nil {
		return err
	}
	reference, err := asked(bare)
	if err != nil {
		return err
	}
	c, err := b.pair(measured, reference)
	if err != nil {
		return err
	}
	b.printRate("a page synced a batch and nothing else, 64 connections", c, "bare", "")
	b.printCPU(c, "")
	return nil
}

// latency: winners in the open loop, at 70 % of what 64 connections got.
func latency(ctx context.Context, b *bench) error {
	if b.capacity == 0 {
		return errors.New("measure the winners too: latency is taken at 70 % of them")
	}
	s, err := b.firstcome(ctx, "latency.db")
	if err != nil {
		return err
	}
	defer s.stop()
	id, err := b.campaign(ctx, s, -1)
	if err != nil {
		return err
	}
	const seconds = 20
	rate := 0.7 * b.capacity
	before, err := processors()
	if err != nil {
		return err
	}
	f, err := drive(ctx, at(s, id, sequential(0)), int(rate*seconds), 256, rate, "issued")
	if err != nil {
		return err
	}
	after, err := processors()
	if err != nil {
		return err
	}
	l := f.result.Latency
	b.print(fmt.Sprintf("latency, open loop, %d s at %s", seconds, perSecond(rate)), latencies(l.P50, l.P99, l.Max), after.takenSince(before), "", wantLatency)
	return nil
}

// campaigns: 1,000 open campaigns together against one, all of them with a limit.
func campaigns(ctx context.Context, b *bench) error {
	s, err := b.firstcome(ctx, "campaigns.db")
	if err != nil {
		return err
	}
	defer s.stop()
	from := 0
	claim := func(many int) func() (figure, error) {
		return func() (figure, error) {
			ids := make([]string, many)
			for n := range ids {
				if ids[n], err = b.campaign(ctx, s, int64(b.claims)); err != nil {
					return figure{}, err
				}
			}
			from += b.claims
			return drive(ctx, target{servers: []*server{s}, campaigns: ids, user: sequential(from)}, b.claims, 256, 0, "issued")
		}
	}
	c, err := b.pair(claim(1000), claim(1))
	if err != nil {
		return err
	}
	b.printRate("1,000 open campaigns, 256 connections", c, "one", wantCampaigns)
	b.printCPU(c, "")
	return nil
}
