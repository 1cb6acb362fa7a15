package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// both starts firstcome and the reference.
func (b *bench) both(ctx context.Context, ledger string) (s, bare *server) {
	return b.firstcome(ctx, ledger), b.reference(ctx, "-bare")
}

// winners: every claim is issued a coupon, fsynced in SQLite before its answer.
func winners(ctx context.Context, b *bench) {
	s, bare := b.both(ctx, "winners.db")
	defer s.stop()
	defer bare.stop()
	for _, connections := range []int{64, 256} {
		for name, users := range orders {
			from := 0
			issue := func() figure {
				id := b.campaign(ctx, s, -1)
				from += b.claims
				return drive(ctx, at(s, id, users(from)), b.claims, connections, 0, "issued")
			}
			id := b.campaign(ctx, s, -1)
			copyAnswer(ctx, s, bare, id, "somebody")
			reference := func() figure {
				return drive(ctx, at(bare, id, users(0)), b.claims, connections, 0, "issued")
			}
			c := b.pair(issue, reference)
			if connections == 64 && name == "in order" {
				b.capacity = c.got
			}
			what := fmt.Sprintf("winners, %d connections, user ids %s", connections, name)
			b.printRate(what, c, "bare", wantWinners)
			b.printCPU(c, wantCPU)
		}
	}
}

// floor: what winners at 64 connections would be if nothing but the queue and the syncs of its
// batches took time: no database, no API.
func floor(ctx context.Context, b *bench) {
	s, bare := b.both(ctx, "floor.db")
	defer s.stop()
	defer bare.stop()
	synced := b.reference(ctx, "-synced", filepath.Join(b.dir, "synced"))
	defer synced.stop()
	id := b.campaign(ctx, s, -1)
	asked := func(to *server) func() figure {
		copyAnswer(ctx, s, to, id, to.address) // the first who asks is issued one
		return func() figure { return drive(ctx, at(to, id, sequential(0)), b.claims, 64, 0, "issued") }
	}
	c := b.pair(asked(synced), asked(bare))
	b.printRate("a page synced a batch and nothing else, 64 connections", c, "bare", "")
	b.printCPU(c, "")
}

// latency: winners in the open loop, at 70 % of what 64 connections got.
func latency(ctx context.Context, b *bench) {
	if b.capacity == 0 {
		must(errors.New("measure the winners too: latency is taken at 70 % of them"))
	}
	s := b.firstcome(ctx, "latency.db")
	defer s.stop()
	id := b.campaign(ctx, s, -1)
	const seconds = 20
	rate := 0.7 * b.capacity
	before := value(processors())
	f := drive(ctx, at(s, id, sequential(0)), int(rate*seconds), 256, rate, "issued")
	after := value(processors())
	l := f.result.Latency
	b.print(fmt.Sprintf("latency, open loop, %d s at %s", seconds, perSecond(rate)), latencies(l.P50, l.P99, l.Max), after.takenSince(before), "", wantLatency)
}

// campaigns: 1,000 open campaigns together against one, all of them with a limit.
func campaigns(ctx context.Context, b *bench) {
	s := b.firstcome(ctx, "campaigns.db")
	defer s.stop()
	from := 0
	claim := func(many int) func() figure {
		return func() figure {
			ids := make([]string, many)
			for n := range ids {
				ids[n] = b.campaign(ctx, s, int64(b.claims))
			}
			from += b.claims
			return drive(ctx, target{servers: []*server{s}, campaigns: ids, user: sequential(from)}, b.claims, 256, 0, "issued")
		}
	}
	c := b.pair(claim(1000), claim(1))
	b.printRate("1,000 open campaigns, 256 connections", c, "one", wantCampaigns)
	b.printCPU(c, "")
}
