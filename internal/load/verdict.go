package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// verdict compares the clients' answers with the server's coupons, once it has recorded them.
func verdict(ctx context.Context, c Options, reader *client.Client, before client.Campaign, h audit.History) Verdict {
	after, err := recorded(ctx, c, reader)
	if err != nil {
		return unchecked(err)
	}
	h.Quantity, h.Others = firstcome.Unlimited, c.Others
	h.Returned = before.Version != after.Version // every void and every change of terms raises the version
	h.Recorded = before.Answer == string(firstcome.Recorded) && after.Answer == before.Answer
	if h.Letters, err = letters(ctx, c, reader); err != nil {
		return unchecked(err)
	}
	if h.Lost, err = lost(ctx, c, reader); err != nil {
		return unchecked(err)
	}
	if before.Issued == nil {
		return unchecked(fmt.Errorf("nobody knows how many coupons were issued before the run: its gate_state was %s", before.GateState))
	}
	h.Before = numberOf(*before.Issued, h.Lost)
	if after.Quantity != nil {
		h.Quantity = *after.Quantity
	}
	for _, p := range after.Prizes {
		prize := audit.Prize{ID: p.ID, From: p.From, To: firstcome.Unlimited}
		if p.To != nil {
			prize.To = *p.To
		}
		h.Prizes = append(h.Prizes, prize)
	}
	v := Verdict{Checked: true}
	err = reader.Coupons(ctx, c.Campaign, true, func(coupon client.Coupon) error {
		kept := firstcome.Coupon{
			Campaign: firstcome.CampaignID(coupon.CampaignID), Number: coupon.Number, User: firstcome.UserID(coupon.UserID),
			Code: coupon.Code, IssuedAt: coupon.IssuedAt.Time, Recorded: coupon.Recorded,
		}
		if coupon.Ticket != nil && coupon.Generation != nil {
			kept.Generation, kept.Ticket = *coupon.Generation, *coupon.Ticket
		}
		if coupon.State == "voided" {
			kept.VoidedAt = after.ServerTime.Time // only that it is voided matters, not when
		} else {
			v.InForce++
		}
		ranked := audit.Ranked{Rank: coupon.Rank}
		if coupon.Prize != nil {
			ranked.Prize = coupon.Prize.ID
		}
		h.Coupons, h.Ranks = append(h.Coupons, kept), append(h.Ranks, ranked)
		return nil
	})
	if err != nil {
		return unchecked(err)
	}
	v.Coupons, v.Breaches = len(h.Coupons), audit.Answers(h)
	if v.Breaches.Total == 0 && !slices.ContainsFunc(h.Claims, func(c audit.Claim) bool { return c.Outcome != 0 }) {
		return Verdict{Why: "no claim had a known outcome", Coupons: v.Coupons, InForce: v.InForce}
	}
	v.Why = fmt.Sprintf("%s held against %s of the server", counted(int64(len(h.Claims)), "answer"), counted(int64(v.Coupons), "coupon"))
	if h.Returned {
		v.Why += "; the campaign changed during the run, so stock may have come back"
	}
	return v
}

// recorded returns the campaign once every issued coupon is in the ledger or a dead letter.
func recorded(ctx context.Context, c Options, reader *client.Client) (client.Campaign, error) {
	ctx, cancel := context.WithTimeout(ctx, recording)
	defer cancel()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		campaign, missing, err := unrecorded(ctx, c, reader)
		if err == nil && missing <= 0 {
			return campaign, nil
		}
		var problem *client.Problem
		if errors.As(err, &problem) && problem.Status < http.StatusInternalServerError {
			return campaign, err
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			if err != nil {
				return campaign, fmt.Errorf("nobody knows whether the server recorded all that it issued: %w", err)
			}
			return campaign, fmt.Errorf("the server did not record all that it issued in time: %s are missing", humanize.Comma(missing))
		}
	}
}

// unrecorded returns the campaign, and how many coupons are on their way to the ledger.
func unrecorded(ctx context.Context, c Options, reader *client.Client) (campaign client.Campaign, missing int64, err error) {
	campaign, err = reader.Campaign(ctx, c.Campaign)
	if err == nil && campaign.Issued == nil {
		err = fmt.Errorf("the campaign's gate_state is %s", campaign.GateState)
	}
	if err != nil {
		return campaign, 0, err
	}
	if missing = *campaign.Issued - campaign.Recorded; missing <= 0 {
		return campaign, missing, nil
	}
	dead, err := letters(ctx, c, reader)
	return campaign, missing - int64(len(dead)), err
}

// letters returns the campaign's dead letters that are not coupons of the ledger.
func letters(ctx context.Context, c Options, reader *client.Client) ([]audit.Letter, error) {
	found, err := client.All(func(after string) (client.List[client.DeadLetter], error) {
		return reader.Operator().DeadLetters(ctx, client.LetterFilter{Campaign: c.Campaign, Resolved: true, After: after})
	})
	var all []audit.Letter
	for _, d := range found {
		if d.Number == nil || d.ResolvedBy != nil && *d.ResolvedBy == "replayed" {
			continue
		}
		letter := audit.Letter{Number: *d.Number, Open: d.ResolvedAt == nil}
		if d.UserID != nil {
			letter.User = firstcome.UserID(*d.UserID)
		}
		all = append(all, letter)
	}
	return all, err
}

// lost returns the campaign's lost numbers, the lowest first.
func lost(ctx context.Context, c Options, reader *client.Client) ([]firstcome.Range, error) {
	kept, err := reader.Operator().LedgerState(ctx, c.Campaign)
	if err != nil {
		return nil, err
	}
	all := make([]firstcome.Range, len(kept.Lost))
	for n, numbers := range kept.Lost {
		all[n] = firstcome.Range(numbers)
	}
	return all, nil
}

// numberOf returns the number of the last of a number of coupons.
func numberOf(issued int64, lost []firstcome.Range) int64 {
	for _, numbers := range lost {
		if numbers.First <= issued {
			issued += numbers.Count
		}
	}
	return issued
}

// unchecked is the verdict if the server's coupons could not be read.
func unchecked(err error) Verdict {
	var problem *client.Problem
	if errors.As(err, &problem) && (problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden) {
		return Verdict{Why: "needs an admin key"}
	}
	return Verdict{Why: err.Error()}
}
