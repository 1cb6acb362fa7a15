package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqldb"
)

func (c *doctorCmd) Help() string {
	return `doctor reads the flags and the environment of serve. It checks this machine, the ledger's database, Redis and the
Kafka topics, and needs no more rights there than serve. It disturbs no running server. A FAIL is to be
corrected: serve would not start, or claims would be answered 503 or not be safe. The exit status is then 1.`
}

type doctorCmd struct {
	serveCmd
	outputFlag
}

// check returns no errors: examine reports the mistakes in serve's flags as findings.
func (c *doctorCmd) check(terminal) []error { return nil }

func (c *doctorCmd) Run(ctx context.Context, t terminal) error {
	findings := c.examine(ctx, t)
	err := c.print(t, findings, func(w io.Writer) {
		for _, f := range findings {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Grade, f.What, f.Found)
			if f.Fix != "" {
				fmt.Fprintf(w, "\t\tfix: %s\n", f.Fix)
			}
		}
	})
	if err == nil && findings.Failed() {
		err = errors.New("there is something to correct: see FAIL above")
	}
	return err
}

// examine checks the set-up of serve: ledger, gate and topics, each with the checks of its own package, then the campaigns, then this machine.
func (c *doctorCmd) examine(ctx context.Context, t terminal) (found doctor.Findings) {
	path := c.Ledger.path()
	c.configuration(t, &found)
	found.Add(doctor.OK, "version", "", "%s", thisBuild())
	found = append(found, sqldb.Examine(ctx, path)...)
	if kind := c.Gate.kind(); kind != nil {
		found = append(found, kind.examine(ctx, &c.gateFlags)...)
	}
	if c.Facts != "" {
		found = append(found, kafka.Examine(ctx, string(c.Facts), kafka.Facts, "")...)
		found = append(found, c.published(ctx)...)
	}
	if c.Line != "" {
		found = append(found, kafka.Examine(ctx, string(c.Line), kafka.Lines, "")...)
	}
	if url := c.Journal.url(); url != "" {
		found = append(found, kafka.Examine(ctx, url, kafka.Waits, c.recorders(ctx, t))...)
	}
	found = append(found, c.campaigns(ctx, t)...)
	switch {
	case c.SecretFile == "" && sqldb.OnServer(path): // there is no secret file on this machine
	case t.variable(secretVariable) != "":
		found.Add(doctor.OK, "secret", "", "in FIRSTCOME_SECRET")
	default:
		found.Secret(cmp.Or(c.SecretFile, secretBeside(path)))
	}
	found.MachineClock(lastDecision(ctx, path))
	found.OpenFiles(int(c.MaxConnections))
	for n := range found {
		found[n].Found = mask(found[n].Found, nil)
	}
	return found
}

// recorders returns the name of the recorders of the journal's topic, or an empty string if ledger or secret cannot be read.
func (c *doctorCmd) recorders(ctx context.Context, t terminal) (name string) {
	_ = readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error {
		text, err := secretText(t, c.SecretFile, c.Ledger.path())
		if err == nil && text != nil {
			if secret, err := parseSecret(text); err == nil {
				name = ledger.JournalName(l.Identity() + ".." + secret.Fingerprint())
			}
		}
		return err
	})
	return name
}

// configuration reports whether the flags of serve fit together.
func (c *doctorCmd) configuration(t terminal, found *doctor.Findings) {
	const what = "configuration"
	errs := c.serveCmd.check(t)
	if len(errs) == 0 {
		found.Add(doctor.OK, what, "", "the flags and variables of serve fit together")
	}
	for _, warning := range c.warnings() {
		found.Add(doctor.Warn, what, "", "%s", warning)
	}
	for _, err := range errs {
		found.Add(doctor.Fail, what, "see firstcome serve --help", "%s", mask(err.Error(), secretsIn(t.env)))
	}
}

// lastDecision returns the time of the last decision in any campaign. It is zero if there is none, or if the ledger cannot be read.
func lastDecision(ctx context.Context, path string) (last time.Time) {
	_ = readLedger(ctx, path, func(l *ledger.Ledger) (err error) { // the finding about the ledger has the error
		last, err = l.Reads.LastDecision(ctx)
		return err
	})
	return last
}
