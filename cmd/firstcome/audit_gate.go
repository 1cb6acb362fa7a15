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

// auditGate compares the ledger's campaigns with the gate beside the ledger that decides them. It only reads. It skips retired campaigns, and
// campaigns that were never created at the gate. A ledger that moved to another Redis has campaigns of two gates: if this gate decides some
// campaigns, closed campaigns of the other gate are not a breach.
func (c *auditCmd) auditGate(ctx context.Context, l *ledger.Ledger, report *auditReport, ids []firstcome.CampaignID, secret *firstcome.Secret) error {
	gate, err := c.Gate.kind().inspect(ctx, c.Gate.url(), l, func(ctx context.Context, id firstcome.CampaignID) (string, error) {
		campaign, err := l.Reads.Campaign(ctx, id)
		return campaign.CampaignUID, err
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
		if topic, err = inspectJournal(ctx, l, gate.Name(), c.Journal, all[0].CampaignUID); err != nil {
			return err
		}
	}
	if topic != nil {
		defer topic.Close()
	}
	for _, c := range all {
		campaign, err := l.Reads.Campaign(ctx, c.ID) // read again, because it may have been retired since
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
		one, err := compareWithGate(ctx, l.Tables().Source(), gate, topic, &campaign, secret)
		if errors.Is(err, errCreating) {
			continue
		}
		if err != nil {
			return err
		}
		report.addGate(one)
	}
	return nil
}

// An auditedGate is a gate whose data an audit reads.
type auditedGate interface {
	Name() string // the gate's name in the ledger's campaigns
	audited() audit.GateSource
}

// atGates returns the campaigns that gates beside the ledger decide, except retired ones. It reports a campaign whose data in the
// ledger cannot be read.
func (r *auditReport) atGates(ctx context.Context, l *ledger.Ledger, ids []firstcome.CampaignID) (all []ledger.Status, err error) {
	for n, id := range ids {
		campaign, err := l.Reads.Campaign(ctx, id)
		switch {
		case err != nil && r.Campaigns[n].Breaches.Total > 0:
			r.addGate(audit.NotCompared(id, "its data in the ledger cannot be read: %v", err))
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

// errCreating means that a campaign has not been created at its gate yet.
var errCreating = errors.New("the campaign is being created")

// compareWithGate compares one campaign with its gate. topic is the topic between gate and ledger, or nil if there is none.
func compareWithGate(ctx context.Context, l audit.Source, gate auditedGate, topic *kafka.Journal, campaign *ledger.Status, secret *firstcome.Secret) (audit.GateReport, error) {
	advice := fmt.Sprintf("name its gate with --gate, or restore that Redis with its data; if it is gone and this Redis should take over, run firstcome gate rebuild %s; see docs/runbooks/FirstcomeGateLost.md", campaign.ID)
	switch {
	case campaign.Gate != gate.Name() && gate.Name() == "":
		return audit.NotCompared(campaign.ID, "it is decided by %s, and this Redis has no name: it was emptied, or was never a gate; %s", campaign.Gate, advice), nil
	case campaign.Gate != gate.Name():
		return audit.NotCompared(campaign.ID, "it is decided by %s, and this Redis is %s: %s", campaign.Gate, gate.Name(), advice), nil
	case campaign.Applied == 0:
		return audit.GateReport{}, errCreating
	}
	of := gate.audited()
	if topic != nil { // entries move from the gate's journal to the topic, so the gate's journal is read first
		atGate := of.Journal
		of.Journal = func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
			return errors.Join(atGate(ctx, id, each), topic.Unrecorded(ctx, id, campaign.CampaignUID, each))
		}
	}
	of.Secret = secret
	return audit.Gate(ctx, l, of, campaign.ID)
}
