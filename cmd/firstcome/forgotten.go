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
	Name() string // as campaigns have it
	// EachCreated calls each with every campaign that the ledger ever created there.
	EachCreated(ctx context.Context, each func(firstcome.CampaignID) error) error
}

// forgotten returns the campaigns that a ledger made at a gate and does not know any more, in the order of their ids: they were made behind a
// backup that was restored.
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
		_, not := l.Reads.Campaign(ctx, id) // which lags behind nothing: the list may
		if errors.Is(not, firstcome.ErrNoCampaign) {
			ids = append(ids, string(id))
		}
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// someOf names the first of some ids.
func someOf(ids []string) string { return strings.Join(ids[:min(len(ids), namedCampaigns)], ", ") }

// logForgotten logs which campaigns the ledger has forgotten. It is no reason not to start.
func (r *remoteGate) logForgotten(ctx context.Context) {
	switch ids, err := forgotten(ctx, r.ledger, r.gate.created); {
	case err != nil:
		r.log.Warn("it is not known which campaigns the ledger has forgotten", "err", err)
	case len(ids) > 0:
		r.log.Error("Redis has campaigns that this ledger made and has forgotten, as after a restored backup: nobody can bring them back, and their ids cannot be used again; see docs/runbooks/FirstcomeLedgerRolledBack.md",
			"campaigns", len(ids), "ids", someOf(ids))
	}
}

// forgottenBy is what doctor says of that.
func forgottenBy(ctx context.Context, l *ledger.Ledger, gate creatingGate) (found doctor.Findings) {
	const what = "forgotten campaigns"
	ids, err := forgotten(ctx, l, gate)
	switch {
	case err != nil:
		found.Add(doctor.Warn, what, "do what the message says", "they cannot be read: %v", err)
	case len(ids) > 0:
		found.Add(doctor.Warn, what, "bring the newer ledger back, if it exists. Else nobody can bring them back: make them again under new ids, because people may hold their coupons, and the codes would be the same",
			"Redis has %s that this ledger made and does not know any more: %s", counted(int64(len(ids)), "campaign", "s"), someOf(ids))
	}
	return found
}
