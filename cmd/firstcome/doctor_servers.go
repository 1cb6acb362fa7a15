package main

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
)

// campaignsAtGate says whether the campaigns that a ledger has at Redis are its own
// there. What cannot be read has been told before.
func campaignsAtGate(ctx context.Context, path, gate string) (found doctor.Findings) {
	_ = readLedger(ctx, path, func(l *ledger.Ledger) error {
		at, err := placed(ctx, l)
		if err == nil {
			found, err = redis.ExamineCampaigns(ctx, redis.Options{URL: gate}, l.Identity(), at)
		}
		return err
	})
	return found
}

// placedPage is how many campaigns are read at once.
const placedPage = 500

// placed returns the campaigns that a gate decides and that are not over for long.
func placed(ctx context.Context, l *ledger.Ledger) (all []redis.Placed, err error) {
	for after := firstcome.CampaignID(""); ; {
		page, err := l.Campaigns(ctx, after, placedPage)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			if c.Remote() && c.RetiredAt.IsZero() {
				all = append(all, redis.Placed{Campaign: c.ID, Gate: c.Gate, Marker: c.Marker, Settled: func(ctx context.Context) (int64, error) {
					again, err := l.Campaign(ctx, c.ID)
					return again.Settled, err
				}})
			}
		}
		if len(page) < placedPage {
			return all, nil
		}
		after = page[len(page)-1].ID
	}
}
