package main

import (
	"context"
	"fmt"
)

// refused: claims of a campaign that is sold out, and of users who hold a coupon that the node knows or not.
func refused(ctx context.Context, b *bench) {
	s, bare := b.both(ctx, "refused.db")
	defer s.stop()
	defer bare.stop()
	soldOut := b.campaign(ctx, s, 1)
	held := b.campaign(ctx, s, -1)
	drive(ctx, at(s, soldOut, sequential(0)), 1, 1, 0, "issued")
	drive(ctx, at(s, held, scattered(0)), b.claims, 64, 0, "issued")
	for outcome, t := range map[string]target{
		"sold_out":       at(s, soldOut, scattered(1)),
		"already_issued": at(s, held, scattered(0)),
	} {
		b.refusal(ctx, s, bare, outcome, t)
	}
	b.beyondCache(ctx, s, bare)
}

// known is how many coupons a node keeps to repeat them: flow's knownSets times its ways.
const known = 131_072

// beyondCache: claims of users who hold a coupon that the node has forgotten since. Between two claims of one
// user as many others ask as the node knows, and twice.
func (b *bench) beyondCache(ctx context.Context, s, bare *server) {
	holders := min(b.holders, 2*known+b.claims)
	held := b.campaign(ctx, s, int64(holders))
	drive(ctx, at(s, held, scattered(0)), holders, 64, 0, "issued")
	copyAnswer(ctx, s, bare, held, scattered(0)(holders-1))
	from := 0
	again := func() figure {
		first := from
		from += b.claims
		return drive(ctx, at(s, held, func(n int) string { return scattered(0)((first + n) % holders) }), b.claims, 64, 0, "already_issued")
	}
	c := b.pair(again, func() figure {
		return drive(ctx, at(bare, held, scattered(0)), b.claims, 64, 0, "already_issued")
	})
	b.printRate(fmt.Sprintf("already_issued, of %d holders in turn, 64 connections", holders), c, "bare", "")
	b.printCPU(c, "")
}

func (b *bench) refusal(ctx context.Context, s, bare *server, outcome string, t target) {
	copyAnswer(ctx, s, bare, t.campaigns[0], t.user(0))
	claims := b.claims
	if outcome == "sold_out" {
		claims *= 4 // seconds, of which each may have five calls of the gate
	}
	calls, seconds := 0.0, 0.0
	refuse := func() figure {
		// The first call of a round would be one more than the seconds have.
		drive(ctx, t, 1, 1, 0, outcome)
		before := s.metric("firstcome_batch_claims_count")
		f := drive(ctx, t, claims, 64, 0, outcome)
		calls, seconds = calls+s.metric("firstcome_batch_claims_count")-before, seconds+f.result.Seconds
		return f
	}
	reference := func() figure {
		return drive(ctx, target{servers: []*server{bare}, campaigns: t.campaigns, user: t.user}, claims, 64, 0, outcome)
	}
	c := b.pair(refuse, reference)
	b.printRate(outcome+", 64 connections", c, "bare", wantRefused)
	b.printCPU(c, "")
	if outcome == "sold_out" {
		b.print("… gate calls a second", fmt.Sprintf("%.1f", calls/seconds), "", "", wantCalls)
	}
}
