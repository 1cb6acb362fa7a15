package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/ledger"
)

// audits is the most campaigns that a node audits at once.
const audits = 1

// An auditor audits campaigns for a node, one at a time.
type auditor struct {
	*base
	remote  *remoteGate   // nil if the ledger decides
	running chan struct{} // one element per running audit
}

// audit audits a campaign for the API. It returns api.ErrAuditRunning while this node audits another campaign. If the gate does not answer, only
// the gate's part of the report fails.
func (a *auditor) audit(ctx context.Context, id firstcome.CampaignID) (found api.Audited, err error) {
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	default:
		return found, api.ErrAuditRunning
	}
	err = a.readPrimary(ctx, func(l *ledger.Ledger) (err error) {
		if found.Report, err = audit.Ledger(ctx, l.Tables().Source(), id, &a.secret, nil); err != nil {
			return err
		}
		found.Gate, err = a.auditGate(ctx, l, id)
		if err != nil && ctx.Err() == nil {
			found.Gate, err = &audit.GateReport{Campaign: id, Failed: mask(err.Error(), nil)}, nil
		}
		return err
	})
	return found, err
}

// prove audits a campaign for the console. It waits until this node audits nothing else.
func (a *auditor) prove(ctx context.Context, id firstcome.CampaignID, read *atomic.Int64) (proof console.Proof, err error) {
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	case <-ctx.Done():
		return proof, ctx.Err()
	}
	err = a.readPrimary(ctx, func(l *ledger.Ledger) (err error) {
		if proof.Ledger, err = audit.Ledger(ctx, l.Tables().Source(), id, &a.secret, read); err == nil {
			proof.Gate, err = a.auditGate(ctx, l, id)
		}
		return err
	})
	return proof, err
}

// readPrimary opens the ledger once more, at its primary. This node may read lists from a replica, and a replica that lags has less than the gate.
func (a *auditor) readPrimary(ctx context.Context, read func(*ledger.Ledger) error) error {
	return readOpened(ctx, a.flags.Ledger.path(), ledger.OpenShared, read)
}

// auditGate compares a campaign at this node's gate with the ledger. It returns nil if there is nothing to compare. An earlier gate may have decided
// a closed campaign.
func (a *auditor) auditGate(ctx context.Context, l *ledger.Ledger, id firstcome.CampaignID) (*audit.GateReport, error) {
	if a.remote == nil {
		return nil, nil
	}
	campaign, err := l.Reads.Campaign(ctx, id)
	if err != nil || !campaign.Remote() || !campaign.RetiredAt.IsZero() {
		return nil, err
	}
	gate, err := a.flags.Gate.kind().inspect(ctx, a.flags.Gate.url(), l, func(context.Context, firstcome.CampaignID) (string, error) { return campaign.CampaignUID, nil })
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	if name := gate.Name(); name != "" && campaign.Gate != name && isClosed(&campaign) {
		return &audit.GateReport{Campaign: id, Elsewhere: campaign.Gate}, nil
	}
	found, err := compareWithGate(ctx, l.Tables().Source(), gate, a.remote.journal, &campaign, &a.secret)
	if errors.Is(err, errCreating) {
		return nil, nil
	}
	return &found, err
}
