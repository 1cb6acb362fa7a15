package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// verdict holds the claims against the server's coupons, once it has recorded them.
func verdict(ctx context.Context, c Config, reader *client.Client, before client.Campaign, claims []audit.Claim) Verdict {
	after, err := recorded(ctx, c, reader)
	if err != nil {
		return unchecked(err)
	}
	h := audit.History{
		Claims: claims, Quantity: firstcome.Unlimited, Before: before.Issued, Others: c.Others,
		// Every void and every change of terms is a version.
		Returned: c.Returned || before.Version != after.Version,
	}
	if after.Quantity != nil {
		h.Quantity = *after.Quantity
	}
	v := Verdict{Checked: true}
	err = reader.Coupons(ctx, c.Campaign, true, func(coupon client.Coupon) error {
		kept := firstcome.Coupon{
			Campaign: firstcome.CampaignID(coupon.CampaignID), Number: coupon.Number, User: firstcome.UserID(coupon.UserID),
			Code: coupon.Code, IssuedAt: coupon.IssuedAt.Time, Recorded: coupon.Recorded,
		}
		if coupon.State == "voided" {
			kept.VoidedAt = after.ServerTime.Time // when does not matter, that it is does
		} else {
			v.InForce++
		}
		h.Coupons = append(h.Coupons, kept)
		return nil
	})
	if err != nil {
		return unchecked(err)
	}
	v.Coupons, v.Breaches = len(h.Coupons), audit.Answers(h)
	v.Why = fmt.Sprintf("%s answers held against %s coupons of the server", grouped(int64(len(claims))), grouped(int64(v.Coupons)))
	if h.Returned && !c.Returned {
		v.Why += "; the campaign changed during the run, so stock may have come back"
	}
	return v
}

// recorded returns the campaign once the ledger has every coupon that was issued.
func recorded(ctx context.Context, c Config, reader *client.Client) (client.Campaign, error) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		campaign, err := reader.Campaign(ctx, c.Campaign)
		if err == nil && campaign.Recorded >= campaign.Issued {
			return campaign, nil
		}
		var problem *client.Problem
		if errors.As(err, &problem) && problem.Status < http.StatusInternalServerError {
			return campaign, err
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return campaign, errors.Join(errors.New("the server did not record all that it issued in time"), err)
		}
	}
}

// unchecked is the verdict if the server's coupons could not be read.
func unchecked(err error) Verdict {
	var problem *client.Problem
	if errors.As(err, &problem) && (problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden) {
		return Verdict{Why: "needs an admin key"}
	}
	return Verdict{Why: err.Error()}
}
