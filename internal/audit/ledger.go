package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firstcome/firstcome"
)

// A Report is what the audit of a campaign found.
type Report struct {
	Campaign firstcome.CampaignID `json:"campaign_id"`
	Coupons  int64                `json:"coupons"` // in the ledger, voided ones too
	InForce  int64                `json:"in_force"`
	Voided   int64                `json:"voided"`
	Facts    int64                `json:"facts"`
	Letters  int64                `json:"dead_letters,omitempty"` // open ones
	Lost     int64                `json:"lost,omitempty"`         // numbers
	LostTold int64                `json:"lost_told,omitempty"`    // at most so many of them were told; none where only what is recorded was answered
	Lines    int64                `json:"lost_lines,omitempty"`   // generations of its waiting line that its gate lost
	Missing  int64                `json:"missing,omitempty"`      // numbers above what is drained, on their way to the ledger
	Breaches Breaches             `json:"breaches"`
	// Held are the promises that this audit checks. Only the answers that clients got show whether the others were kept: see Answers.
	Held []string `json:"held"`
}

// Ledger audits a campaign: it holds whatever the ledger says twice against each
// other, and all of it against the promises; the codes too if there is a secret. A campaign whose row is
// gone, or of which something cannot be read, is a breach in its report; an error means that the ledger could not be
// asked. It keeps some 24 bytes a coupon, 64 a change and the set of users in memory.
func Ledger(ctx context.Context, source Source, id firstcome.CampaignID, secret *firstcome.Secret) (Report, error) {
	a := &ledgerAudit{Breaches: &Breaches{}, source: source, id: id, secret: secret}
	err := a.run(ctx)
	switch {
	case errors.Is(err, firstcome.ErrNoCampaign):
		a.add("P5", "the ledger lacks the campaign, of which other tables tell")
	case errors.Is(err, ErrUnreadable):
		a.add("unreadable", "%v", err)
	case err != nil:
		return Report{}, fmt.Errorf("audit %s: %w", id, err)
	}
	a.report.Campaign, a.report.Breaches = id, *a.Breaches
	return a.report, nil
}

// ledgerAudit is one call of Ledger.
type ledgerAudit struct {
	*Breaches
	source   Source
	id       firstcome.CampaignID
	secret   *firstcome.Secret
	campaign Campaign
	history  *history
	log      logAudit
	coupons  couponAudit
	line     lineAudit
	numbers  numberAudit
	report   Report
}

func (a *ledgerAudit) run(ctx context.Context) (err error) {
	if a.campaign, err = a.source.Campaign(ctx, a.id); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{a.readChanges, a.readLog, a.readCoupons, a.readLine, a.readNumbers, a.readFacts} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	a.history.end()
	a.report.Held = []string{"P1", "P3", "P4", "P5"}
	if a.source.Tickets != nil && slices.ContainsFunc(a.history.terms, func(t termsFrom) bool { return t.pace != nil }) {
		a.report.Held = append(a.report.Held, "P9")
	}
	return nil
}

func (a *ledgerAudit) readChanges(ctx context.Context) error {
	a.history = &history{Breaches: a.Breaches, campaign: &a.campaign}
	if err := a.source.Changes(ctx, a.id, a.history.change); err != nil {
		return err
	}
	a.history.read()
	return nil
}

func (a *ledgerAudit) readLog(ctx context.Context) error {
	a.log = logAudit{Breaches: a.Breaches, changes: a.history.changes, row: a.campaign.Row, letters: map[int64]Line{}}
	if a.source.Log == nil {
		return nil
	}
	if err := a.source.Log(ctx, a.id, a.log.line); err != nil {
		return err
	}
	a.log.end()
	return nil
}

func (a *ledgerAudit) readCoupons(ctx context.Context) error {
	a.coupons = couponAudit{
		Breaches: a.Breaches, id: a.id, secret: a.secret, history: a.history, campaign: &a.campaign, again: map[int64]int64{},
		holders: make(map[firstcome.UserID]held, min(max(a.campaign.InForce, 0), 1_000_000)), logged: a.source.Log != nil, direct: a.log.direct,
	}
	a.line = newLineAudit(a.Breaches, &a.campaign, a.history)
	err := a.source.Coupons(ctx, a.id, func(c Coupon) {
		a.coupons.coupon(c)
		a.line.coupon(c.Coupon)
	})
	if err != nil {
		return err
	}
	a.coupons.end()
	all := int64(len(a.coupons.rows))
	a.report.Coupons, a.report.InForce, a.report.Voided = all, a.coupons.inForce, all-a.coupons.inForce
	return nil
}

func (a *ledgerAudit) readLine(ctx context.Context) error {
	if a.source.Tickets != nil {
		err := a.source.Past(ctx, a.id, a.line.generation)
		if err == nil && !a.campaign.Remote {
			err = a.source.Tickets(ctx, a.id, a.line.ticket)
		}
		if err != nil {
			return err
		}
	}
	a.report.Lines = a.line.lost
	a.coupons.decided(&a.line)
	if a.source.Line != nil {
		switch view, err := a.source.Line(ctx, a.id); {
		case err == nil:
			a.line.view(view)
		case !errors.Is(err, ErrNotTold):
			return err
		}
	}
	if a.source.Tickets != nil && !a.campaign.Remote {
		a.line.finish()
	}
	return nil
}

func (a *ledgerAudit) readNumbers(ctx context.Context) error {
	a.numbers = numberAudit{Breaches: a.Breaches, rows: a.coupons.rows, campaign: &a.campaign, history: a.history, log: &a.log, logged: a.source.Log != nil}
	err := a.source.Letters(ctx, a.id, func(l Letter) {
		a.numbers.letter(l)
		a.line.letter(l)
	})
	if err == nil {
		err = a.source.Lost(ctx, a.id, a.numbers.lose)
	}
	if err != nil {
		return err
	}
	// The dead letters may be newer than the campaign that was read before them.
	now, err := a.source.Campaign(ctx, a.id)
	if err != nil {
		return err
	}
	a.numbers.end(now)
	a.report.Letters, a.report.Lost, a.report.Missing = a.numbers.open, a.numbers.lost, a.numbers.missing
	if a.history.decides {
		a.report.LostTold = a.numbers.lost
	}
	if a.campaign.Remote && a.source.Tickets != nil {
		a.line.finishRemote(a.numbers.missing, a.numbers.lost)
	}
	return nil
}

func (a *ledgerAudit) readFacts(ctx context.Context) error {
	facts := factAudit{Breaches: a.Breaches, campaign: &a.campaign, history: a.history, rows: a.coupons.rows, again: a.coupons.again}
	err := a.source.Runs(ctx, a.id, facts.run)
	facts.end()
	a.report.Facts = facts.position
	return err
}
