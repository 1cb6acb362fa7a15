package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
)

// auditGate compares the campaigns that the gate decides with the ledger. Those that it
// has forgotten because they are over for long, and those that were never made there, unless
// another ledger's campaign is why, are passed over.
func (c *auditCmd) auditGate(ctx context.Context, l *ledger.Ledger, report *auditReport, ids []firstcome.CampaignID) error {
	// Codes are held against the ledger's coupons; the gate keeps none, so any secret will do.
	secret, err := firstcome.NewSecret(make([]byte, firstcome.MinSecret))
	if err != nil {
		return err
	}
	gate, err := redis.Open(ctx, redis.Options{
		URL: c.Gate.url(), Secret: secret, AnyEviction: true, Ledger: l.Identity,
		Marker: func(ctx context.Context, id firstcome.CampaignID) (string, error) {
			campaign, err := l.Campaign(ctx, id)
			return campaign.Marker, err
		},
	})
	if err != nil {
		return fmt.Errorf("--gate: %w", err)
	}
	defer gate.Close()
	var read atomic.Int64
	for _, id := range ids {
		campaign, err := l.Campaign(ctx, id)
		switch {
		case err != nil:
			return err
		case campaign.Gate != gate.Name() && c.Campaign != "":
			return fmt.Errorf("the campaign is decided by %s, not by %s: name its gate with --gate", campaign.Gate, gate.Name())
		case campaign.Gate != gate.Name() || !campaign.RetiredAt.IsZero():
			continue
		}
		if campaign.Applied == 0 {
			if _, err := gate.State(ctx, id); !errors.Is(err, firstcome.ErrGateMismatch) {
				continue
			}
		}
		one, err := audit.Gate(ctx, source(l, &read), gateSource(gate), id)
		if err != nil {
			return err
		}
		report.Gates = append(report.Gates, one)
		report.Breaches += one.Breaches.Total
	}
	return nil
}

// gateSource returns the gate as an audit reads it.
func gateSource(gate *redis.Gate) audit.GateSource {
	return audit.GateSource{
		State: func(ctx context.Context, id firstcome.CampaignID) (audit.GateState, error) {
			s, err := gate.State(ctx, id)
			return audit.GateState{Version: s.Version, Epoch: s.Epoch, InForce: s.InForce, LastNumber: s.LastNumber}, err
		},
		Holders: func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID, int64) error) error {
			return gate.Coupons(ctx, id, func(c firstcome.Coupon) error { return each(c.User, c.Number) })
		},
		Journal: gate.Unrecorded,
	}
}
