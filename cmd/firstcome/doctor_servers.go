package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
)

// campaigns says whether the ledger's campaigns are those that a node with this gate and secret decides. What cannot
// be read of the ledger has been reported before.
func (c *doctorCmd) campaigns(ctx context.Context, t terminal) (found doctor.Findings) {
	_ = readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error {
		all, err := unretired(ctx, l)
		if err != nil {
			return err
		}
		if text, err := secretText(t, c.SecretFile, c.Ledger.path()); err == nil && text != nil {
			if secret, err := parseSecret(text); err == nil {
				found = secretOf(all, secret.Fingerprint())
			}
		}
		if gate := c.Gate.url(); gate != "" {
			found = append(found, redis.ExamineCampaigns(ctx, redis.Options{URL: gate}, l.Identity(), placed(l, all))...)
		}
		return nil
	})
	return found
}

// campaignsPage is how many campaigns are read at once.
const campaignsPage = 500

// unretired returns the campaigns that are not retired.
func unretired(ctx context.Context, l *ledger.Ledger) (all []ledger.Status, err error) {
	for after := firstcome.CampaignID(""); ; {
		page, err := l.Campaigns(ctx, after, campaignsPage)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			if c.RetiredAt.IsZero() {
				all = append(all, c)
			}
		}
		if len(page) < campaignsPage {
			return all, nil
		}
		after = page[len(page)-1].ID
	}
}

// placed returns the campaigns that a gate beside the ledger decides.
func placed(l *ledger.Ledger, all []ledger.Status) (at []redis.Placed) {
	for _, c := range all {
		if !c.Remote() {
			continue
		}
		at = append(at, redis.Placed{
			Campaign: c.ID, Gate: c.Gate, Marker: c.Marker, Made: c.Applied > 0, Closed: isClosed(&c),
			Drained: func(ctx context.Context) (int64, error) { return l.DrainedThrough(ctx, c.ID) },
		})
	}
	return at
}

// isClosed tells whether a campaign issues nothing any more, as the ledger knows it.
func isClosed(c *ledger.Status) bool {
	return c.Closed || !c.ClosesAt.IsZero() && !c.Now.Before(c.ClosesAt)
}

// namedCampaigns is how many campaigns a finding names.
const namedCampaigns = 5

// secretOf says whether the campaigns' codes are made with the secret of a fingerprint.
func secretOf(all []ledger.Status, fingerprint string) (found doctor.Findings) {
	const what, fix = "the codes' secret", "give this node the secret of the others, with FIRSTCOME_SECRET or --secret-file: see operate.md, the secret"
	others := map[doctor.Grade][]string{}
	for _, c := range all {
		grade := doctor.Fail
		if isClosed(&c) {
			grade = doctor.Warn // its holders still ask for their coupons
		}
		if c.Secret != fingerprint {
			others[grade] = append(others[grade], fmt.Sprintf("%s (%s)", c.ID, c.Secret))
		}
	}
	for _, grade := range []doctor.Grade{doctor.Fail, doctor.Warn} {
		if ids := others[grade]; len(ids) > 0 {
			slices.Sort(ids)
			found.Add(grade, what, fix, "its fingerprint is %s, and this node decides nothing of %s with another: %s", fingerprint,
				counted(int64(len(ids)), "campaign", "s"), strings.Join(ids[:min(len(ids), namedCampaigns)], ", "))
		}
	}
	if len(found) == 0 {
		found.Add(doctor.OK, what, "", "its fingerprint is %s, as that of all campaigns", fingerprint)
	}
	return found
}
