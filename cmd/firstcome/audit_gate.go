package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
)

// auditGate compares the campaigns that a gate beside the ledger decides with the ledger, and reads only. Those that the
// gate has forgotten because they are over for long, and those that were never made there, unless
// another ledger's campaign is why, are passed over.
func (c *auditCmd) auditGate(ctx context.Context, l *ledger.Ledger, report *auditReport, ids []firstcome.CampaignID, secret *firstcome.Secret) error {
	gate, err := redis.Inspect(ctx, redis.Options{
		URL: c.Gate.url(), Ledger: l.Identity,
		Secret: noSecret(), // the gate keeps no codes
		Marker: func(ctx context.Context, id firstcome.CampaignID) (string, error) {
			campaign, err := l.Campaign(ctx, id)
			return campaign.Marker, err
		},
	})
	if err != nil {
		return fmt.Errorf("--gate: %w", err)
	}
	defer gate.Close()
	for n, id := range ids {
		campaign, err := l.Campaign(ctx, id)
		if err != nil && report.Campaigns[n].Breaches.Total > 0 {
			report.addGate(audit.NotCompared(id, "what the ledger says of it cannot be used: %v", err))
			continue
		}
		if err != nil {
			return err
		}
		if !campaign.Remote() || !campaign.RetiredAt.IsZero() {
			continue
		}
		one, err := compareWithGate(ctx, l.Books().Source(), gate, &campaign, secret)
		if errors.Is(err, errUnmade) {
			continue
		}
		if err != nil {
			return err
		}
		report.addGate(one)
	}
	return nil
}

func (r *auditReport) addGate(one audit.GateReport) {
	r.Gates = append(r.Gates, one)
	r.Breaches += one.Breaches.Total
}

// errUnmade says that a campaign has not come to its gate yet.
var errUnmade = errors.New("the campaign is being made")

// compareWithGate compares one campaign.
func compareWithGate(ctx context.Context, l audit.Source, gate *redis.Gate, campaign *ledger.Status, secret *firstcome.Secret) (audit.GateReport, error) {
	const advice = "name its gate with --gate, or bring that Redis back with its data; see docs/runbooks/FirstcomeGateLost.md"
	switch {
	case campaign.Gate != gate.Name() && gate.Name() == "":
		return audit.NotCompared(campaign.ID, "it is decided by %s, and this Redis has no name: it was emptied, or never was a gate; %s", campaign.Gate, advice), nil
	case campaign.Gate != gate.Name():
		return audit.NotCompared(campaign.ID, "it is decided by %s, and this Redis is %s: %s", campaign.Gate, gate.Name(), advice), nil
	case campaign.Applied == 0:
		if _, err := gate.State(ctx, campaign.ID); !errors.Is(err, firstcome.ErrGateMismatch) {
			return audit.GateReport{}, errUnmade
		}
	}
	of := gateSource(gate)
	if secret != nil {
		of.Secret = secret.Fingerprint()
	}
	return audit.Gate(ctx, l, of, campaign.ID)
}

// gateSource returns the gate as an audit reads it.
func gateSource(gate *redis.Gate) audit.GateSource {
	return audit.GateSource{
		State: func(ctx context.Context, id firstcome.CampaignID) (audit.GateState, error) {
			s, err := gate.State(ctx, id)
			if err != nil {
				return audit.GateState{}, spoiled(err)
			}
			secret, err := gate.SecretOf(ctx, id)
			return audit.GateState{Version: s.Version, Epoch: s.Epoch, InForce: s.InForce, LastNumber: s.LastNumber, Secret: secret, Instants: s.Instants}, err
		},
		Holders: func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID, int64) error) error {
			return spoiled(gate.Coupons(ctx, id, func(c firstcome.Coupon) error { return each(c.User, c.Number) }))
		},
		Journal: func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
			return spoiled(gate.Unrecorded(ctx, id, each))
		},
	}
}

// spoiled returns an error as the audit knows it: what somebody else wrote is a breach of its campaign.
func spoiled(err error) error {
	if redis.Spoiled(err) {
		return fmt.Errorf("%w: %w", audit.ErrUnreadable, err)
	}
	return err
}
