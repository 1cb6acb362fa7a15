package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
)

type auditCmd struct {
	ledgerFlag
	outputFlag
	SecretFile string `placeholder:"FILE" help:"The secret of the coupon codes, to check these too (default: the one beside the ledger, if it can be read)."`
	Campaign   string `arg:"" optional:"" help:"The campaign (default: all, and the ledger's file itself)."`
}

// An auditReport is what audit prints.
type auditReport struct {
	Ledger    string         `json:"ledger"`
	Codes     bool           `json:"codes_checked"`
	Campaigns []audit.Report `json:"campaigns"`
	File      []string       `json:"file"` // what is wrong with the file
	Breaches  int64          `json:"breaches"`
}

// errBreach says that a promise is broken: what was printed says which.
var errBreach = errors.New("a promise is broken")

// Run audits the ledger, also while it is served.
func (c *auditCmd) Run(ctx context.Context, t terminal) error {
	secret, err := c.secret(t)
	if err != nil {
		return usageError{err}
	}
	var report auditReport
	err = readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) (err error) {
		report, err = c.audit(ctx, t, l, secret)
		return err
	})
	if errors.Is(err, firstcome.ErrNoCampaign) {
		return fmt.Errorf("%w: %s", err, c.Campaign)
	}
	if err != nil {
		return err
	}
	if c.json() {
		err = printJSON(t, report)
	} else {
		report.print(t)
	}
	if err == nil && report.Breaches > 0 {
		err = errBreach
	}
	return err
}

// secret returns the secret to check codes with; nil if there is none.
func (c *auditCmd) secret(t terminal) (*firstcome.Secret, error) {
	text, err := secretText(t, c.SecretFile, c.Ledger.path())
	if err != nil || text == nil {
		return nil, err
	}
	secret, err := parseSecret(text)
	return &secret, err
}

func (c *auditCmd) audit(ctx context.Context, t terminal, l *ledger.Ledger, secret *firstcome.Secret) (auditReport, error) {
	report := auditReport{Ledger: c.Ledger.path(), Codes: secret != nil, Campaigns: []audit.Report{}, File: []string{}}
	ids := []firstcome.CampaignID{firstcome.CampaignID(c.Campaign)}
	if c.Campaign == "" {
		var err error
		if ids, err = campaignIDs(ctx, l); err != nil {
			return report, err
		}
		wrong, err := l.Verify(ctx)
		if err != nil {
			return report, err
		}
		report.File = append(report.File, wrong...)
		report.Breaches = int64(len(wrong))
	}
	var read atomic.Int64
	done := showProgress(ctx, t, "audit: coupons and facts read", func() (int64, int64) { return read.Load(), 0 })
	defer done()
	for _, id := range ids {
		one, err := audit.Ledger(ctx, source(l, &read), id, secret)
		if err != nil {
			return report, err
		}
		report.Campaigns = append(report.Campaigns, one)
		report.Breaches += one.Breaches.Total
	}
	return report, nil
}

func campaignIDs(ctx context.Context, l *ledger.Ledger) ([]firstcome.CampaignID, error) {
	all, err := l.Campaigns(ctx, "", math.MaxInt32)
	var ids []firstcome.CampaignID
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids, err
}

// source returns the ledger as an audit reads it, and counts what is read.
func source(l *ledger.Ledger, read *atomic.Int64) audit.Source {
	return audit.Source{
		Campaign: func(ctx context.Context, id firstcome.CampaignID) (audit.Campaign, error) {
			s, err := l.Campaign(ctx, id)
			return audit.Campaign{Campaign: s.Campaign, InForce: s.InForce, Issued: s.Issued, Position: s.Position}, err
		},
		Terms: l.Terms,
		Coupons: func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
			return l.Coupons(ctx, id, ledger.Page{Voided: true}, func(c firstcome.Coupon) error {
				read.Add(1)
				return each(c)
			})
		},
		Facts: func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Fact) error) error {
			return l.Facts(ctx, id, 0, math.MaxInt, func(f firstcome.Fact) error {
				read.Add(1)
				return each(f)
			})
		},
	}
}

func (r auditReport) print(t terminal) {
	for _, wrong := range r.File {
		fmt.Fprintln(t.out, "the file:", wrong)
	}
	for _, c := range r.Campaigns {
		fmt.Fprintf(t.out, "%s: %d coupons, %d in force, %d voided, %d facts, %d breaches\n",
			c.Campaign, c.Coupons, c.InForce, c.Voided, c.Facts, c.Breaches.Total)
		printBreaches(t, c.Breaches)
	}
	if !r.Codes {
		fmt.Fprintln(t.out, "The codes were not checked: there is no secret beside the ledger; name it with --secret-file.")
	}
	fmt.Fprintf(t.out, "verdict: %d breaches in %d campaigns\n", r.Breaches, len(r.Campaigns))
}

func printBreaches(t terminal, b audit.Breaches) {
	for _, shown := range b.Shown {
		fmt.Fprintf(t.out, "  %s: %s\n", shown.Promise, shown.Text)
	}
	for _, promise := range b.Promises() {
		if more := b.Count[promise] - shownOf(b, promise); more > 0 {
			fmt.Fprintf(t.out, "  %s: and %d more\n", promise, more)
		}
	}
}

func shownOf(b audit.Breaches, promise string) (n int64) {
	for _, shown := range b.Shown {
		if shown.Promise == promise {
			n++
		}
	}
	return n
}
