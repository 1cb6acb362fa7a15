package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// maxPage is the most items that a server returns at once.
const maxPage = 500

// auditServer asks a server to audit its campaigns, or one.
func (c *auditCmd) auditServer(ctx context.Context, t terminal, report *auditReport) error {
	report.Server = string(c.Server)
	calls := client.New(report.Server, t.variable(keyVariable))
	defer calls.CloseIdle()
	ids := []string{c.Campaign}
	if c.Campaign == "" {
		all, err := client.All(func(after string) (client.List[client.Campaign], error) { return calls.Campaigns(ctx, after, maxPage) })
		if err != nil {
			return explain(err)
		}
		ids = nil
		for _, one := range all {
			ids = append(ids, one.ID)
		}
	}
	var done atomic.Int64
	defer showProgress(ctx, t, "audit: campaigns audited by the server", func() course { return course{done: done.Load(), total: int64(len(ids))} })()
	for _, id := range ids {
		found, err := auditInTurn(ctx, calls, id)
		if err != nil {
			return explain(err)
		}
		report.addServed(&found)
		done.Add(1)
	}
	return nil
}

// auditInTurn asks a server to audit a campaign, and asks again while the server audits another campaign.
func auditInTurn(ctx context.Context, calls *client.Client, id string) (client.Audit, error) {
	for {
		found, err := calls.Operator().Audit(ctx, id)
		var p *client.Problem
		if !errors.As(err, &p) || p.Code != "audit_running" {
			return found, err
		}
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(p.RetryAfter):
		}
	}
}

// addServed adds a server's report.
func (r *auditReport) addServed(found *client.Audit) {
	one := audit.Report{
		Campaign: firstcome.CampaignID(found.CampaignID), Coupons: found.Coupons, InForce: found.InForce, Voided: found.Voided, Facts: found.Facts,
		Letters: found.DeadLetters, Lost: found.Lost, LostTold: found.LostTold, Lines: found.LostLines, Missing: found.Missing,
		Held: found.Held, Breaches: breachesOf(found.Breaches),
	}
	r.Campaigns = append(r.Campaigns, one)
	r.Breaches += one.Breaches.Total
	if g := found.Gate; g != nil {
		r.addGate(audit.GateReport{
			Campaign: firstcome.CampaignID(g.CampaignID), Holders: g.Holders, Unrecorded: g.Unrecorded, Waiting: g.Waiting, Moving: g.Moving,
			Elsewhere: g.Elsewhere, Failed: g.Failed, Breaches: breachesOf(g.Breaches),
		})
	}
}

// breachesOf converts breaches from the API.
func breachesOf(b client.Breaches) audit.Breaches {
	found := audit.Breaches{Total: b.Total, Count: b.Count}
	for _, one := range b.Shown {
		found.Shown = append(found.Shown, audit.Breach(one))
	}
	return found
}
