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
	Gate     gateName    `placeholder:"URL" help:"Also compare the gate with the ledger: redis://HOST:PORT/DB, or rediss:// with TLS. If the URL has a password, set FIRSTCOME_GATE instead."`
	Journal  journalName `placeholder:"URL" help:"With --gate: the topic between gate and ledger, if serve has a --journal: kafka://HOST:PORT/TOPIC. If the URL has a password, set FIRSTCOME_JOURNAL instead."`
	Facts    topicURL    `placeholder:"URL" help:"Also read a whole Kafka topic, and check its facts against the ledger: kafka://HOST:PORT/TOPIC. If the URL has a password, set FIRSTCOME_FACTS instead."`
	Server   serverURL   `placeholder:"URL" help:"Ask a server to audit instead. The API key in FIRSTCOME_KEY must have the role operator or admin."`
	PrintSQL bool        `help:"Print the SQL queries of the audit, and read nothing. If no campaign is named, :campaign stands for its id." name:"print-sql"`
	outputFlag
	SecretFile string `placeholder:"FILE" help:"File with the secret of the coupon codes, to check the codes too (default: the secret beside the ledger, if it can be read)."`
	Campaign   string `arg:"" optional:"" help:"The campaign (default: all campaigns, and the ledger's file itself)."`

	flags []string // names of the flags on the command line
}

// Help explains how the ways to audit differ.
func (*auditCmd) Help() string {
	return `With --ledger, the audit reads the tables, also while servers use them, and checks the ledger's file. With --gate as
well, it compares the gate's holders with the coupons in the ledger and in the journal. With --facts as well, it reads
the whole topic: each published fact must be there, in order, and agree with the ledger. With --server, it asks a node
to audit each campaign with the node's own tables and gate. That works from anywhere, also through proxies, but checks
neither the file nor rows without a campaign. If FIRSTCOME_LEDGER and FIRSTCOME_SERVER are both set, the audit reads the
ledger.`
}

// BeforeResolve notes the flags. kong calls it after reading the command line and before reading the environment.
func (c *auditCmd) BeforeResolve(line *kong.Context) error {
	for _, p := range line.Path {
		if p.Flag != nil {
			c.flags = append(c.flags, p.Flag.Name)
		}
	}
	return nil
}

// check chooses between the ledger, with its gate, and a server. A flag takes precedence over the environment. In the environment, the ledger
// takes precedence over the server.
func (c *auditCmd) check(terminal) []error {
	ledgerIsFlag, serverIsFlag := slices.Contains(c.flags, "ledger"), slices.Contains(c.flags, "server")
	gateIsFlag, secretIsFlag := slices.Contains(c.flags, "gate") && c.Gate.url() != "", slices.Contains(c.flags, "secret-file")
	factsIsFlag := slices.Contains(c.flags, "facts") && c.Facts != ""
	switch {
	case serverIsFlag && ledgerIsFlag:
		return []error{errors.New("--server: cannot be combined with --ledger: name only the one to audit")}
	case serverIsFlag && gateIsFlag:
		return []error{errors.New("--gate: a server compares its own gate: name the ledger with --ledger instead of --server, or audit the server without --gate")}
	case serverIsFlag && factsIsFlag:
		return []error{errors.New("--facts: a server reads no topic: name the ledger with --ledger instead of --server")}
	case serverIsFlag && secretIsFlag:
		return []error{errors.New("--secret-file: a server checks the codes with its own secret: leave --secret-file out, or name the ledger with --ledger instead of --server")}
	case serverIsFlag:
		c.Ledger = ""
	case ledgerIsFlag || gateIsFlag || factsIsFlag || secretIsFlag:
		c.Server = ""
	case c.Ledger != "": // both are environment variables: only the tables show rows without a campaign
		c.Server = ""
	}
	if c.Ledger == "" && c.Server == "" {
		c.Ledger = ledgerName(vars()["ledger"])
	}
	return nil
}

// An auditReport is what audit prints.
type auditReport struct {
	Ledger    string              `json:"ledger,omitempty"` // empty if Server is set
	Server    string              `json:"server,omitempty"` // empty if Ledger is set
	Codes     bool                `json:"codes_checked"`
	Campaigns []audit.Report      `json:"campaigns"`
	Gates     []audit.GateReport  `json:"gates,omitempty"` // campaigns compared with their gate
	Topic     []audit.TopicReport `json:"topic,omitempty"` // campaigns compared with their facts in the topic
	File      []string            `json:"file"`            // damage to the ledger's file or tables
	Other     audit.Breaches      `json:"other,omitzero"`  // breaches in rows without a campaign
	Breaches  int64               `json:"breaches"`
}

// errBreach means that a promise is broken. The printed report says which one.
var errBreach = errors.New("a promise is broken")

// Run audits the ledger or the server, also while claims are being decided.
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

// secret returns the secret to check codes with. It returns nil if there is none, or if a server audits with its own.
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

// auditLedger audits the ledger's tables.
func (c *auditCmd) auditLedger(ctx context.Context, t terminal, report *auditReport, secret *firstcome.Secret) error {
	report.Ledger = sqldb.Masked(c.Ledger.path())
	open := ledger.OpenCopy
	if c.Gate.url() != "" || c.Facts != "" {
		open = ledger.OpenShared // a replica that lags has less than gate and topic
	}
	return readOpened(ctx, c.Ledger.path(), open, func(l *ledger.Ledger) error { return c.auditTables(ctx, t, l, report, secret) })
}

// auditTables audits the tables of an open ledger.
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
		return audit.Ledger(ctx, l.Tables().Source(), id, secret, read)
	})
	if err == nil && c.Gate.url() != "" {
		err = c.auditGate(ctx, l, report, ids, secret)
	}
	if err == nil && c.Facts != "" {
		err = c.auditTopic(ctx, t, l, report, ids)
	}
	return err
}

// campaigns returns the ids of the campaigns to audit, including campaigns whose row is gone.
func (c *auditCmd) campaigns(ctx context.Context, l *ledger.Ledger, report *auditReport) ([]firstcome.CampaignID, error) {
	ids, err := l.Tables().Campaigns(ctx)
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

// auditOther adds damage to the ledger, and breaches in rows without a campaign.
func (r *auditReport) auditOther(ctx context.Context, l *ledger.Ledger) error {
	wrong, err := l.Verify(ctx)
	if err != nil {
		return err
	}
	r.damaged(wrong...)
	r.Other, err = audit.Other(ctx, l.Tables().Source())
	r.Breaches += r.Other.Total
	return err
}

// damaged adds damage to the ledger's file or tables.
func (r *auditReport) damaged(wrong ...string) {
	r.File = append(r.File, wrong...)
	r.Breaches += int64(len(wrong))
}

// audit adds a report of each campaign, which one makes.
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
