package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A creatingGate is a gate that notes which campaigns were created there.
type creatingGate interface {
	Name() string // the gate's name in the ledger's campaigns
	// EachCreated calls each with every campaign that the ledger ever created there.
	EachCreated(ctx context.Context, each func(firstcome.CampaignID) error) error
}

// forgotten returns the campaigns that the ledger created at a gate and no longer has, sorted by id. The ledger was restored from a backup that was
// made before them.
func forgotten(ctx context.Context, l *ledger.Ledger, gate creatingGate) (ids []string, err error) {
	all, err := l.Reads.Campaigns(ctx, "", math.MaxInt32)
	if err != nil {
		return nil, err
	}
	known := map[firstcome.CampaignID]bool{}
	for _, c := range all {
		known[c.ID] = true
	}
	err = gate.EachCreated(ctx, func(id firstcome.CampaignID) error {
		if known[id] {
			return nil
		}
		known[id] = true
		_, not := l.Reads.Campaign(ctx, id) // reads the primary, while the list may come from a replica that lags
		if errors.Is(not, firstcome.ErrNoCampaign) {
			ids = append(ids, string(id))
		}
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// someOf returns the first ids, at most namedCampaigns.
func someOf(ids []string) string { return strings.Join(ids[:min(len(ids), namedCampaigns)], ", ") }

// logForgotten logs which campaigns the ledger has forgotten. The node starts anyway.
func (r *remoteGate) logForgotten(ctx context.Context) {
	switch ids, err := forgotten(ctx, r.ledger, r.gate); {
	case err != nil:
		r.log.Warn("it is not known which campaigns the ledger has forgotten", "err", err)
	case len(ids) > 0:
		r.log.Error("Redis has campaigns that this ledger created and has forgotten, as after a restored backup: they cannot be restored from Redis, and their ids cannot be used again; see docs/runbooks/FirstcomeLedgerRolledBack.md",
			"campaigns", len(ids), "ids", someOf(ids))
	}
}

// forgottenBy returns doctor's findings about forgotten campaigns.
func forgottenBy(ctx context.Context, l *ledger.Ledger, gate creatingGate) (found doctor.Findings) {
	const what = "forgotten campaigns"
	ids, err := forgotten(ctx, l, gate)
	switch {
	case err != nil:
		found.Add(doctor.Warn, what, "do what the message says", "they cannot be read: %v", err)
	case len(ids) > 0:
		found.Add(doctor.Warn, what, "restore the newer ledger, if it exists. Otherwise create the campaigns again under new ids: users may hold the old coupons, and under the same ids the new codes would be the same",
			"Redis has %s that this ledger created and has forgotten: %s", counted(int64(len(ids)), "campaign", "s"), someOf(ids))
	}
	return found
}
