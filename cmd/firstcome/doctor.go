package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
)

// Help is the long help of doctor.
func (c *doctorCmd) Help() string {
	return `It reads the flags and the environment of serve, and takes nothing that a running server has. It looks at
this machine, at the database of the ledger and at Redis, and needs no more rights there than serve does.
A FAIL says that serve would not start or would not keep a promise; the exit status is then 1.`
}

type doctorCmd struct {
	serveCmd
	outputFlag
}

// check leaves what does not fit together to the findings.
func (c *doctorCmd) check(terminal) []error { return nil }

// Run examines the machine.
func (c *doctorCmd) Run(ctx context.Context, t terminal) error {
	findings := c.examine(ctx, t)
	if c.json() {
		if err := printJSON(t, findings); err != nil {
			return err
		}
	} else if err := printFindings(t, findings); err != nil {
		return err
	}
	if findings.Failed() {
		return errors.New("serve would not work here: see FAIL above")
	}
	return nil
}

// An exam looks at one set-up of serve.
type exam struct {
	doctor.Findings
	ctx  context.Context
	t    terminal
	path string // of the ledger
}

func (c *doctorCmd) examine(ctx context.Context, t terminal) doctor.Findings {
	e := &exam{ctx: ctx, t: t, path: c.Ledger.path()}
	e.configuration(c.serveCmd.check(t))
	e.Add(doctor.OK, "version", "", "%s", thisBuild())
	onServer := ledger.OnServer(e.path)
	if onServer {
		e.server(ledger.Examine(ctx, e.path))
	} else {
		e.machine()
	}
	if gate := c.Gate.url(); gate != "" {
		e.server(redis.Examine(ctx, redis.Options{URL: gate, AnyEviction: c.AnyEviction}))
	}
	c.campaigns(e)
	if c.SecretFile != "" || !onServer {
		e.secretMode(c.SecretFile)
	}
	e.clockSanity()
	e.openFiles(int(c.MaxConnections))
	return e.Findings
}

// configuration says whether the flags of serve fit together: errs are what does not.
func (e *exam) configuration(errs []error) {
	const what = "configuration"
	if len(errs) == 0 {
		e.Add(doctor.OK, what, "", "the flags and variables of serve fit together")
	}
	for _, err := range errs {
		e.Add(doctor.Fail, what, "see firstcome serve --help", "%s", mask(err.Error(), secretsIn(e.t.env)))
	}
}

// server takes over what a room found of its server, without passwords.
func (e *exam) server(found doctor.Findings) {
	for _, f := range found {
		f.Found = mask(f.Found, nil)
		e.Findings = append(e.Findings, f)
	}
}

func printFindings(t terminal, findings doctor.Findings) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Grade, f.What, f.Found)
		if f.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", f.Fix)
		}
	}
	return w.Flush()
}

// secretMode says whether others can read the secret of the coupon codes.
func (e *exam) secretMode(file string) {
	const what = "secret"
	if e.t.variable(secretVariable) != "" {
		e.Add(doctor.OK, what, "", "in FIRSTCOME_SECRET")
		return
	}
	if file == "" {
		file = secretBeside(e.path)
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		e.Add(doctor.OK, what, "", "there is none yet: the first start of serve makes %s", file)
	case err != nil:
		e.Add(doctor.Fail, what, "let the user who runs serve read it", "%v", err)
	case info.Mode().Perm()&0o077 != 0:
		e.Add(doctor.Warn, what, "chmod 600 "+file, "others can read %s (mode %04o): who has it can make coupon codes", file, info.Mode().Perm())
	default:
		e.Add(doctor.OK, what, "", "%s, mode %04o", file, info.Mode().Perm())
	}
}
