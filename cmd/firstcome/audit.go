package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/alecthomas/kong"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqldb"
)

type auditCmd struct {
	Ledger   ledgerName  `placeholder:"sqlite:FILE" help:"The ledger to read (default: ${ledger}, unless there is a server)."`
	Gate     gateName    `placeholder:"URL" help:"Compare the gate with the ledger too: redis://HOST:PORT/DB, or rediss:// with TLS. FIRSTCOME_GATE keeps the password out of sight."`
	Journal  journalName `placeholder:"URL" help:"With --gate: the topic that coupons pass behind it, as serve has it: kafka://HOST:PORT/TOPIC. FIRSTCOME_JOURNAL keeps the password out of sight."`
	Facts    topicURL    `placeholder:"URL" help:"Read a topic of Kafka whole, and hold its facts against the ledger: kafka://HOST:PORT/TOPIC. FIRSTCOME_FACTS keeps the password out of sight."`
	Server   serverURL   `placeholder:"URL" help:"Ask a server to audit instead. Its API key, of the role operator or admin, is read from FIRSTCOME_KEY."`
	PrintSQL bool        `help:"Print the queries that the audit runs on the tables of a campaign, with :campaign for its id unless one is named, and read nothing." name:"print-sql"`
	outputFlag
	SecretFile string `placeholder:"FILE" help:"The secret of the coupon codes, to check these too (default: the one beside the ledger, if it can be read)."`
	Campaign   string `arg:"" optional:"" help:"The campaign (default: all, and the ledger's file itself)."`

	flags []string // those on the command line
}

// Help says what differs.
func (*auditCmd) Help() string {
	return `With --ledger it reads the tables, beside whoever serves them, and checks the file too; with --gate
besides, it compares who holds a coupon at the gate with the ledger and what is on its way to it; with --facts
besides, it reads the topic whole: each fact that was published is there, in order, and says what the ledger says. With
--server it asks a node to audit each campaign, by the tables and the gate that the node has: from anywhere, and
through whatever stands between. It does not check the file, nor what is of no campaign. Where FIRSTCOME_LEDGER and FIRSTCOME_SERVER are both set, it reads the ledger.`
}

// BeforeResolve notes the flags: kong calls it when it has read the command line, and then reads
// the environment.
func (c *auditCmd) BeforeResolve(line *kong.Context) error {
	for _, p := range line.Path {
		if p.Flag != nil {
			c.flags = append(c.flags, p.Flag.Name)
		}
	}
	return nil
}

// check chooses between the ledger, with its gate, and a server. A flag takes precedence over the environment, and there
// the ledger over the server.
func (c *auditCmd) check(terminal) []error {
	ledgerIsFlag, serverIsFlag := slices.Contains(c.flags, "ledger"), slices.Contains(c.flags, "server")
	gateIsFlag, secretIsFlag := slices.Contains(c.flags, "gate") && c.Gate.url() != "", slices.Contains(c.flags, "secret-file")
	factsIsFlag := slices.Contains(c.flags, "facts") && c.Facts != ""
	switch {
	case serverIsFlag && ledgerIsFlag:
		return []error{errors.New("--server: stands beside --ledger: name the one to audit")}
	case serverIsFlag && gateIsFlag:
		return []error{errors.New("--gate: a server compares the gate that it has: name the ledger with --ledger instead of --server, or audit the server without --gate")}
	case serverIsFlag && factsIsFlag:
		return []error{errors.New("--facts: a server reads no topic: name the ledger with --ledger instead of --server")}
	case serverIsFlag && secretIsFlag:
		return []error{errors.New("--secret-file: a server checks the codes with its own secret: leave it out, or name the ledger with --ledger instead of --server")}
	case serverIsFlag:
		c.Ledger = ""
	case ledgerIsFlag || gateIsFlag || factsIsFlag || secretIsFlag:
		c.Server = ""
	case c.Ledger != "": // both are variables: the tables also show what is of no campaign
		c.Server = ""
	}
	if c.Ledger == "" && c.Server == "" {
		c.Ledger = ledgerName(vars()["ledger"])
	}
	return nil
}

// An auditReport is what audit prints.
type auditReport struct {
	Ledger    string              `json:"ledger,omitempty"` // one of these
	Server    string              `json:"server,omitempty"`
	Codes     bool                `json:"codes_checked"`
	Campaigns []audit.Report      `json:"campaigns"`
	Gates     []audit.GateReport  `json:"gates,omitempty"` // the campaigns as their gate has them
	Topic     []audit.TopicReport `json:"topic,omitempty"` // and as a topic has their facts
	File      []string            `json:"file"`            // what is wrong with the ledger's file
	Other     audit.Breaches      `json:"other,omitzero"`  // and with what belongs to no campaign
	Breaches  int64               `json:"breaches"`
}

// errBreach says that a promise is broken: what was printed says which.
var errBreach = errors.New("a promise is broken")

// Run audits, also while claims are decided.
func (c *auditCmd) Run(ctx context.Context, t terminal) error {
	if c.PrintSQL {
		return c.printSQL(t)
	}
	secret, err := c.secret(t)
	if err != nil {
		return usageError{err}
	}
	report := &auditReport{Codes: secret != nil || c.Server != "", Campaigns: []audit.Report{}, File: []string{}}
	if c.Server != "" {
		err = c.auditServer(ctx, t, report)
	} else {
		err = c.auditLedger(ctx, t, report, secret)
	}
	if errors.Is(err, firstcome.ErrNoCampaign) {
		return fmt.Errorf("%w: %s", err, c.Campaign)
	}
	if err != nil {
		return err
	}
	err = c.print(t, report, func(io.Writer) { report.print(t) })
	if err == nil && report.Breaches > 0 {
		err = errBreach
	}
	return err
}

// secret returns the secret to check codes with; nil if there is none, or the server has it.
func (c *auditCmd) secret(t terminal) (*firstcome.Secret, error) {
	if c.Server != "" {
		return nil, nil
	}
	text, err := secretText(t, c.SecretFile, c.Ledger.path())
	if err != nil || text == nil {
		return nil, err
	}
	secret, err := parseSecret(text)
	return &secret, err
}

// auditLedger audits by the tables.
func (c *auditCmd) auditLedger(ctx context.Context, t terminal, report *auditReport, secret *firstcome.Secret) error {
	report.Ledger = sqldb.Masked(c.Ledger.path())
	open := ledger.OpenCopy
	if c.Gate.url() != "" || c.Facts != "" {
		open = ledger.OpenShared // a standby that lags has less than gate and topic
	}
	return readOpened(ctx, c.Ledger.path(), open, func(l *ledger.Ledger) error { return c.auditTables(ctx, t, l, report, secret) })
}

// auditTables is auditLedger of an open ledger.
func (c *auditCmd) auditTables(ctx context.Context, t terminal, l *ledger.Ledger, report *auditReport, secret *firstcome.Secret) error {
	ids, err := c.campaigns(ctx, l, report)
	if err != nil {
		return err
	}
	if c.Campaign == "" {
		if err := report.auditOther(ctx, l); err != nil {
			return err
		}
	}
	err = report.audit(ctx, t, ids, func(id firstcome.CampaignID, read *atomic.Int64) (audit.Report, error) {
		return audit.Ledger(ctx, l.Books().Source(), id, secret, read)
	})
	if err == nil && c.Gate.url() != "" {
		err = c.auditGate(ctx, l, report, ids, secret)
	}
	if err == nil && c.Facts != "" {
		err = c.auditTopic(ctx, t, l, report, ids)
	}
	return err
}

// campaigns returns the ids of the campaigns to audit, also of those whose row is gone.
func (c *auditCmd) campaigns(ctx context.Context, l *ledger.Ledger, report *auditReport) ([]firstcome.CampaignID, error) {
	ids, err := l.Books().Campaigns(ctx)
	if errors.Is(err, audit.ErrUnreadable) {
		report.damaged(err.Error())
		err = nil
	}
	if err != nil || c.Campaign == "" {
		return ids, err
	}
	id := firstcome.CampaignID(c.Campaign)
	if !slices.Contains(ids, id) {
		return nil, firstcome.ErrNoCampaign
	}
	return []firstcome.CampaignID{id}, nil
}

// auditOther adds what is wrong with the ledger beside its campaigns.
func (r *auditReport) auditOther(ctx context.Context, l *ledger.Ledger) error {
	wrong, err := l.Verify(ctx)
	if err != nil {
		return err
	}
	r.damaged(wrong...)
	r.Other, err = audit.Other(ctx, l.Books().Source())
	r.Breaches += r.Other.Total
	return err
}

// damaged adds what is wrong with the ledger's file, or with tables.
func (r *auditReport) damaged(wrong ...string) {
	r.File = append(r.File, wrong...)
	r.Breaches += int64(len(wrong))
}

// audit adds the campaigns' reports.
func (r *auditReport) audit(ctx context.Context, t terminal, ids []firstcome.CampaignID, one func(firstcome.CampaignID, *atomic.Int64) (audit.Report, error)) error {
	var read atomic.Int64
	done := showProgress(ctx, t, "audit: coupons read", func() course { return course{done: read.Load()} })
	defer done()
	for _, id := range ids {
		report, err := one(id, &read)
		if err != nil {
			return err
		}
		r.Campaigns = append(r.Campaigns, report)
		r.Breaches += report.Breaches.Total
	}
	return nil
}
