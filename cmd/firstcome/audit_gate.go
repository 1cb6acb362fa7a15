package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
)

// auditGate compares the campaigns that a gate beside the ledger decides with the ledger, and reads only. It skips
// campaigns that the gate has forgotten because they ended long ago, and those that were never made there. A ledger
// that moved to another Redis has campaigns of two gates: with one that decides some of them, it is no breach that
// another one decided those which are closed.
func (c *auditCmd) auditGate(ctx context.Context, l *ledger.Ledger, report *auditReport, ids []firstcome.CampaignID, secret *firstcome.Secret) error {
	gate, err := c.Gate.kind().inspect(ctx, c.Gate.url(), l, func(ctx context.Context, id firstcome.CampaignID) (string, error) {
		campaign, err := l.Reads.Campaign(ctx, id)
		return campaign.Marker, err
	})
	if err != nil {
		return fmt.Errorf("--gate: %w", err)
	}
	defer gate.Close()
	all, err := report.atGates(ctx, l, ids)
	if err != nil {
		return err
	}
	here := slices.ContainsFunc(all, func(c ledger.Status) bool { return c.Gate == gate.Name() })
	var topic *kafka.Journal
	if here {
		if topic, err = inspectJournal(ctx, l, gate.Name(), c.Journal, all[0].Marker); err != nil {
			return err
		}
	}
	if topic != nil {
		defer topic.Close()
	}
	for _, c := range all {
		campaign, err := l.Reads.Campaign(ctx, c.ID) // again: it may have been retired meanwhile
		if err != nil {
			return err
		}
		if !campaign.RetiredAt.IsZero() {
			continue
		}
		if here && campaign.Gate != gate.Name() && isClosed(&campaign) {
			report.addGate(audit.GateReport{Campaign: campaign.ID, Elsewhere: campaign.Gate})
			continue
		}
		one, err := compareWithGate(ctx, l.Books().Source(), gate, topic, &campaign, secret)
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

// An auditedGate is a gate as an audit reads it.
type auditedGate interface {
	Name() string // as campaigns have it
	audited() audit.GateSource
}

// atGates returns the campaigns that gates beside the ledger decide, without those that are retired. It reports a campaign
// whose gate cannot be told.
func (r *auditReport) atGates(ctx context.Context, l *ledger.Ledger, ids []firstcome.CampaignID) (all []ledger.Status, err error) {
	for n, id := range ids {
		campaign, err := l.Reads.Campaign(ctx, id)
		switch {
		case err != nil && r.Campaigns[n].Breaches.Total > 0:
			r.addGate(audit.NotCompared(id, "what the ledger says of it cannot be used: %v", err))
		case err != nil:
			return nil, err
		case campaign.Remote() && campaign.RetiredAt.IsZero():
			all = append(all, campaign)
		}
	}
	return all, nil
}

func (r *auditReport) addGate(one audit.GateReport) {
	r.Gates = append(r.Gates, one)
	r.Breaches += one.Breaches.Total
}

// errUnmade says that a campaign has not come to its gate yet.
var errUnmade = errors.New("the campaign is being made")

// compareWithGate compares one campaign. The topic is the one that coupons pass behind the gate; nil: they pass none.
func compareWithGate(ctx context.Context, l audit.Source, gate auditedGate, topic *kafka.Journal, campaign *ledger.Status, secret *firstcome.Secret) (audit.GateReport, error) {
	advice := fmt.Sprintf("name its gate with --gate, or bring that Redis back with its data; if that is gone, and this one is to decide: firstcome gate rebuild %s; see docs/runbooks/FirstcomeGateLost.md", campaign.ID)
	switch {
	case campaign.Gate != gate.Name() && gate.Name() == "":
		return audit.NotCompared(campaign.ID, "it is decided by %s, and this Redis has no name: it was emptied, or never was a gate; %s", campaign.Gate, advice), nil
	case campaign.Gate != gate.Name():
		return audit.NotCompared(campaign.ID, "it is decided by %s, and this Redis is %s: %s", campaign.Gate, gate.Name(), advice), nil
	case campaign.Applied == 0:
		return audit.GateReport{}, errUnmade
	}
	of := gate.audited()
	if topic != nil { // entries move there from the gate's journal, so that is read first
		atGate := of.Journal
		of.Journal = func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
			return errors.Join(atGate(ctx, id, each), topic.Unrecorded(ctx, id, campaign.Marker, each))
		}
	}
	if secret != nil {
		of.Secret = secret.Fingerprint()
	}
	return audit.Gate(ctx, l, of, campaign.ID)
}
