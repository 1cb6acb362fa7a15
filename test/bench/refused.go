package main

import (
	"context"
	"fmt"
)

// refused: claims of a campaign that is sold out, and of users who hold a coupon that the node knows or not.
func refused(ctx context.Context, b *bench) error {
	s, bare, err := b.both(ctx, "refused.db")
	if err != nil {
		return err
	}
	defer s.stop()
	defer bare.stop()
	soldOut, err := b.campaign(ctx, s, 1)
	if err != nil {
		return err
	}
	held, err := b.campaign(ctx, s, -1)
	if err != nil {
		return err
	}
	if _, err := drive(ctx, at(s, soldOut, sequential(0)), 1, 1, 0, "issued"); err != nil {
		return err
	}
	if _, err := drive(ctx, at(s, held, scattered(0)), b.claims, 64, 0, "issued"); err != nil {
		return err
	}
	for outcome, t := range map[string]target{
		"sold_out":       at(s, soldOut, scattered(1)),
		"already_issued": at(s, held, scattered(0)),
	} {
		if err := b.refusal(ctx, s, bare, outcome, t); err != nil {
			return err
		}
	}
	return b.beyondCache(ctx, s, bare)
}

// known is how many coupons a node keeps to repeat them: flow's knownSets times its ways.
const known = 131_072

// beyondCache: claims of users who hold a coupon that the node has forgotten since. Between two claims of one
// user as many others ask as the node knows, and twice.
func (b *bench) beyondCache(ctx context.Context, s, bare *server) error {
	holders := min(b.holders, 2*known+b.claims)
	held, err := b.campaign(ctx, s, int64(holders))
	if err != nil {
		return err
	}
	if _, err := drive(ctx, at(s, held, scattered(0)), holders, 64, 0, "issued"); err != nil {
		return err
	}
	if err := copyAnswer(ctx, s, bare, held, scattered(0)(holders-1)); err != nil {
		return err
	}
	from := 0
	again := func() (figure, error) {
		first := from
		from += b.claims
		return drive(ctx, at(s, held, func(n int) string { return scattered(0)((first + n) % holders) }), b.claims, 64, 0, "already_issued")
	}
	c, err := b.pair(again, func() (figure, error) {
		return drive(ctx, at(bare, held, scattered(0)), b.claims, 64, 0, "already_issued")
	})
	if err != nil {
		return err
	}
	b.printRate(fmt.Sprintf("already_issued, of %d holders in turn, 64 connections", holders), c, "bare", "")
	b.printCPU(c, "")
	return nil
}

func (b *bench) refusal(ctx context.Context, s, bare *server, outcome string, t target) error {
	if err := copyAnswer(ctx, s, bare, t.campaigns[0], t.user(0)); err != nil {
		return err
	}
	claims := b.claims
	if outcome == "sold_out" {
		claims *= 4 // seconds, of which each may have five calls of the gate
	}
	calls, seconds := 0.0, 0.0
	refuse := func() (figure, error) {
		// The first call of a round would be one more than the seconds have.
		if _, err := drive(ctx, t, 1, 1, 0, outcome); err != nil {
			return figure{}, err
		}
		before, err := s.metric("firstcome_batch_claims_count")
		if err != nil {
			return figure{}, err
		}
		f, err := drive(ctx, t, claims, 64, 0, outcome)
		if err != nil {
			return f, err
		}
		after, err := s.metric("firstcome_batch_claims_count")
		calls, seconds = calls+after-before, seconds+f.result.Seconds
		return f, err
	}
	reference := func() (figure, error) {
		return drive(ctx, target{servers: []*server{bare}, campaigns: t.campaigns, user: t.user}, claims, 64, 0, outcome)
	}
	c, err := b.pair(refuse, reference)
	if err != nil {
		return err
	}
	b.printRate(outcome+", 64 connections", c, "bare", wantRefused)
	b.printCPU(c, "")
	if outcome == "sold_out" {
		b.print("… gate calls a second", fmt.Sprintf("%.1f", calls/seconds), "", "", wantCalls)
	}
	return nil
}
