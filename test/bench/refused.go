package main

import (
	"context"
	"fmt"
)

// refused: claims of a campaign that is sold out, and of users who hold a coupon.
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
		return drive(ctx, target{[]*server{bare}, t.campaigns, t.user}, claims, 64, 0, outcome)
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
